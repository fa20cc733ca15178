//! The instructions.

use paceline_isa::{Insn, Operand};

use super::next::Next;
use super::registers::Transformer;
use crate::checker::{check_supported, immediate};
use crate::error::{Check, invariant};

impl Transformer<'_> {
    /// Runs one instruction on the state.
    pub(crate) fn run(&mut self, insn: &Insn) -> Check<Next> {
        let next = Next::Go(self.slot + insn.slots());
        match *insn {
            Insn::Alu { width, op, dst, src } => self.alu(width, op, dst, src)?,
            Insn::Neg { width, dst } => self.negate(width, dst)?,
            Insn::MovSx { width, from, dst, src } => self.move_extended(width, from, dst, src)?,
            Insn::Swap { order, size, dst } => self.swap(order, size, dst)?,
            Insn::LoadImm64 { dst, value } => {
                let value = immediate(self.env, self.slot, value)?;
                self.check().check_function_address(&value)?;
                self.write(dst, value)?;
            }
            Insn::Load { size, signed, dst, base, offset } => {
                let value = self.load(base, offset, size, signed)?;
                self.write(dst, value)?;
            }
            Insn::Store { size, base, offset, src } => self.store(base, offset, size, src)?,
            Insn::Atomic { width, op, base, offset, src } => self.atomic(width, op, base, offset, src)?,
            Insn::LoadAcquire { size, dst, base, offset } => {
                self.check().check_atomic_target(base, offset, size)?;
                let value = self.load(base, offset, size, false)?;
                self.write(dst, value)?;
            }
            Insn::StoreRelease { size, base, offset, src } => {
                self.check().check_atomic_target(base, offset, size)?;
                self.store(base, offset, size, Operand::Reg(src))?;
            }
            Insn::Jump { .. } | Insn::JumpLong { .. } => {
                self.records.facts.branch(self.slot, true);
                return Ok(Next::Go(self.jump_target(insn)?));
            }
            Insn::JumpIf { width, condition, dst, src, .. } => {
                let target = self.jump_target(insn)?;
                return self.branch(width, condition, dst, src, target);
            }
            Insn::Call(callee) => return self.call(insn, callee),
            Insn::Exit => return self.exit(),
            Insn::LoadPacket { size, index, .. } => return self.load_packet(size, index),
            Insn::MayGoto { .. } => return Ok(self.may_goto(self.jump_target(insn)?)),
            Insn::AddrSpaceCast { .. } | Insn::CallReg(_) => check_supported(insn)?,
        }
        Ok(next)
    }

    #[inline]
    fn jump_target(&self, insn: &Insn) -> Check<usize> {
        let target = insn.jump_target(self.slot).and_then(|target| usize::try_from(target).ok());
        invariant(target, "the targets of jumps were checked")
    }
}
