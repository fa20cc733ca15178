//! The selection of a block's instructions.

use crate::codegen::lir::{Function as Lir, Operand, Place, Reg, RegSet, Role, Vreg};
use crate::codegen::low::same;
use crate::ir::arena::Key;
use crate::ir::uses::Uses;
use crate::ir::{Address, Block, Callee, Function, Inst, Op as Operation, Terminator, Type, Value};
use paceline_isa::{Condition, Size};

use crate::internal::Internal;
use crate::native::machine::generator::Generator;
use crate::native::machine::op::{Compare, Op};
use crate::native::machine::operand::Width;
use crate::native::machine::target::Target;
use crate::native::unsupported::Unsupported;

/// The selection of a block's instructions.
pub(crate) struct Choice<'c, 'a, A> {
    pub(super) generator: &'c mut Generator<'a, A>,
    pub(super) function: &'c Function,
    pub(super) out: &'c mut Lir<Op>,
    /// Slot of the instruction that is selected for.
    pub(super) origin: Option<u32>,
}

pub(super) fn of_number(value: Value) -> Vreg {
    Vreg(value.index() as u32)
}

/// An operand that is read from any register.
pub(super) fn used(vreg: Vreg) -> Operand {
    used_in(vreg, Place::Any)
}

pub(super) fn used_in(vreg: Vreg, place: Place) -> Operand {
    Operand { vreg, role: Role::Use, place }
}

pub(super) fn fixed(vreg: Vreg, reg: Reg) -> Operand {
    used_in(vreg, Place::Fixed(reg))
}

/// An operand that is written to any register.
pub(super) fn defined(vreg: Vreg) -> Operand {
    defined_in(vreg, Place::Any)
}

pub(super) fn defined_in(vreg: Vreg, place: Place) -> Operand {
    Operand { vreg, role: Role::Def, place }
}

pub(super) const fn width(ty: Type) -> Width {
    match ty {
        Type::I32 => Width::D32,
        Type::I64 => Width::Q64,
    }
}

impl<'c, 'a, A: Target> Choice<'c, 'a, A> {
    pub(crate) fn new(
        generator: &'c mut Generator<'a, A>,
        function: &'c Function,
        out: &'c mut Lir<Op>,
    ) -> Self {
        Self { generator, function, out, origin: None }
    }

    /// The instructions of a block but its end.
    pub(crate) fn block(&mut self, uses: &Uses, block: Block) -> Result<(), Internal> {
        let data = self.function.block(block);
        if Some(block) == self.function.entry() {
            match self.generator.current.burst {
                Some(_) => self.enter_packet()?,
                None => self.enter(&data.params)?,
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
                self.inst(inst)?;
            }
        }
        Ok(())
    }

    pub(super) fn enter(&mut self, params: &[Value]) -> Result<(), Internal> {
        let mut operands = Vec::with_capacity(params.len() + 2);
        for (param, register) in params.iter().zip(&self.function.arguments) {
            operands.push(defined_in(of_number(*param), Place::Fixed(A::argument(*register)?)));
        }
        let host = self.out.add_vreg();
        operands.push(defined_in(host, Place::Fixed(A::HOST)));
        self.generator.current.host = Some(host);
        self.push(Op::Enter, &operands);
        Ok(())
    }

    /// The end of a block.
    pub(crate) fn end(&mut self, block: Block) -> Result<(), Internal> {
        let data = self.function.block(block);
        self.origin = data.slot;
        match data.terminator {
            Terminator::Jump(_) | Terminator::Unset => self.push(Op::Jump, &[]),
            Terminator::Branch { condition, ty, args, .. } => {
                if self.folded_branch()? {
                    return Ok(());
                }
                let (condition, compare, operands) = self.compare(condition, ty, args)?;
                self.push_each(Op::Branch(condition, compare), operands);
            }
            Terminator::MayGoto(_) => {
                self.generator.current.needs.rounds = true;
                self.push(Op::MayGoto, &[]);
            }
            Terminator::Stop if self.generator.current.burst.is_some() => self.push(Op::Jump, &[]),
            Terminator::Stop => return Err(Internal("a function stops a loop that it is not in")),
            Terminator::Return(value) => {
                if let Some(burst) = self.generator.current.burst {
                    return self.next_packet(burst);
                }
                let value = self.value(value)?;
                self.push(Op::Return, &[fixed(value, A::RESULT)]);
            }
        }
        Ok(())
    }

