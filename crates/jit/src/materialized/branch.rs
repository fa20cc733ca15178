//! Conditional jumps.

use paceline_isa::{Condition, Insn, Operand, Reg, Width};

use crate::emitter::Emitter;
use crate::error::CompileError;
use crate::plan::{SCRATCH, SCRATCH_2, native};
use crate::x64::{Alu, Cond, OpSize};

/// The x86 condition for a BPF condition after `cmp`, or after `test` for [`Condition::Set`].
pub(crate) const fn cond(condition: Condition) -> Cond {
    match condition {
        Condition::Eq => Cond::E,
        Condition::Ne | Condition::Set => Cond::Ne,
        Condition::Gt => Cond::A,
        Condition::Ge => Cond::Ae,
        Condition::Lt => Cond::B,
        Condition::Le => Cond::Be,
        Condition::SGt => Cond::G,
        Condition::SGe => Cond::Ge,
        Condition::SLt => Cond::L,
        Condition::SLe => Cond::Le,
    }
}

impl Emitter<'_> {
    pub(crate) fn jump_if(
        &mut self,
        slot: usize,
        insn: &Insn,
        width: Width,
        condition: Condition,
        dst: Reg,
        src: Operand,
    ) -> Result<(), CompileError> {
        let fact = self.source.fact(slot);
        if !fact.may_jump {
            return Ok(());
        }
        let target = self.target(slot, insn.jump_target(slot))?;
        if fact.may_fall_through {
            self.compare(width, condition, dst, src);
            self.asm.jcc(cond(condition), target);
        } else {
            self.asm.jmp(target);
        }
        Ok(())
    }

    /// The 64-bit counter becomes negative when the rounds are used up, and stays negative.
    pub(crate) fn may_goto(&mut self, slot: usize, insn: &Insn) -> Result<(), CompileError> {
        let target = self.target(slot, insn.jump_target(slot))?;
        match self.plan.rounds_left() {
            Some(rounds_left) => {
                self.asm.alu_mi(Alu::Sub, OpSize::Q64, rounds_left, 1);
                self.asm.jcc(Cond::S, target);
            }
            None => self.checked_may_goto(slot, target),
        }
        Ok(())
    }

    /// Emits `cmp` or `test` for a condition.
    fn compare(&mut self, width: Width, condition: Condition, dst: Reg, src: Operand) {
        let width = native(width);
        let dst = self.value(dst, SCRATCH);
        match src {
            Operand::Imm(imm) if condition == Condition::Set => self.asm.test_ri(width, dst, imm),
            Operand::Imm(0) => self.asm.test_rr(width, dst, dst),
            Operand::Imm(imm) => self.asm.alu_ri(Alu::Cmp, width, dst, imm),
            Operand::Reg(reg) => {
                let src = self.value(reg, SCRATCH_2);
                if condition == Condition::Set {
                    self.asm.test_rr(width, dst, src);
                } else {
                    self.asm.alu_rr(Alu::Cmp, width, dst, src);
                }
            }
        }
    }
}
