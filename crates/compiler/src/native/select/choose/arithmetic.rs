//! Arithmetic with two operands.

use crate::codegen::lir::{Place, RegSet, Vreg};
use crate::ir::{BinaryOp, Type, Value};

use super::parts::Sum;
use super::{Choice, defined, defined_in, fixed, used, width};
use crate::native::select::op::Op;
use crate::native::select::target::{Fixed, Target};
use crate::native::x64::{Alu, OpSize, Shift, ShiftX, Width};

impl<A: Target> Choice<'_, '_, A> {
    pub(super) fn binary(&mut self, op: BinaryOp, ty: Type, args: [Value; 2], result: Vreg) {
        let [mut a, mut b] = args;
        if op.is_commutative() && self.immediate(ty, a).is_some() {
            (a, b) = (b, a);
        }
        if let Some(imm) = self.immediate(ty, b)
            && self.binary_imm(op, ty, a, imm, result)
        {
            return;
        }
        if let (BinaryOp::Add, Some(Sum { base, index, scale, distance })) = (op, self.sum([a, b])) {
            let operands = [used(self.value(base)), used(self.value(index)), defined(result)];
            return self.push(Op::Sum(scale, distance), &operands);
        }
        if self.divide_by(op, ty, [a, b], result) {
            return;
        }
        let (a, b, width) = (self.value(a), self.value(b), width(ty));
        let in_first = [used(a), used(b), defined_in(result, Place::Same(0))];
        match op {
            BinaryOp::Add => self.push(Op::Add(width), &[used(a), used(b), defined(result)]),
            BinaryOp::Sub => self.push(Op::Alu(Alu::Sub, width), &in_first),
            BinaryOp::Or => self.push(Op::Alu(Alu::Or, width), &in_first),
            BinaryOp::And => self.push(Op::Alu(Alu::And, width), &in_first),
            BinaryOp::Xor => self.push(Op::Alu(Alu::Xor, width), &in_first),
            BinaryOp::Mul => self.push(Op::Mul(width), &in_first),
            BinaryOp::Shl => self.shift(Shift::Shl, ShiftX::Shlx, width, [a, b], result),
            BinaryOp::Lshr => self.shift(Shift::Shr, ShiftX::Shrx, width, [a, b], result),
            BinaryOp::Ashr => self.shift(Shift::Sar, ShiftX::Sarx, width, [a, b], result),
            BinaryOp::Rotl => match A::FIXED {
                None => self.push(Op::Rotate(width), &[used(a), used(b), defined(result)]),
                Some(tied) => {
                    let operands = [used(a), fixed(b, tied.count), defined_in(result, Place::Same(0))];
                    self.push(Op::Shift(Shift::Rol, width), &operands);
                }
            },
            BinaryOp::Umulhi => self.mul_high(width, [a, b], result),
            BinaryOp::Udiv => self.divide(width, false, false, [a, b], result),
            BinaryOp::Sdiv => self.divide(width, true, false, [a, b], result),
            BinaryOp::Urem => self.divide(width, false, true, [a, b], result),
            BinaryOp::Srem => self.divide(width, true, true, [a, b], result),
        }
    }

    fn shift(&mut self, op: Shift, x: ShiftX, width: Width, [a, count]: [Vreg; 2], result: Vreg) {
        match A::FIXED.filter(|_| !self.generator.features.bmi2) {
            None => self.push(Op::ShiftX(x, width), &[used(a), used(count), defined(result)]),
            Some(tied) => {
                let operands = [used(a), fixed(count, tied.count), defined_in(result, Place::Same(0))];
                self.push(Op::Shift(op, width), &operands);
            }
        }
    }

    /// The high half of a product. Constants are second operands, so that the tied register is theirs.
    fn mul_high(&mut self, width: Width, [a, b]: [Vreg; 2], result: Vreg) {
        let op = Op::MulHigh(width);
        match A::FIXED {
            None => self.push(op, &[used(a), used(b), defined(result)]),
            // `mulx` has one operand in the register of the upper half, and changes it not.
            Some(tied) if self.generator.features.bmi2 => {
                self.push(op, &[used(a), fixed(b, tied.remainder), defined(result)]);
            }
            Some(tied) => {
                let operands =
                    [used(a), fixed(b, tied.quotient), defined_in(result, Place::Fixed(tied.remainder))];
                self.push_clobbering(op, &operands, RegSet::default().with(tied.quotient));
            }
        }
    }

