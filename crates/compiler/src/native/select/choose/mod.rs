//! Selection: from operations of the form to instructions.
//!
//! Numbers and addresses that are known have no register for themselves: each use makes them anew, where they are not part of its
//! instruction. What is above the low half of an `i32` is not defined, so a truncation is no instruction, and an extension is one only
//! if the operation that makes its operand does not clear the upper half.

mod arithmetic;
mod burst;
mod call;
mod context;
mod fold;
mod look_up;
mod memory;
mod parts;

use crate::codegen::lir::{Function as Lir, Operand, Place, Reg, RegSet, Role, Vreg};
use crate::codegen::low::same;
use crate::ir::arena::Key;
use crate::ir::uses::Uses;
use crate::ir::{Address, Block, Callee, Function, Inst, Op as Operation, Terminator, Type, Value};
use paceline_isa::{Condition, Size};

pub(super) use self::call::is_loaded;
use super::generator::Generator;
use super::lack::Lack;
use super::op::{Compare, Op};
use super::target::Target;
use crate::native::x64::{Cond, OpSize, Width};

/// The selection of a block's instructions.
pub(super) struct Choice<'c, 'a, A> {
    generator: &'c mut Generator<'a, A>,
    function: &'c Function,
    out: &'c mut Lir<Op>,
    /// Slot of the instruction that is selected for.
    origin: Option<u32>,
}

fn of_number(value: Value) -> Vreg {
    Vreg(value.index() as u32)
}

/// An operand that is read from any register.
fn used(vreg: Vreg) -> Operand {
    used_in(vreg, Place::Any)
}

fn used_in(vreg: Vreg, place: Place) -> Operand {
    Operand { vreg, role: Role::Use, place }
}

fn fixed(vreg: Vreg, reg: Reg) -> Operand {
    used_in(vreg, Place::Fixed(reg))
}

/// An operand that is written to any register.
fn defined(vreg: Vreg) -> Operand {
    defined_in(vreg, Place::Any)
}

fn defined_in(vreg: Vreg, place: Place) -> Operand {
    Operand { vreg, role: Role::Def, place }
}

const fn width(ty: Type) -> Width {
    match ty {
        Type::I32 => Width::D32,
        Type::I64 => Width::Q64,
    }
}

impl<'c, 'a, A: Target> Choice<'c, 'a, A> {
    pub(super) fn new(
        generator: &'c mut Generator<'a, A>,
        function: &'c Function,
        out: &'c mut Lir<Op>,
    ) -> Self {
        Self { generator, function, out, origin: None }
    }

    /// The instructions of a block but its end.
    pub(super) fn block(&mut self, uses: &Uses, block: Block) {
        let data = self.function.block(block);
        if Some(block) == self.function.entry() {
            match self.generator.current.burst {
                Some(_) => self.enter_packet(),
                None => self.enter(&data.params),
            }
        }
        self.fold(uses, block);
        self.find_parts(uses, block);
        for &inst in &data.insts {
            if self.is_folded(inst) || self.is_part(inst) {
                continue;
            }
            let data = self.function.inst(inst);
            if data.op.stays() || data.result.is_some_and(|result| uses.count(result) > 0) {
                self.origin = data.slot;
                self.inst(inst);
            }
        }
    }

    fn enter(&mut self, params: &[Value]) {
        let mut operands = Vec::with_capacity(params.len() + 2);
        for (param, register) in params.iter().zip(&self.function.arguments) {
            operands.push(defined_in(of_number(*param), Place::Fixed(A::argument(*register))));
        }
        let host = self.out.add_vreg();
        operands.push(defined_in(host, Place::Fixed(A::HOST)));
        self.generator.current.host = host;
        self.push(Op::Enter, &operands);
    }

    /// The end of a block.
    pub(super) fn end(&mut self, block: Block) {
        let data = self.function.block(block);
        self.origin = data.slot;
        match data.terminator {
            Terminator::Jump(_) | Terminator::Unset => self.push(Op::Jump, &[]),
            Terminator::Branch { condition, ty, args, .. } => {
                if self.folded_branch() {
                    return;
                }
                let (cond, compare, operands) = self.compare(condition, ty, args);
                self.push_each(Op::Branch(cond, compare), operands);
            }
            Terminator::MayGoto(_) => {
                self.generator.current.needs.rounds = true;
                self.push(Op::MayGoto, &[]);
            }
            Terminator::Stop if self.generator.current.burst.is_some() => self.push(Op::Jump, &[]),
            Terminator::Stop => self.generator.internal("a function stops a loop that it is not in"),
            Terminator::Return(value) => {
                if let Some(burst) = self.generator.current.burst {
                    return self.next_packet(burst);
                }
                let value = self.value(value);
                self.push(Op::Return, &[fixed(value, A::RESULT)]);
            }
        }
    }