    pub(super) fn inst(&mut self, inst: Inst) -> Result<(), Internal> {
        let data = *self.function.inst(inst);
        // Some operations have none.
        let result = data.result.map(of_number).ok_or(Internal("an operation has no result"));
        match data.op {
            // Each use makes them.
            Operation::Const { .. } | Operation::Address(_) | Operation::StackAddress { .. } => {}
            Operation::Binary { op, ty, args } => self.binary(op, ty, args, result?)?,
            Operation::Neg { ty, arg } => {
                let arg = self.value(arg)?;
                self.push(Op::Neg(width(ty)), &[used(arg), defined_in(result?, Place::Reuse(0))]);
            }
            Operation::SignExtend { from, ty, arg } => {
                let arg = self.value(arg)?;
                let op = Op::SignExtend(width(ty), from);
                self.push(op, &[used(arg), defined(result?)]);
            }
            Operation::ZeroExtend { arg } => {
                if data.result.is_some_and(|result| self.same(result) == result) {
                    let arg = self.value(arg)?;
                    self.push(Op::ZeroExtend(Size::W), &[used(arg), defined(result?)]);
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
                let arg = self.value(arg)?;
                self.push(op, &[used(arg), defined_in(result?, Place::Reuse(0))]);
            }
            Operation::Compare { condition, ty, args } => {
                let (condition, compare, operands) = self.compare(condition, ty, args)?;
                self.push_each(Op::Set(condition, compare), operands.chain([defined(result?)]));
            }
            Operation::Load { .. }
            | Operation::Store { .. }
            | Operation::Atomic { .. }
            | Operation::LoadAcquire { .. }
            | Operation::StoreRelease { .. }
            | Operation::PacketLoad { .. } => self.memory(&data.op, result)?,
            Operation::ContextLoad { size, signed, context, offset } => {
                self.load_context(size, signed, context, offset, result?)?;
            }
            Operation::ContextStore { size, offset, value, .. } => {
                self.store_context(size, offset, value)?;
            }
            Operation::Run(op) => self.run_op(op, result)?,
            Operation::Call { callee: callee @ (Callee::TailCall | Callee::Program), ref args } => {
                let result = if callee == Callee::Program { Some(result?) } else { None };
                self.tail_call(inst, args.as_slice(), result)?;
            }
            Operation::Call { callee, ref args } => self.call(inst, callee, args.as_slice(), result?)?,
        }
        Ok(())
    }

    /// Adds an instruction that overwrites nothing but its definitions.
    pub(super) fn push(&mut self, op: Op, operands: &[Operand]) {
        self.out.push(op, operands, RegSet::default(), self.origin);
    }

    /// The same with operands one by one.
    pub(super) fn push_each(&mut self, op: Op, operands: impl Iterator<Item = Operand>) {
        self.out.push_each(op, operands, RegSet::default(), self.origin);
    }

    pub(super) fn push_clobbering(&mut self, op: Op, operands: &[Operand], clobbers: RegSet) {
        self.out.push(op, operands, clobbers, self.origin);
    }

    /// A new virtual register.
    pub(super) fn fresh(&mut self) -> Vreg {
        self.out.add_vreg()
    }

    /// Slot of the instruction that is selected for.
    pub(super) fn slot(&self) -> Result<u32, Internal> {
        self.origin.ok_or(Internal("an operation is of no instruction"))
    }

    pub(super) fn host(&self) -> Result<Vreg, Internal> {
        self.generator.current.host.ok_or(Internal("a function has no host"))
    }

    /// The value whose register a value is in.
    pub(super) fn same(&self, value: Value) -> Value {
        same(self.function, value)
    }

    /// A register that has a value, which is made if it is known.
    pub(crate) fn value(&mut self, value: Value) -> Result<Vreg, Internal> {
        let value = self.same(value);
        let Some(op) = self.known(value)? else { return Ok(of_number(value)) };
        let vreg = self.fresh();
        self.push(op, &[defined(vreg)]);
        Ok(vreg)
    }

    /// The operation that makes a value which needs no operands.
    pub(super) fn known(&mut self, value: Value) -> Result<Option<Op>, Internal> {
        let Some(op) = self.function.op_of(value) else { return Ok(None) };
        Ok(Some(match *op {
            Operation::Const { value, .. } => Op::Number(value),
            Operation::StackAddress { offset } => Op::Stack(offset),
            Operation::Address(Address::Map(index)) => Op::Number(self.generator.map(index)?.handle),
            Operation::Address(Address::MapValue { map: index, offset }) => {
                let value = self.generator.map(index)?.value;
                let value = value.ok_or_else(|| self.generator.unsupported(Unsupported::Map { index }))?;
                Op::Number(value.wrapping_add(offset.into()))
            }
            Operation::Address(Address::Function(function)) => Op::Function(function),
            _ => return Ok(None),
        }))
    }

    /// The number that a value is, as the immediate of an instruction of a width.
    pub(super) fn immediate(&self, ty: Type, value: Value) -> Option<i32> {
        let number = self.function.as_const(self.same(value))?;
        match ty {
            Type::I32 => Some(number as u32 as i32),
            Type::I64 => i32::try_from(number.cast_signed()).ok(),
        }
    }

    /// Condition, comparison and its operands.
    pub(super) fn compare(
        &mut self,
        condition: Condition,
        ty: Type,
        args: [Value; 2],
    ) -> Result<(Condition, Compare, impl Iterator<Item = Operand> + use<A>), Internal> {
        let (mut condition, mut args) = (condition, args);
        if self.immediate(ty, args[0]).is_some() && self.immediate(ty, args[1]).is_none() {
            condition = condition.exchanged();
            args.reverse();
        }
        let [a, b] = args;
        let imm = self.immediate(ty, b);
        let tests = condition == Condition::Set;
        let compare = Compare { width: width(ty), tests, imm };
        let first = self.value(a)?;
        let second = if imm.is_none() { Some(self.value(b)?) } else { None };
        Ok((condition, compare, [first].into_iter().chain(second).map(used)))
    }
}
