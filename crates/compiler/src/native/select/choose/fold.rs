//! Operations that are part of the branch at the end of their block: a load that is compared in memory, and a mask that is tested.

use crate::internal::Internal;
use crate::ir::uses::Uses;
use crate::ir::{BinaryOp, Block, Inst, Op as Operation, Terminator, Type, Value};
use paceline_isa::{Condition, Size};

use super::choice::{Choice, used, width};
use crate::native::machine::generator::Folded;
use crate::native::machine::op::{Compare, CompareMem, Op};
use crate::native::machine::target::Target;

const NO_PART: Internal = Internal("an operation is no part of its branch");

impl<A: Target> Choice<'_, '_, A> {
    /// Finds the operation that is part of a block's branch.
    pub(super) fn fold(&mut self, uses: &Uses, block: Block) {
        self.generator.current.folded = self.folded(uses, block);
    }

    fn folded(&self, uses: &Uses, block: Block) -> Option<Folded> {
        let data = self.function.block(block);
        let Terminator::Branch { condition, ty, args: [a, b], .. } = data.terminator else { return None };
        let found = |value, condition, other| {
            let inst = self.only_for(uses, value)?;
            let folded = Folded { inst, condition, ty, other };
            let at = data.insts.iter().rposition(|known| *known == inst)?;
            let fits = match self.function.inst(inst).op {
                Operation::Load { size, signed: false, .. } => {
                    self.compared(&folded, size).is_some()
                        && data.insts[at + 1..].iter().all(|later| self.can_pass(inst, *later))
                }
                Operation::Binary { op: BinaryOp::And, .. } => self.is_test(&folded),
                _ => false,
            };
            fits.then_some(folded)
        };
        found(a, condition, b).or_else(|| found(b, condition.exchanged(), a))
    }

    /// Whether a load can be made after another instruction.
    pub(super) fn can_pass(&self, load: Inst, later: Inst) -> bool {
        let [load, later] = [load, later].map(|inst| &self.function.inst(inst).op);
        !(later.stays() || load.reads_shared() && later.reads_shared())
    }

    /// The instruction that makes a value which has only one use.
    pub(super) fn only_for(&self, uses: &Uses, mut value: Value) -> Option<Inst> {
        loop {
            if uses.count(value) != 1 {
                return None;
            }
            match (self.function.op_of(value)?, self.function.value(value).def) {
                (Operation::Truncate { arg } | Operation::ZeroExtend { arg }, _)
                    if self.same(value) == self.same(*arg) =>
                {
                    value = *arg;
                }
                (_, crate::ir::Def::Result(inst)) => return Some(inst),
                _ => return None,
            }
        }
    }

    /// Whether the branch asks only whether the operation's result is 0.
    fn is_test(&self, folded: &Folded) -> bool {
        let is_full = match self.function.inst(folded.inst).op {
            Operation::Binary { ty, .. } => ty == folded.ty,
            _ => false,
        };
        is_full
            && matches!(folded.condition, Condition::Eq | Condition::Ne)
            && self.function.as_const(self.same(folded.other)) == Some(0)
    }

    /// Condition and immediate of a comparison of memory of a size; the immediate is missing for a comparison with a register.
    fn compared(&self, folded: &Folded, size: Size) -> Option<(Condition, Option<i32>)> {
        let is_whole = matches!((size, folded.ty), (Size::W, Type::I32) | (Size::Dw, Type::I64));
        let Some(number) = self.function.as_const(self.same(folded.other)) else {
            let is_plain = is_whole && folded.condition != Condition::Set;
            return is_plain.then_some((folded.condition, None));
        };
        let number = folded.ty.cut(number);
        if is_whole {
            return self.immediate(folded.ty, folded.other).map(|imm| (folded.condition, Some(imm)));
        }
        // Both are positive, and have no more bits than the memory.
        let fits = match size {
            Size::B => u8::try_from(number).is_ok(),
            // A longer immediate of 16 bits takes the decoder several cycles.
            Size::H => i8::try_from(number).is_ok(),
            Size::W => u32::try_from(number).is_ok(),
            Size::Dw => false,
        };
        let condition = match folded.condition {
            Condition::SGt => Condition::Gt,
            Condition::SGe => Condition::Ge,
            Condition::SLt => Condition::Lt,
            Condition::SLe => Condition::Le,
            Condition::Set if size == Size::H => return None,
            condition => condition,
        };
        let imm = if size == Size::B { i32::from(number as u8 as i8) } else { number as u32 as i32 };
        fits.then_some((condition, Some(imm)))
    }

    /// Whether an instruction is part of the branch.
    pub(super) fn is_folded(&self, inst: Inst) -> bool {
        self.generator.current.folded.is_some_and(|folded| folded.inst == inst)
    }

    /// The branch with the operation that is part of it. Returns whether there is one.
    pub(super) fn folded_branch(&mut self) -> Result<bool, Internal> {
        let Some(folded) = self.generator.current.folded.take() else { return Ok(false) };
        match self.function.inst(folded.inst).op {
            Operation::Load { size, base, offset, .. } => {
                let found = self.compared(&folded, size);
                let (condition, imm) = found.ok_or(NO_PART)?;
                let (at, base) = self.place(base, offset)?;
                let other = if imm.is_none() { Some(used(self.value(folded.other)?)) } else { None };
                let tests = condition == Condition::Set;
                let compare = CompareMem { size, at, tests, imm };
                self.push_each(Op::BranchMem(condition, compare), base.chain(other));
            }
            Operation::Binary { ty, args: [a, b], .. } => {
                let (a, b) = if self.immediate(ty, a).is_some() { (b, a) } else { (a, b) };
                let imm = self.immediate(ty, b);
                let first = self.value(a)?;
                let second = if imm.is_none() { Some(self.value(b)?) } else { None };
                let compare = Compare { width: width(ty), tests: true, imm };
                let operands = [first].into_iter().chain(second).map(used);
                self.push_each(Op::Branch(folded.condition, compare), operands);
            }
            _ => return Err(NO_PART),
        }
        Ok(true)
    }
}
