//! Arithmetic.

use paceline_isa::Size;

use super::{Aarch64, Regs, immediate};
use crate::internal::Internal;
use crate::native::machine::aarch64::asm::{Arith, Cond, Divide, Gpr, Logic, Shift};
use crate::native::machine::aarch64::regs::{SCRATCH, SECOND};
use crate::native::machine::emit::OTHER_KIND;
use crate::native::machine::op::{Compare, Op, ShiftOp, right};
use crate::native::machine::operand::Width;

impl Aarch64<'_> {
    pub(super) fn arithmetic(&mut self, op: Op, regs: Regs<'_>) -> Result<(), Internal> {
        let (first, second, result) = (regs.get(0)?, regs.get(1)?, regs.last()?);
        match op {
            Op::Add(width) => self.asm.arith(Arith::Add, width, result, first, second, 0),
            Op::Sum(scale, distance) => {
                self.asm.arith(Arith::Add, Width::Q64, result, first, second, scale as u8);
                if distance != 0 {
                    self.add_imm(Width::Q64, result, result, distance);
                }
            }
            Op::AddImm(width, imm) => self.add_imm(width, result, first, imm),
            Op::Alu(alu, width) => self.alu(alu, width, result, first, second),
            Op::AluImm(alu, width, imm) => self.alu_imm(alu, width, result, first, imm),
            Op::Mul(width) => self.asm.mul(width, result, first, second),
            Op::MulImm(width, imm) => {
                self.asm.mov_imm(SECOND, immediate(width, imm));
                self.asm.mul(width, result, first, SECOND);
            }
            Op::Neg(width) => self.asm.arith(Arith::Sub, width, result, Gpr::Zr, first, 0),
            Op::Shift(ShiftOp::Rotl, width) => {
                self.asm.arith(Arith::Sub, width, SECOND, Gpr::Zr, second, 0);
                self.asm.shift(Shift::Ror, width, result, first, SECOND);
            }
            Op::Shift(op, width) => self.asm.shift(shift(op), width, result, first, second),
            Op::ShiftImm(op, width, count) => {
                let count = if op == ShiftOp::Rotl { right(width, count) } else { count };
                self.asm.shift_imm(shift(op), width, result, first, count);
            }
            Op::MulHigh(Width::Q64) => self.asm.umulh(result, first, second),
            Op::MulHigh(Width::D32) => {
                self.asm.umull(result, first, second);
                self.asm.shift_imm(Shift::Lsr, Width::Q64, result, result, 32);
            }
            Op::Divide { width, signed, remainder } => {
                self.divide(width, signed, remainder, [first, second, result]);
            }
            Op::DivideBy { width, signed, remainder, number } => {
                self.asm.mov_imm(SECOND, number);
                self.divide(width, signed, remainder, [first, SECOND, result]);
            }
            Op::ZeroExtend(size) => self.zero_extend(size, result, first),
            Op::SignExtend(width, from) => self.sign_extend(width, from, result, first),
            Op::Swap(size) => self.swap(size, result, first),
            Op::SwapHalf => self.asm.rev16(result, first),
            Op::Set(condition, compare) => {
                self.compare(compare, regs)?;
                self.asm.cset(Cond::of(condition), result);
            }
            _ => return Err(OTHER_KIND),
        }
        Ok(())
    }

    /// Divides as BPF does: a quotient by 0 is 0, so that the remainder is the dividend, and the smallest number divided by -1 is itself.
    fn divide(&mut self, width: Width, signed: bool, remainder: bool, [a, b, result]: [Gpr; 3]) {
        let op = if signed { Divide::Sdiv } else { Divide::Udiv };
        if remainder {
            self.asm.divide(op, width, SCRATCH, a, b);
            self.asm.msub(width, result, SCRATCH, b, a);
        } else {
            self.asm.divide(op, width, result, a, b);
        }
    }

    fn zero_extend(&mut self, size: Size, to: Gpr, from: Gpr) {
        match size {
            Size::B => self.asm.zero_extend(to, from, 8),
            Size::H => self.asm.zero_extend(to, from, 16),
            Size::W => self.asm.mov(Width::D32, to, from),
            Size::Dw => self.asm.mov(Width::Q64, to, from),
        }
    }

    fn sign_extend(&mut self, width: Width, size: Size, to: Gpr, from: Gpr) {
        match size {
            Size::B => self.asm.sign_extend(width, to, from, 8),
            Size::H => self.asm.sign_extend(width, to, from, 16),
            Size::W if width == Width::Q64 => self.asm.sign_extend(width, to, from, 32),
            Size::W => self.asm.mov(Width::D32, to, from),
            Size::Dw => self.asm.mov(Width::Q64, to, from),
        }
    }

    pub(super) fn swap(&mut self, size: Size, to: Gpr, from: Gpr) {
        match size {
            Size::B => self.asm.zero_extend(to, from, 8),
            Size::H => {
                self.asm.rev16(to, from);
                self.asm.zero_extend(to, to, 16);
            }
            Size::W => self.asm.rev(Width::D32, to, from),
            Size::Dw => self.asm.rev(Width::Q64, to, from),
        }
    }

    /// Sets the flags by the first operand and the second, or a number.
    pub(super) fn compare(&mut self, compare: Compare, regs: Regs<'_>) -> Result<(), Internal> {
        let (first, width) = (regs.get(0)?, compare.width);
        match compare.imm {
            Some(imm) if compare.tests => self.test_imm(width, first, imm),
            Some(imm) => self.compare_imm(width, first, imm),
            None if compare.tests => self.asm.logic(Logic::Ands, width, Gpr::Zr, first, regs.get(1)?),
            None => self.asm.arith(Arith::Subs, width, Gpr::Zr, first, regs.get(1)?, 0),
        }
        Ok(())
    }
}

/// The shift that is one to the right for a rotation to the left.
const fn shift(op: ShiftOp) -> Shift {
    match op {
        ShiftOp::Shl => Shift::Lsl,
        ShiftOp::Lshr => Shift::Lsr,
        ShiftOp::Ashr => Shift::Asr,
        ShiftOp::Rotl => Shift::Ror,
    }
}
