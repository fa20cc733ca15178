//! Division and remainder, with the results that BPF defines where `div` and `idiv` trap.

mod reciprocal;

use paceline_isa::{self as isa, AluOp, Operand};

use crate::emitter::Emitter;
use crate::plan::{SCRATCH, SCRATCH_2, immediate};
use crate::x64::{Alu, Cond, Gpr, Shift, Width};

use reciprocal::Reciprocal;

/// Whether the code of an operation may push registers temporarily.
pub(crate) fn pushes(width: isa::Width, op: AluOp, src: Operand) -> bool {
    match op {
        // For 64 bits this depends on the CPU's features, so it is assumed.
        AluOp::Div | AluOp::Mod => !immediate(src)
            .is_some_and(|imm| imm == 0 || is_power(op, imm) || imm > 0 && width == isa::Width::W32),
        AluOp::SDiv | AluOp::SMod => immediate(src) != Some(0),
        _ => false,
    }
}

/// Whether an unsigned division by the immediate is a shift, and its remainder a mask that fits an immediate.
fn is_power(op: AluOp, imm: i32) -> bool {
    imm > 0 && imm.cast_unsigned().is_power_of_two() && matches!(op, AluOp::Div | AluOp::Mod)
}

impl Emitter<'_> {
    pub(crate) fn divide(&mut self, op: AluOp, width: Width, dst: Gpr, src: Operand) {
        let wants_quotient = matches!(op, AluOp::Div | AluOp::SDiv);
        match immediate(src) {
            Some(0) => self.divide_by_zero(wants_quotient, width, dst),
            Some(imm) if is_power(op, imm) => self.divide_by_power(wants_quotient, width, dst, imm),
            Some(imm) if self.divide_by_number(op, width, dst, imm) => {}
            Some(imm) => {
                self.asm
                    .mov_ri(SCRATCH_2, if width == Width::Q64 { imm as u64 } else { u64::from(imm as u32) });
                self.divide_by_scratch(op, width, dst, Some(imm));
            }
            None => {
                let Operand::Reg(reg) = src else { return };
                let divisor = self.value(reg, SCRATCH);
                let (zero, done) = (self.asm.new_label(), self.asm.new_label());
                self.asm.mov_rr(width, SCRATCH_2, divisor);
                self.asm.test_rr(width, SCRATCH_2, SCRATCH_2);
                self.asm.jcc(Cond::E, zero);
                self.divide_by_scratch(op, width, dst, None);
                self.asm.jmp(done);
                self.asm.bind(zero);
                self.divide_by_zero(wants_quotient, width, dst);
                self.asm.bind(done);
            }
        }
    }

    /// The quotient is 0, and the remainder is the dividend.
    fn divide_by_zero(&mut self, wants_quotient: bool, width: Width, dst: Gpr) {
        if wants_quotient {
            self.set(dst, 0);
        } else if width == Width::D32 {
            self.asm.mov_rr(width, dst, dst);
        }
    }

    fn divide_by_power(&mut self, wants_quotient: bool, width: Width, dst: Gpr, imm: i32) {
        match imm.trailing_zeros() {
            _ if !wants_quotient => self.asm.alu_ri(Alu::And, Width::D32, dst, imm - 1),
            0 if width == Width::D32 => self.asm.mov_rr(width, dst, dst),
            0 => {}
            count => self.asm.shift_ri(Shift::Shr, width, dst, count as u8),
        }
    }

    /// Multiplies by the divisor's reciprocal, if that takes fewer cycles.
    fn divide_by_number(&mut self, op: AluOp, width: Width, dst: Gpr, imm: i32) -> bool {
        let wants_quotient = match op {
            AluOp::Div => true,
            AluOp::Mod => false,
            _ => return false,
        };
        let bits = if width == Width::Q64 { 64 } else { 32 };
        let divisor = u32::try_from(imm).ok();
        let Some(reciprocal) = divisor.and_then(|divisor| Reciprocal::of(bits, divisor)) else {
            return false;
        };
        match width {
            Width::D32 => self.quotient_of_32(dst, reciprocal),
            Width::Q64 if self.settings.features.bmi2 => self.quotient_of_64(dst, reciprocal),
            Width::Q64 => return false,
        }
        if wants_quotient {
            self.asm.mov_rr(width, dst, SCRATCH);
        } else {
            self.asm.imul_rri(width, SCRATCH, SCRATCH, imm);
            self.asm.alu_rr(Alu::Sub, width, dst, SCRATCH);
        }
        true
    }

    /// Computes the quotient into the first scratch register.
    fn quotient_of_32(&mut self, dst: Gpr, reciprocal: Reciprocal) {
        self.asm.mov_rr(Width::D32, SCRATCH_2, dst);
        match i32::try_from(reciprocal.multiplier) {
            Ok(multiplier) => self.asm.imul_rri(Width::Q64, SCRATCH, SCRATCH_2, multiplier),
            Err(_) => {
                self.asm.mov_ri(SCRATCH, reciprocal.multiplier);
                self.asm.imul_rr(Width::Q64, SCRATCH, SCRATCH_2);
            }
        }
        if reciprocal.adds {
            self.asm.shift_ri(Shift::Shr, Width::Q64, SCRATCH, 32);
            self.asm.alu_rr(Alu::Add, Width::Q64, SCRATCH, SCRATCH_2);
            self.asm.shift_ri(Shift::Shr, Width::Q64, SCRATCH, reciprocal.shift);
        } else {
            self.asm.shift_ri(Shift::Shr, Width::Q64, SCRATCH, 32 + reciprocal.shift);
        }
    }

    /// The same for 64 bits. `rdx` is saved in a scratch register meanwhile.
    fn quotient_of_64(&mut self, dst: Gpr, reciprocal: Reciprocal) {
        self.asm.mov_rr(Width::Q64, SCRATCH, Gpr::Rdx);
        self.asm.mov_ri(Gpr::Rdx, reciprocal.multiplier);
        self.asm.mulx(Width::Q64, SCRATCH_2, SCRATCH_2, if dst == Gpr::Rdx { SCRATCH } else { dst });
        self.asm.mov_rr(Width::Q64, Gpr::Rdx, SCRATCH);
        if reciprocal.adds {
            // The sum may need 65 bits; half of the difference avoids that.
            self.asm.mov_rr(Width::Q64, SCRATCH, dst);
            self.asm.alu_rr(Alu::Sub, Width::Q64, SCRATCH, SCRATCH_2);
            self.asm.shift_ri(Shift::Shr, Width::Q64, SCRATCH, 1);
            self.asm.alu_rr(Alu::Add, Width::Q64, SCRATCH, SCRATCH_2);
            self.asm.shift_ri(Shift::Shr, Width::Q64, SCRATCH, reciprocal.shift - 1);
        } else {
            self.asm.mov_rr(Width::Q64, SCRATCH, SCRATCH_2);
            self.asm.shift_ri(Shift::Shr, Width::Q64, SCRATCH, reciprocal.shift);
        }
    }

    /// Divides by the second scratch register, which is nonzero.
    fn divide_by_scratch(&mut self, op: AluOp, width: Width, dst: Gpr, imm: Option<i32>) {
        let signed = matches!(op, AluOp::SDiv | AluOp::SMod);
        let wants_quotient = matches!(op, AluOp::Div | AluOp::SDiv);
        let done = self.asm.new_label();
        // The least number divided by -1 overflows, and traps.
        if signed && imm.is_none_or(|imm| imm == -1) {
            let other = self.asm.new_label();
            if imm.is_none() {
                self.asm.alu_ri(Alu::Cmp, width, SCRATCH_2, -1);
                self.asm.jcc(Cond::Ne, other);
            }
            if wants_quotient {
                self.asm.neg(width, dst);
            } else {
                self.set(dst, 0);
            }
            if imm.is_some() {
                return;
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
        self.asm.bind(done);
    }
}