    /// A division by a number that needs no special case. Returns whether it is one.
    fn divide_by(&mut self, op: BinaryOp, ty: Type, [a, b]: [Value; 2], result: Vreg) -> bool {
        let (signed, remainder) = match op {
            BinaryOp::Udiv => (false, false),
            BinaryOp::Sdiv => (true, false),
            BinaryOp::Urem => (false, true),
            BinaryOp::Srem => (true, true),
            _ => return false,
        };
        let Some(number) = self.function.as_const(self.same(b)).map(|number| ty.cut(number)) else {
            return false;
        };
        if number == 0 || signed && number == ty.cut(u64::MAX) {
            return false;
        }
        let op = Op::DivideBy { width: width(ty), signed, remainder, number };
        let a = self.value(a);
        match A::FIXED {
            None => self.push(op, &[used(a), defined(result)]),
            Some(Fixed { quotient, remainder: rest, .. }) => {
                let (written, other) = if remainder { (rest, quotient) } else { (quotient, rest) };
                let operands = [fixed(a, quotient), defined_in(result, Place::Fixed(written))];
                self.push_clobbering(op, &operands, RegSet::default().with(other));
            }
        }
        true
    }

    fn divide(&mut self, width: Width, signed: bool, remainder: bool, [a, b]: [Vreg; 2], result: Vreg) {
        let op = Op::Divide { width, signed, remainder };
        let Some(Fixed { quotient, remainder: rest, .. }) = A::FIXED else {
            return self.push(op, &[used(a), used(b), defined(result)]);
        };
        let (written, other) = if remainder { (rest, quotient) } else { (quotient, rest) };
        let operands = [fixed(a, quotient), used(b), defined_in(result, Place::Fixed(written))];
        self.push_clobbering(op, &operands, RegSet::default().with(other));
    }

    /// An operation with a number. Returns whether there is an instruction for it.
    fn binary_imm(&mut self, op: BinaryOp, ty: Type, a: Value, imm: i32, result: Vreg) -> bool {
        let width = width(ty);
        let count = (imm.cast_unsigned() & (ty.bits() - 1)) as u8;
        let power = imm.cast_unsigned().is_power_of_two() && imm > 0;
        let (op, in_first) = match (op, imm) {
            (BinaryOp::Add, _) => (Op::AddImm(width, imm), false),
            (BinaryOp::Sub, _) if imm != i32::MIN => (Op::AddImm(width, -imm), false),
            (BinaryOp::And, 0xff) => (Op::ZeroExtend(OpSize::B8), false),
            (BinaryOp::And, 0xffff) => (Op::ZeroExtend(OpSize::W16), false),
            // A positive number has zeros above.
            (BinaryOp::And, 0..) => (Op::AluImm(Alu::And, Width::D32, imm), true),
            (BinaryOp::And, _) => (Op::AluImm(Alu::And, width, imm), true),
            (BinaryOp::Sub, _) => (Op::AluImm(Alu::Sub, width, imm), true),
            (BinaryOp::Or, _) => (Op::AluImm(Alu::Or, width, imm), true),
            (BinaryOp::Xor, _) => (Op::AluImm(Alu::Xor, width, imm), true),
            (BinaryOp::Mul, _) => (Op::MulImm(width, imm), false),
            (BinaryOp::Shl, _) => (Op::ShiftImm(Shift::Shl, width, count), true),
            (BinaryOp::Lshr, _) => (Op::ShiftImm(Shift::Shr, width, count), true),
            (BinaryOp::Ashr, _) => (Op::ShiftImm(Shift::Sar, width, count), true),
            (BinaryOp::Rotl, _) => {
                (Op::RotateImm(width, count), A::FIXED.is_some() && !self.generator.features.bmi2)
            }
            (BinaryOp::Udiv, _) if power => {
                (Op::ShiftImm(Shift::Shr, width, imm.trailing_zeros() as u8), true)
            }
            (BinaryOp::Urem, _) if power => (Op::AluImm(Alu::And, Width::D32, imm - 1), true),
            _ => return false,
        };
        let a = self.value(a);
        let place = if in_first { Place::Same(0) } else { Place::Any };
        self.push(op, &[used(a), defined_in(result, place)]);
        true
    }
}
