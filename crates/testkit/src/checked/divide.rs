//! Division and remainder, with the results that BPF defines where `div` and `idiv` trap.

use paceline_isa::{AluOp, Operand};

use super::emitter::{Emitter, SCRATCH_2, gpr};
use paceline_compiler::native::machine::x64::Label;
use paceline_compiler::native::machine::x64::Width;
use paceline_compiler::native::machine::x64::{Alu, Cond, Gpr};

impl Emitter<'_> {
    pub(super) fn divide(&mut self, op: AluOp, width: Width, dst: Gpr, src: Operand) {
        match src {
            Operand::Imm(imm) if width == Width::Q64 => self.asm.mov_ri(SCRATCH_2, imm as u64),
            Operand::Imm(imm) => self.asm.mov_ri(SCRATCH_2, u64::from(imm as u32)),
            Operand::Reg(reg) => self.asm.mov_rr(width, SCRATCH_2, gpr(reg)),
        }
        let (zero, done) = (self.asm.new_label(), self.asm.new_label());
        self.asm.test_rr(width, SCRATCH_2, SCRATCH_2);
        self.asm.jcc(Cond::E, zero);
        self.divide_by_scratch(op, width, dst, done);
        self.asm.jmp(done);
        self.asm.bind(zero);
        // The quotient is 0, and the remainder is the dividend.
        if matches!(op, AluOp::Div | AluOp::SDiv) {
            self.set(dst, 0);
        } else if width == Width::D32 {
            self.asm.mov_rr(width, dst, dst);
        }
        self.asm.bind(done);
    }

    /// Divides by the second scratch register, which is nonzero.
    fn divide_by_scratch(&mut self, op: AluOp, width: Width, dst: Gpr, done: Label) {
        let signed = matches!(op, AluOp::SDiv | AluOp::SMod);
        let wants_quotient = matches!(op, AluOp::Div | AluOp::SDiv);
        // The least number divided by -1 overflows, and traps.
        if signed {
            let other = self.asm.new_label();
            self.asm.alu_ri(Alu::Cmp, width, SCRATCH_2, -1);
            self.asm.jcc(Cond::Ne, other);
            if wants_quotient {
                self.asm.neg(width, dst);
            } else {
                self.set(dst, 0);
            }
            self.asm.jmp(done);
            self.asm.bind(other);
        }
        let saved = [Gpr::Rax, Gpr::Rdx].into_iter().filter(|&gpr| gpr != dst);
        for gpr in saved.clone() {
            self.asm.push(gpr);
        }
        if dst != Gpr::Rax {
            self.asm.mov_rr(width, Gpr::Rax, dst);
        }
        if signed {
            self.asm.sign_to_rdx(width);
            self.asm.idiv(width, SCRATCH_2);
        } else {
            self.asm.alu_rr(Alu::Xor, Width::D32, Gpr::Rdx, Gpr::Rdx);
            self.asm.div(width, SCRATCH_2);
        }
        let result = if wants_quotient { Gpr::Rax } else { Gpr::Rdx };
        if dst != result {
            self.asm.mov_rr(Width::Q64, dst, result);
        }
        for gpr in saved.rev() {
            self.asm.pop(gpr);
        }
    }
}
