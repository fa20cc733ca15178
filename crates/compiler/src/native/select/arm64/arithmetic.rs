//! Arithmetic.

use paceline_isa::Size;

use super::regs::{SCRATCH, SECOND};
use super::{Arm64, Assigned, immediate};
use crate::native::arm64::{Arith, Divide, Gpr, Logic, Shift};
use crate::native::select::op::{Compare, Op, right};
use crate::native::x64::Width;
use crate::native::x64::{self, OpSize, Scale, ShiftX};

impl Arm64<'_> {
    pub(super) fn arithmetic(&mut self, op: Op, regs: Assigned<'_>) {
        let (first, second, result) = (regs.get(0), regs.get(1), regs.last());
        match op {
            Op::Add(width) => self.asm.arith(Arith::Add, width, result, first, second, 0),
            Op::Sum(scale, distance) => {
                let shift = match scale {
                    Scale::One => 0,
                    Scale::Two => 1,
                    Scale::Four => 2,
                    Scale::Eight => 3,
                };
                self.asm.arith(Arith::Add, Width::Q64, result, first, second, shift);
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
            Op::ShiftX(shift, width) => {
                let shift = match shift {
                    ShiftX::Shlx => Shift::Lsl,
                    ShiftX::Shrx => Shift::Lsr,
                    ShiftX::Sarx => Shift::Asr,
                };
                self.asm.shift(shift, width, result, first, second);
            }
            Op::ShiftImm(shift, width, count) => {
                let shift = match shift {
                    x64::Shift::Shl => Shift::Lsl,
                    x64::Shift::Shr => Shift::Lsr,
                    x64::Shift::Sar => Shift::Asr,
                    x64::Shift::Rol | x64::Shift::Ror => {
                        return self.internal("a rotation is selected for arm64");
                    }
                };
                self.asm.shift_imm(shift, width, result, first, count);
            }
            Op::MulHigh(Width::Q64) => self.asm.umulh(result, first, second),
            Op::MulHigh(Width::D32) => {
                self.asm.umull(result, first, second);
                self.asm.shift_imm(Shift::Lsr, Width::Q64, result, result, 32);
            }
            Op::Rotate(width) => {
                self.asm.arith(Arith::Sub, width, SECOND, Gpr::Zr, second, 0);
                self.asm.shift(Shift::Ror, width, result, first, SECOND);
            }
            Op::RotateImm(width, count) => {
                self.asm.shift_imm(Shift::Ror, width, result, first, right(width, count));
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
            Op::Set(cond, compare) => {
                self.compare(compare, regs);
                let cond = self.condition(cond);
                self.asm.cset(cond, result);
            }
            _ => self.internal("an instruction is emitted as one of another kind"),
        }
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

    fn zero_extend(&mut self, size: OpSize, to: Gpr, from: Gpr) {
        match size {
            OpSize::B8 => self.asm.zero_extend(to, from, 8),
            OpSize::W16 => self.asm.zero_extend(to, from, 16),
            OpSize::D32 => self.asm.mov(Width::D32, to, from),
            OpSize::Q64 => self.asm.mov(Width::Q64, to, from),
        }
    }

    fn sign_extend(&mut self, width: Width, size: OpSize, to: Gpr, from: Gpr) {
        match size {
            OpSize::B8 => self.asm.sign_extend(width, to, from, 8),
            OpSize::W16 => self.asm.sign_extend(width, to, from, 16),
            OpSize::D32 if width == Width::Q64 => self.asm.sign_extend(width, to, from, 32),
            OpSize::D32 => self.asm.mov(Width::D32, to, from),
            OpSize::Q64 => self.asm.mov(Width::Q64, to, from),
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
    pub(super) fn compare(&mut self, compare: Compare, regs: Assigned<'_>) {
        let (first, width) = (regs.get(0), compare.width);
        match compare.imm {
            Some(imm) if compare.tests => self.test_imm(width, first, imm),
            Some(imm) => self.compare_imm(width, first, imm),
            None if compare.tests => self.asm.logic(Logic::Ands, width, Gpr::Zr, first, regs.get(1)),
            None => self.asm.arith(Arith::Subs, width, Gpr::Zr, first, regs.get(1), 0),
        }
    }
}
