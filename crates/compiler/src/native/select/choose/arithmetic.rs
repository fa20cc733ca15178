//! Arithmetic with two operands.

use crate::codegen::lir::{Place, Vreg};
use crate::internal::Internal;
use crate::ir::{BinaryOp, Type, Value};
use paceline_isa::Size;

use super::choice::{Choice, defined, defined_in, used, used_in, width};
use super::parts::Sum;
use crate::native::machine::op::{AluOp, Op, ShiftOp};
use crate::native::machine::operand::Width;
use crate::native::machine::target::Target;

impl<A: Target> Choice<'_, '_, A> {
    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        ty: Type,
        args: [Value; 2],
        result: Vreg,
    ) -> Result<(), Internal> {
        let [mut a, mut b] = args;
        if op.is_commutative() && self.immediate(ty, a).is_some() {
            (a, b) = (b, a);
        }
        if let Some(imm) = self.immediate(ty, b)
            && self.binary_imm(op, ty, a, imm, result)?
        {
            return Ok(());
        }
        if let (BinaryOp::Add, Some(Sum { base, index, scale, distance })) = (op, self.sum([a, b])) {
            let operands = [used(self.value(base)?), used(self.value(index)?), defined(result)];
            self.push(Op::Sum(scale, distance), &operands);
            return Ok(());
        }
        if self.divide_by(op, ty, [a, b], result)? {
            return Ok(());
        }
        let (a, b, width) = (self.value(a)?, self.value(b)?, width(ty));
        let in_first = [used(a), used(b), defined_in(result, Place::Reuse(0))];
        match op {
            BinaryOp::Add => self.push(Op::Add(width), &[used(a), used(b), defined(result)]),
            BinaryOp::Sub => self.push(Op::Alu(AluOp::Sub, width), &in_first),
            BinaryOp::Or => self.push(Op::Alu(AluOp::Or, width), &in_first),
            BinaryOp::And => self.push(Op::Alu(AluOp::And, width), &in_first),
            BinaryOp::Xor => self.push(Op::Alu(AluOp::Xor, width), &in_first),
            BinaryOp::Mul => self.push(Op::Mul(width), &in_first),
            BinaryOp::Shl => self.push_placed(Op::Shift(ShiftOp::Shl, width), &[a, b], result),
            BinaryOp::Lshr => self.push_placed(Op::Shift(ShiftOp::Lshr, width), &[a, b], result),
            BinaryOp::Ashr => self.push_placed(Op::Shift(ShiftOp::Ashr, width), &[a, b], result),
            BinaryOp::Rotl => self.push_placed(Op::Shift(ShiftOp::Rotl, width), &[a, b], result),
            // Constants are second operands, so that a register that the operation is tied to is theirs.
            BinaryOp::Umulhi => self.push_placed(Op::MulHigh(width), &[a, b], result),
            BinaryOp::Udiv => self.divide(width, false, false, [a, b], result),
            BinaryOp::Sdiv => self.divide(width, true, false, [a, b], result),
            BinaryOp::Urem => self.divide(width, false, true, [a, b], result),
            BinaryOp::Srem => self.divide(width, true, true, [a, b], result),
        }
        Ok(())
    }

    /// An operation whose operands the machine may tie to registers.
    fn push_placed(&mut self, op: Op, uses: &[Vreg], result: Vreg) {
        let places = A::places(op, self.generator.features);
        let uses = uses.iter().zip(places.uses).map(|(vreg, place)| used_in(*vreg, place));
        let operands = uses.chain([defined_in(result, places.result)]);
        self.out.push_each(op, operands, places.clobbers, self.origin);
    }

    /// A division by a number that needs no special case. Returns whether it is one.
    fn divide_by(
        &mut self,
        op: BinaryOp,
        ty: Type,
        [a, b]: [Value; 2],
        result: Vreg,
    ) -> Result<bool, Internal> {
        let (signed, remainder) = match op {
            BinaryOp::Udiv => (false, false),
            BinaryOp::Sdiv => (true, false),
            BinaryOp::Urem => (false, true),
            BinaryOp::Srem => (true, true),
            _ => return Ok(false),
        };
        let Some(number) = self.function.as_const(self.same(b)).map(|number| ty.cut(number)) else {
            return Ok(false);
        };
        if number == 0 || signed && number == ty.cut(u64::MAX) {
            return Ok(false);
        }
        let op = Op::DivideBy { width: width(ty), signed, remainder, number };
        let a = self.value(a)?;
        self.push_placed(op, &[a], result);
        Ok(true)
    }

    fn divide(&mut self, width: Width, signed: bool, remainder: bool, operands: [Vreg; 2], result: Vreg) {
        self.push_placed(Op::Divide { width, signed, remainder }, &operands, result);
    }

    /// An operation with a number. Returns whether there is an instruction for it.
    fn binary_imm(
        &mut self,
        op: BinaryOp,
        ty: Type,
        a: Value,
        imm: i32,
        result: Vreg,
    ) -> Result<bool, Internal> {
        let width = width(ty);
        let count = (imm.cast_unsigned() & (ty.bits() - 1)) as u8;
        let power = imm.cast_unsigned().is_power_of_two() && imm > 0;
        let (op, in_first) = match (op, imm) {
            (BinaryOp::Add, _) => (Op::AddImm(width, imm), false),
            (BinaryOp::Sub, _) if imm != i32::MIN => (Op::AddImm(width, -imm), false),
            (BinaryOp::And, 0xff) => (Op::ZeroExtend(Size::B), false),
            (BinaryOp::And, 0xffff) => (Op::ZeroExtend(Size::H), false),
            // A positive number has zeros above.
            (BinaryOp::And, 0..) => (Op::AluImm(AluOp::And, Width::D32, imm), true),
            (BinaryOp::And, _) => (Op::AluImm(AluOp::And, width, imm), true),
            (BinaryOp::Sub, _) => (Op::AluImm(AluOp::Sub, width, imm), true),
            (BinaryOp::Or, _) => (Op::AluImm(AluOp::Or, width, imm), true),
            (BinaryOp::Xor, _) => (Op::AluImm(AluOp::Xor, width, imm), true),
            (BinaryOp::Mul, _) => (Op::MulImm(width, imm), false),
            (BinaryOp::Shl, _) => (Op::ShiftImm(ShiftOp::Shl, width, count), true),
            (BinaryOp::Lshr, _) => (Op::ShiftImm(ShiftOp::Lshr, width, count), true),
            (BinaryOp::Ashr, _) => (Op::ShiftImm(ShiftOp::Ashr, width, count), true),
            (BinaryOp::Rotl, _) => {
                let a = self.value(a)?;
                self.push_placed(Op::ShiftImm(ShiftOp::Rotl, width, count), &[a], result);
                return Ok(true);
            }
            (BinaryOp::Udiv, _) if power => {
                (Op::ShiftImm(ShiftOp::Lshr, width, imm.trailing_zeros() as u8), true)
            }
            (BinaryOp::Urem, _) if power => (Op::AluImm(AluOp::And, Width::D32, imm - 1), true),
            _ => return Ok(false),
        };
        let a = self.value(a)?;
        let place = if in_first { Place::Reuse(0) } else { Place::Any };
        self.push(op, &[used(a), defined_in(result, place)]);
        Ok(true)
    }
}
