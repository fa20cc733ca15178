//! The interpreter: what a function computes, over a machine that has the memory and the helpers.

use paceline_isa::{AtomicOp, Size, Width, eval};

use crate::ir::arena::Key;
use crate::ir::cfg::Cfg;
use crate::ir::entity::{Block, FuncId, Inst, Value};
use crate::ir::function::{Function, Module, Target, Terminator};
use crate::ir::op::{Address, Callee, Op, RunOp};
use crate::ir::ranges::Ranges;
use crate::ir::types::{Access, Kind};

/// Memory, addresses and calls. Addresses are those that the machine itself gave.
pub trait Machine {
    /// A fault, which ends the run.
    type Fault;

    /// A function begins, at a call from an instruction unless it is the first or a callback: the address of the end of its zeroed
    /// stack (`r10`).
    fn enter(&mut self, function: &Function, caller: Option<u32>) -> Result<u64, Self::Fault>;

    /// The function that began last returns a value.
    fn leave(&mut self, result: u64);

    /// The address of a map, a place in a value, or a function.
    fn address(&mut self, module: &Module, address: Address) -> Result<u64, Self::Fault>;

    /// Whether a pointer of a kind may be this address, as far as the machine knows.
    fn may_be(&mut self, kind: Kind, address: u64) -> Result<bool, Self::Fault>;

    /// The bytes at an address, zero-extended. It is a fault if what is known of the access is not true.
    fn load(&mut self, address: u64, size: Size, access: &Access) -> Result<u64, Self::Fault>;

    /// Stores the low bytes of a value. Faults as [`load`](Self::load).
    fn store(&mut self, address: u64, size: Size, access: &Access, value: u64) -> Result<(), Self::Fault>;

    /// An atomic operation; the old value is ignored if the operation does not fetch it. Faults as [`load`](Self::load).
    fn atomic(
        &mut self,
        op: AtomicOp,
        width: Width,
        address: u64,
        access: &Access,
        operands: [u64; 2],
    ) -> Result<u64, Self::Fault>;

    /// A load of a field of the context, zero-extended.
    fn load_context(&mut self, context: u64, offset: i32, size: Size) -> Result<u64, Self::Fault>;

    /// A store to a field of the context.
    fn store_context(&mut self, context: u64, offset: i32, size: Size, value: u64)
    -> Result<(), Self::Fault>;

    /// A legacy packet load; `None` outside of the packet.
    fn load_packet(&mut self, at: i64, size: Size) -> Result<Option<u64>, Self::Fault>;

    /// Whether the running function's budget of rounds is exhausted; takes one otherwise.
    fn may_goto(&mut self) -> Result<bool, Self::Fault>;

    /// Calls a helper or kernel function from the instruction of a slot. Registers that are no arguments are 0.
    fn call(&mut self, callee: Callee, args: [u64; 5], slot: Option<u32>) -> Result<Called, Self::Fault>;

    /// Continues a helper after the function that it called returned.
    fn called_back(&mut self, result: u64) -> Result<Called, Self::Fault>;
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Called {
    /// It returns a value.
    Value(u64),
    /// The function that made the call returns this value: a program ran in its place.
    Return(u64),
    /// The helper calls the function of a slot with these values in `r1` to `r5`. The machine has made its stack already, whose end is at
    /// `stack`; [`called_back`](Machine::called_back) takes it away.
    Back {
        /// Slot of the function.
        slot: u32,
        /// Arguments.
        args: [u64; 5],
        /// The end of the function's stack.
        stack: u64,
    },
}

/// Why a run ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunError<F> {
    /// The machine says so.
    Fault(F),
    /// Too many operations.
    Budget,
    /// A function or block that is not there, or a value that is used before it is defined: the module is not valid.
    Invalid,
    /// A value has not the kind, or is not in the range, that the form says it has.
    Untrue(Value),
}

impl<F> From<F> for RunError<F> {
    fn from(fault: F) -> Self {
        Self::Fault(fault)
    }
}

/// A module that runs on a machine. What the form says of values is compared with what they are.
pub struct Interpreter<'a, M> {
    module: &'a Module,
    machine: &'a mut M,
    /// Ranges of the values of each function.
    ranges: Vec<Ranges>,
    /// Operations that may still run.
    budget: u64,
}

impl<'a, M> std::fmt::Debug for Interpreter<'a, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Interpreter").finish_non_exhaustive()
    }
}

/// Values of a running function.
struct Frame<'a> {
    id: FuncId,
    function: &'a Function,
    values: Vec<Option<u64>>,
    stack: u64,
}

/// What an operation leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// Its result.
    Value(u64),
    /// It has no result.
    Nothing,
    /// The function returns this value in it.
    Return(u64),
}

impl<'a, M: Machine> Interpreter<'a, M> {
    /// An interpreter that runs at most so many operations.
    pub fn new(module: &'a Module, machine: &'a mut M, budget: u64) -> Self {
        let ranges = module.functions.iter().map(|(_, function)| Ranges::of(function, &Cfg::of(function)));
        Self { module, machine, ranges: ranges.collect(), budget }
    }