    fn inst(&mut self, inst: Inst) {
        let data = *self.function.inst(inst);
        // Operations without a result are pushed without one.
        let result = of_number(data.result.unwrap_or(Value::new(0)));
        match data.op {
            // Each use makes them.
            Operation::Const { .. } | Operation::Address(_) | Operation::StackAddress { .. } => {}
            Operation::Binary { op, ty, args } => self.binary(op, ty, args, result),
            Operation::Neg { ty, arg } => {
                let arg = self.value(arg);
                self.push(Op::Neg(width(ty)), &[used(arg), defined_in(result, Place::Same(0))]);
            }
            Operation::SignExtend { from, ty, arg } => {
                let arg = self.value(arg);
                let op = Op::SignExtend(width(ty), OpSize::of(from));
                self.push(op, &[used(arg), defined(result)]);
            }
            Operation::ZeroExtend { arg } => {
                if self.same(data.result.unwrap_or(arg)) == data.result.unwrap_or(arg) {
                    let arg = self.value(arg);
                    self.push(Op::ZeroExtend(OpSize::D32), &[used(arg), defined(result)]);
                }
            }
            // It is its operand.
            Operation::Truncate { .. } => {}
            Operation::Swap { size, arg, .. } => {
                let is_loaded = matches!(
                    self.function.op_of(self.same(arg)),
                    Some(Operation::Load { size: Size::B | Size::H, signed: false, .. })
                );
                let op = if size == Size::H && is_loaded { Op::SwapHalf } else { Op::Swap(size) };
                let arg = self.value(arg);
                self.push(op, &[used(arg), defined_in(result, Place::Same(0))]);
            }
            Operation::Compare { condition, ty, args } => {
                let (cond, compare, operands) = self.compare(condition, ty, args);
                self.push_each(Op::Set(cond, compare), operands.chain([defined(result)]));
            }
            Operation::Load { .. }
            | Operation::Store { .. }
            | Operation::Atomic { .. }
            | Operation::LoadAcquire { .. }
            | Operation::StoreRelease { .. }
            | Operation::PacketLoad { .. } => self.memory(&data.op, result),
            Operation::ContextLoad { size, signed, context, offset } => {
                self.load_context(size, signed, context, offset, result);
            }
            Operation::ContextStore { size, context, offset, value } => {
                self.store_context(size, context, offset, value);
            }
            Operation::Run(op) => self.run_op(op, result),
            Operation::Call { callee: callee @ (Callee::TailCall | Callee::Program), ref args } => {
                let result = (callee == Callee::Program).then_some(result);
                self.tail_call(inst, args.as_slice(), result);
            }
            Operation::Call { callee, ref args } => self.call(inst, callee, args.as_slice(), result),
        }
    }

    /// Adds an instruction that overwrites nothing but its definitions.
    fn push(&mut self, op: Op, operands: &[Operand]) {
        self.out.push(op, operands, RegSet::default(), self.origin);
    }

    /// The same with operands one by one.
    fn push_each(&mut self, op: Op, operands: impl Iterator<Item = Operand>) {
        self.out.push_each(op, operands, RegSet::default(), self.origin);
    }

    fn push_clobbering(&mut self, op: Op, operands: &[Operand], clobbers: RegSet) {
        self.out.push(op, operands, clobbers, self.origin);
    }

    /// A new virtual register.
    fn fresh(&mut self) -> Vreg {
        self.out.add_vreg()
    }

    fn host(&self) -> Vreg {
        self.generator.current.host
    }

    /// The value whose register a value is in.
    fn same(&self, value: Value) -> Value {
        same(self.function, value)
    }

    /// A register that has a value, which is made if it is known.
    pub(super) fn value(&mut self, value: Value) -> Vreg {
        let value = self.same(value);
        let known = match self.function.op_of(value) {
            Some(Operation::Const { .. } | Operation::StackAddress { .. } | Operation::Address(_)) => {
                self.known(value)
            }
            _ => None,
        };
        let Some(op) = known else { return of_number(value) };
        let vreg = self.fresh();
        self.push(op, &[defined(vreg)]);
        vreg
    }

    /// The instruction that makes a value which needs no operands.
    fn known(&mut self, value: Value) -> Option<Op> {
        Some(match *self.function.op_of(value)? {
            Operation::Const { value, .. } => Op::Number(value),
            Operation::StackAddress { offset } => Op::Stack(offset),
            Operation::Address(Address::Map(index)) => {
                Op::Number(self.generator.map(index).map_or(0, |map| map.handle))
            }
            Operation::Address(Address::MapValue { map: index, offset }) => {
                let value = self.generator.map(index).and_then(|map| map.value);
                if value.is_none() {
                    self.generator.lacks(Lack::Map { index });
                }
                Op::Number(value.unwrap_or(0).wrapping_add(offset.into()))
            }
            Operation::Address(Address::Function(function)) => Op::Function(function),
            _ => return None,
        })
    }

    /// The number that a value is, as the immediate of an instruction of a width.
    fn immediate(&self, ty: Type, value: Value) -> Option<i32> {
        let number = self.function.as_const(self.same(value))?;
        match ty {
            Type::I32 => Some(number as u32 as i32),
            Type::I64 => i32::try_from(number.cast_signed()).ok(),
        }
    }

    /// Condition, comparison and its operands.
    fn compare(
        &mut self,
        condition: Condition,
        ty: Type,
        args: [Value; 2],
    ) -> (Cond, Compare, impl Iterator<Item = Operand> + use<A>) {
        let (mut condition, mut args) = (condition, args);
        if self.immediate(ty, args[0]).is_some() && self.immediate(ty, args[1]).is_none() {
            condition = condition.exchanged();
            args.reverse();
        }
        let [a, b] = args;
        let imm = self.immediate(ty, b);
        let tests = condition == Condition::Set;
        let compare = Compare { width: width(ty), tests, imm };
        let first = self.value(a);
        let second = imm.is_none().then(|| self.value(b));
        (Cond::of(condition), compare, [first].into_iter().chain(second).map(used))
    }
}
