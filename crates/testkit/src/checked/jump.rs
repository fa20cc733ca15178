//! Conditional jumps.

use paceline_isa::{Condition, Operand, Reg};

use super::emitter::{Emitter, gpr};
use paceline_compiler::native::machine::x64::Label;
use paceline_compiler::native::machine::x64::Width;
use paceline_compiler::native::machine::x64::{Alu, Cond};

impl Emitter<'_> {
    pub(super) fn jump_if(
        &mut self,
        width: Width,
        condition: Condition,
        dst: Reg,
        src: Operand,
        target: Label,
    ) {
        let dst = gpr(dst);
        match src {
            Operand::Imm(imm) if condition == Condition::Set => self.asm.test_ri(width, dst, imm),
            Operand::Imm(imm) => self.asm.alu_ri(Alu::Cmp, width, dst, imm),
            Operand::Reg(reg) if condition == Condition::Set => self.asm.test_rr(width, dst, gpr(reg)),
            Operand::Reg(reg) => self.asm.alu_rr(Alu::Cmp, width, dst, gpr(reg)),
        }
        self.asm.jcc(Cond::of(condition), target);
    }
}