    /// Runs the main program with the values that are in `r1` to `r5`.
    ///
    /// # Errors
    /// The run has no result.
    pub fn run(&mut self, args: [u64; 5]) -> Result<u64, RunError<M::Fault>> {
        let main = self.module.main().ok_or(RunError::Invalid)?;
        self.call(main, args, None)
    }

    /// Runs a function with the values of `r1` to `r5`.
    fn call(&mut self, id: FuncId, args: [u64; 5], caller: Option<u32>) -> Result<u64, RunError<M::Fault>> {
        let function = self.module.functions.get(id).ok_or(RunError::Invalid)?;
        let stack = self.machine.enter(function, caller)?;
        let result = self.body(id, function, args, stack)?;
        self.machine.leave(result);
        Ok(result)
    }

    fn body(
        &mut self,
        id: FuncId,
        function: &'a Function,
        args: [u64; 5],
        stack: u64,
    ) -> Result<u64, RunError<M::Fault>> {
        let mut frame = Frame { id, function, values: vec![None; function.value_count()], stack };
        let mut block = function.entry().ok_or(RunError::Invalid)?;
        let given = function.arguments.iter().map(|reg| args.get(usize::from(reg.number()).wrapping_sub(1)));
        for (param, arg) in function.block(block).params.iter().zip(given) {
            self.define(&mut frame, *param, *arg.ok_or(RunError::Invalid)?)?;
        }
        loop {
            let data = function.block(block);
            for &inst in &data.insts {
                self.budget = self.budget.checked_sub(1).ok_or(RunError::Budget)?;
                let values = &frame.values;
                let get = |value: Value| values.get(value.index()).copied().flatten();
                match self.execute(function, inst, frame.stack, get)? {
                    Executed::Nothing => {}
                    Executed::Return(result) => return Ok(result),
                    Executed::Value(value) => {
                        let result = function.inst(inst).result.ok_or(RunError::Invalid)?;
                        self.define(&mut frame, result, value)?;
                    }
                }
            }
            self.budget = self.budget.checked_sub(1).ok_or(RunError::Budget)?;
            let target = match &data.terminator {
                Terminator::Return(value) => return frame.get(*value),
                Terminator::Jump(target) => target,
                Terminator::Branch { condition, ty, args: [a, b], targets: [taken, other] } => {
                    let holds = eval::compare(ty.width(), *condition, frame.get(*a)?, frame.get(*b)?);
                    if holds { taken } else { other }
                }
                Terminator::MayGoto([taken, other]) => {
                    if self.machine.may_goto()? {
                        taken
                    } else {
                        other
                    }
                }
                Terminator::Stop | Terminator::Unset => return Err(RunError::Invalid),
            };
            block = self.enter(&mut frame, target)?;
        }
    }

    /// Assigns a number to a value, if it can have it.
    fn define(&mut self, frame: &mut Frame<'_>, value: Value, number: u64) -> Result<(), RunError<M::Fault>> {
        let kind = frame.function.value(value).kind;
        let range = self.ranges.get(frame.id.index()).map(|ranges| ranges.get(frame.function, value));
        let is_true = range.is_none_or(|range| range.contains(number))
            && (kind == Kind::Unknown || self.machine.may_be(kind, number)?);
        frame.values[value.index()] = Some(number);
        if is_true { Ok(()) } else { Err(RunError::Untrue(value)) }
    }

    /// Assigns the arguments of a target to its parameters, all at once.
    fn enter(&mut self, frame: &mut Frame<'a>, target: &Target) -> Result<Block, RunError<M::Fault>> {
        let args: Vec<u64> = target.args.iter().map(|arg| frame.get(*arg)).collect::<Result<_, _>>()?;
        for (param, arg) in frame.function.block(target.block).params.iter().zip(args) {
            self.define(frame, *param, arg)?;
        }
        Ok(target.block)
    }

    /// The machine.
    pub fn machine(&mut self) -> &mut M {
        self.machine
    }

