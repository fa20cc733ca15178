//! Arithmetic.

use paceline_isa::Size;

use super::{Regs, X64, alu, shift};
use crate::internal::Internal;
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::op::{Compare, Op, ShiftOp, right};
use crate::native::machine::operand::{Scale, Width};
use crate::native::machine::x64::asm::{Alu, Cond, Gpr, Mem, OpSize, Shift, ShiftX};
use crate::native::machine::x64::regs::SCRATCH;

impl X64<'_> {
    pub(super) fn arithmetic(&mut self, op: Op, regs: Regs<'_>) -> Result<(), Internal> {
        let (first, second, result) = (regs.get(0)?, regs.get(1)?, regs.last()?);
        match op {
            Op::Add(width) => self.add(width, first, second, result),
            Op::Sum(scale, distance) => {
                self.asm.lea(Width::Q64, result, Mem::indexed(first, second, scale, distance));
            }
            Op::AddImm(width, imm) if first == result => self.asm.alu_ri(Alu::Add, width, result, imm),
            Op::AddImm(width, imm) => self.asm.lea(width, result, Mem::at(first, imm)),
            Op::Alu(op, width) => self.asm.alu_rr(alu(op), width, result, second),
            Op::AluImm(op, width, imm) => self.asm.alu_ri(alu(op), width, result, imm),
            Op::Mul(width) => self.asm.imul_rr(width, result, second),
            Op::MulImm(width, imm) => self.asm.imul_rri(width, result, first, imm),
            Op::Neg(width) => self.asm.neg(width, result),
            Op::Shift(op, width) => match by_any_register(op).filter(|_| self.features.bmi2) {
                Some(op) => self.asm.shiftx(op, width, result, first, second),
                None => self.asm.shift_rcl(shift(op), width, result),
            },
            Op::ShiftImm(op, width, count) => self.shift_imm(op, width, count, [first, result]),
            Op::MulHigh(width) if self.features.bmi2 => self.asm.mulx(width, result, result, first),
            Op::MulHigh(width) => self.asm.mul(width, first),
            Op::Divide { width, signed, remainder } => self.divide(width, signed, remainder, second),
            Op::DivideBy { width, signed, number, .. } => self.divide_by(width, signed, number),
            Op::ZeroExtend(size) => self.asm.movzx_rr(OpSize::of(size), result, first),
            Op::SignExtend(width, from) => self.asm.movsx_rr(width, OpSize::of(from), result, first),
            Op::Swap(size) => self.swap(size, result),
            Op::SwapHalf => self.asm.shift_ri(Shift::Rol, OpSize::W16, result, 8),
            Op::Set(condition, compare) => {
                self.compare(compare, regs)?;
                self.asm.setcc(Cond::of(condition), result);
                self.asm.movzx_rr(OpSize::B8, result, result);
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    fn shift_imm(&mut self, op: ShiftOp, width: Width, count: u8, [first, result]: [Gpr; 2]) {
        match op {
            // A shift by 0 truncates the operand to 32 bits.
            _ if width == Width::D32 && count == 0 => self.asm.mov_rr(width, result, first),
            ShiftOp::Rotl if first != result => self.asm.rorx(width, result, first, right(width, count)),
            _ => self.asm.shift_ri(shift(op), width, result, count),
        }
    }

    fn add(&mut self, width: Width, first: Gpr, second: Gpr, result: Gpr) {
        if result == first {
            self.asm.alu_rr(Alu::Add, width, result, second);
        } else if result == second {
            self.asm.alu_rr(Alu::Add, width, result, first);
        } else {
            self.asm.lea(width, result, Mem::indexed(first, second, Scale::One, 0));
        }
    }

    fn swap(&mut self, size: Size, gpr: Gpr) {
        match size {
            Size::B => self.asm.movzx_rr(OpSize::B8, gpr, gpr),
            Size::H => {
                self.asm.shift_ri(Shift::Rol, OpSize::W16, gpr, 8);
                self.asm.movzx_rr(OpSize::W16, gpr, gpr);
            }
            Size::W => self.asm.bswap(Width::D32, gpr),
            Size::Dw => self.asm.bswap(Width::Q64, gpr),
        }
    }

    /// Divides `rax` by a number for which `div` and `idiv` do not trap.
    fn divide_by(&mut self, width: Width, signed: bool, number: u64) {
        self.set(SCRATCH, number);
        if signed {
            self.asm.sign_to_rdx(width);
            self.asm.idiv(width, SCRATCH);
        } else {
            self.set(Gpr::Rdx, 0);
            self.asm.div(width, SCRATCH);
        }
    }

    /// Divides `rax`, with the results that BPF defines where `div` and `idiv` trap.
    fn divide(&mut self, width: Width, signed: bool, remainder: bool, divisor: Gpr) {
        let (zero, done) = (self.asm.new_label(), self.asm.new_label());
        // The divisor may be in `rdx`.
        self.asm.mov_rr(width, SCRATCH, divisor);
        self.asm.test_rr(width, SCRATCH, SCRATCH);
        self.asm.jcc(Cond::E, zero);
        if signed {
            let other = self.asm.new_label();
            self.asm.alu_ri(Alu::Cmp, width, SCRATCH, -1);
            self.asm.jcc(Cond::Ne, other);
            if remainder {
                self.set(Gpr::Rdx, 0);
            } else {
                self.asm.neg(width, Gpr::Rax);
            }
            self.asm.jmp(done);
            self.asm.bind(other);
            self.asm.sign_to_rdx(width);
            self.asm.idiv(width, SCRATCH);
        } else {
            self.set(Gpr::Rdx, 0);
            self.asm.div(width, SCRATCH);
        }
        self.asm.jmp(done);
        self.asm.bind(zero);
        if remainder {
            self.asm.mov_rr(width, Gpr::Rdx, Gpr::Rax);
        } else {
            self.set(Gpr::Rax, 0);
        }
        self.asm.bind(done);
    }

    /// Sets the flags by the first operand and the second, or a number.
    pub(super) fn compare(&mut self, compare: Compare, regs: Regs<'_>) -> Result<(), Internal> {
        let (first, width) = (regs.get(0)?, compare.width);
        match compare.imm {
            Some(imm) if compare.tests => self.asm.test_ri(width, first, imm),
            Some(0) => self.asm.test_rr(width, first, first),
            Some(imm) => self.asm.alu_ri(Alu::Cmp, width, first, imm),
            None if compare.tests => self.asm.test_rr(width, first, regs.get(1)?),
            None => self.asm.alu_rr(Alu::Cmp, width, first, regs.get(1)?),
        }
        Ok(())
    }
}

/// The shift by a count in any register, for those that there are.
const fn by_any_register(op: ShiftOp) -> Option<ShiftX> {
    match op {
        ShiftOp::Shl => Some(ShiftX::Shlx),
        ShiftOp::Lshr => Some(ShiftX::Shrx),
        ShiftOp::Ashr => Some(ShiftX::Sarx),
        ShiftOp::Rotl => None,
    }
}