    /// Executes an operation of a function whose stack ends at an address, with the values that its operands have, which may come from
    /// elsewhere than from this interpreter.
    ///
    /// # Errors
    /// The machine's fault, or a value that is not there.
    pub fn execute(
        &mut self,
        function: &Function,
        inst: Inst,
        stack: u64,
        value: impl Fn(Value) -> Option<u64>,
    ) -> Result<Executed, RunError<M::Fault>> {
        let data = function.inst(inst);
        let get = |operand: Value| value(operand).ok_or(RunError::Invalid);
        let machine = &mut *self.machine;
        let address =
            |base: Value, offset: i32| get(base).map(|base: u64| base.wrapping_add_signed(offset.into()));
        Ok(Executed::Value(match data.op {
            Op::Const { value, .. } => value,
            Op::Address(address) => machine.address(self.module, address)?,
            Op::StackAddress { offset } => stack.wrapping_add_signed(offset.into()),
            Op::Binary { op, ty, args: [a, b] } => op.eval(ty, get(a)?, get(b)?),
            Op::Neg { ty, arg } => eval::neg(ty.width(), get(arg)?),
            Op::SignExtend { from, ty, arg } => ty.cut(eval::sign_extend(from, get(arg)?)),
            Op::ZeroExtend { arg } => get(arg)?,
            Op::Truncate { arg } => eval::zero_extend(Size::W, get(arg)?),
            Op::Swap { size, arg, .. } => eval::swap(paceline_isa::SwapOrder::Always, size, get(arg)?),
            Op::Compare { condition, ty, args: [a, b] } => {
                eval::compare(ty.width(), condition, get(a)?, get(b)?).into()
            }
            Op::Load { size, signed, base, offset, ref access } => {
                extend(machine.load(address(base, offset)?, size, access)?, size, signed)
            }
            Op::LoadAcquire { size, base, offset, ref access } => {
                machine.load(address(base, offset)?, size, access)?
            }
            Op::Store { size, base, offset, value, ref access }
            | Op::StoreRelease { size, base, offset, value, ref access } => {
                machine.store(address(base, offset)?, size, access, get(value)?)?;
                return Ok(Executed::Nothing);
            }
            Op::Atomic { op, width, base, offset, value, expected, ref access } => {
                let expected = expected.map_or(Ok(0), &get)?;
                let operands = [get(value)?, expected];
                let old = machine.atomic(op, width, address(base, offset)?, access, operands)?;
                if !op.fetches() {
                    return Ok(Executed::Nothing);
                }
                old
            }
            Op::ContextLoad { size, signed, context, offset } => {
                let value = machine.load_context(get(context)?, offset, size)?;
                if signed { eval::sign_extend(size, value) } else { value }
            }
            Op::ContextStore { size, context, offset, value } => {
                machine.store_context(get(context)?, offset, size, get(value)?)?;
                return Ok(Executed::Nothing);
            }
            Op::PacketLoad { size, index, offset, .. } => {
                let index = index.map_or(Ok(0), &get)? as u32;
                let at = i64::from(index.cast_signed()) + i64::from(offset);
                // default: a load outside of the packet fails with this result.
                machine.load_packet(at, size)?.unwrap_or(u64::MAX)
            }
            // The machine's run is that of one program, which ends with the first fault.
            Op::Run(RunOp::Fault) => 0,
            Op::Run(RunOp::Begin { .. } | RunOp::Count { .. } | RunOp::Finish) => {
                return Ok(Executed::Nothing);
            }
            Op::Call { callee, args } => {
                let mut values = [0; 5];
                for (place, arg) in values.iter_mut().zip(args.as_slice()) {
                    *place = get(*arg)?;
                }
                return self.called(callee, values, data.slot);
            }
        }))
    }

    fn called(
        &mut self,
        callee: Callee,
        args: [u64; 5],
        slot: Option<u32>,
    ) -> Result<Executed, RunError<M::Fault>> {
        if let Callee::Function(id) = callee {
            let function = self.module.functions.get(id).ok_or(RunError::Invalid)?;
            let mut registers = [0; 5];
            for (reg, arg) in function.arguments.iter().zip(args) {
                let place = registers.get_mut(usize::from(reg.number()).wrapping_sub(1));
                *place.ok_or(RunError::Invalid)? = arg;
            }
            return self.call(id, registers, slot.or(Some(0))).map(Executed::Value);
        }
        if callee == Callee::Program {
            let called = self.machine.call(Callee::TailCall, args, slot)?;
            let result =
                if let Called::Return(result) = called { result as u32 as u64 } else { Callee::NO_PROGRAM };
            return Ok(Executed::Value(result));
        }
        let mut called = self.machine.call(callee, args, slot)?;
        loop {
            match called {
                // A tail call that returns has no result.
                Called::Value(_) if callee == Callee::TailCall => return Ok(Executed::Nothing),
                Called::Value(value) => return Ok(Executed::Value(value)),
                Called::Return(value) => return Ok(Executed::Return(value)),
                Called::Back { slot, args, stack } => {
                    let id = self.module.at_slot(slot).ok_or(RunError::Invalid)?;
                    let function = self.module.functions.get(id).ok_or(RunError::Invalid)?;
                    let result = self.body(id, function, args, stack)?;
                    called = self.machine.called_back(result)?;
                }
            }
        }
    }
}

fn extend(value: u64, size: Size, signed: bool) -> u64 {
    if signed { eval::sign_extend(size, value) } else { value }
}

impl Frame<'_> {
    fn get<F>(&self, value: Value) -> Result<u64, RunError<F>> {
        self.values.get(value.index()).copied().flatten().ok_or(RunError::Invalid)
    }
}
