//! Division and remainder by a constant that is no power of two: multiplication by its [`Reciprocal`].

use paceline_isa::Condition;

use super::reciprocal::Reciprocal;
use super::{Change, Fold, Numbering};
use crate::ir::entity::Value;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::Type;

impl<N: Numbering> Fold<'_, N> {
    /// `a / divisor`, unsigned.
    pub(super) fn quotient_by(&mut self, ty: Type, a: Value, divisor: u64) -> Option<Change> {
        Some(Change::Op(self.quotient(ty, a, divisor)?))
    }

    /// `a % divisor`, unsigned.
    pub(super) fn remainder_by(&mut self, ty: Type, a: Value, divisor: u64) -> Option<Change> {
        if self.range(a).umax() < divisor {
            return Some(Change::Value(a));
        }
        let quotient = self.quotient(ty, a, divisor)?;
        let quotient = self.emit(quotient);
        let divisor = self.constant(ty, divisor);
        let multiple = self.emit(Op::Binary { op: BinaryOp::Mul, ty, args: [quotient, divisor] });
        Some(Change::Op(Op::Binary { op: BinaryOp::Sub, ty, args: [a, multiple] }))
    }

    fn quotient(&mut self, ty: Type, a: Value, divisor: u64) -> Option<Op> {
        let most = self.range(a).umax();
        if most < divisor {
            return Some(Op::constant(ty, 0));
        }
        // It is 0 or 1.
        if most - divisor < divisor {
            let args = [a, self.constant(ty, divisor)];
            let is_one = Op::Compare { condition: Condition::Ge, ty, args };
            return Some(match ty {
                Type::I32 => is_one,
                Type::I64 => Op::ZeroExtend { arg: self.emit(is_one) },
            });
        }
        if most > u32::MAX.into() {
            return self.quotient_of_64(a, most, divisor);
        }
        match ty {
            Type::I32 => {
                let wide = self.emit(Op::ZeroExtend { arg: a });
                let quotient = self.quotient_of_32(wide, most, divisor)?;
                Some(Op::Truncate { arg: self.emit(quotient) })
            }
            Type::I64 => self.quotient_of_32(a, most, divisor),
        }
    }

    /// The quotient of an `i64` that has no more than 32 bits.
    fn quotient_of_32(&mut self, a: Value, most: u64, divisor: u64) -> Option<Op> {
        let Reciprocal { multiplier, adds, shift } = Reciprocal::of(32, bits(most), divisor)?;
        let shift = u64::from(shift);
        if adds && divisor.is_multiple_of(2) {
            let (half, most, divisor) = self.halved(a, most, divisor);
            return self.quotient_of_32(half, most, divisor);
        }
        let product = self.with(BinaryOp::Mul, a, multiplier);
        let product = self.emit(product);
        if !adds {
            return Some(self.with(BinaryOp::Lshr, product, 32 + shift));
        }
        let high = self.with(BinaryOp::Lshr, product, 32);
        let args = [self.emit(high), a];
        let sum = self.emit(binary(BinaryOp::Add, args));
        Some(self.with(BinaryOp::Lshr, sum, shift))
    }

    fn quotient_of_64(&mut self, a: Value, most: u64, divisor: u64) -> Option<Op> {
        let Reciprocal { multiplier, adds, shift } = Reciprocal::of(64, bits(most), divisor)?;
        let shift = u64::from(shift);
        if adds && divisor.is_multiple_of(2) {
            let (half, most, divisor) = self.halved(a, most, divisor);
            return self.quotient_of_64(half, most, divisor);
        }
        let high = self.with(BinaryOp::Umulhi, a, multiplier);
        if !adds {
            return Some(self.shifted(high, shift));
        }
        // The sum may need 65 bits; half of the difference avoids that.
        let high = self.emit(high);
        let difference = self.emit(binary(BinaryOp::Sub, [a, high]));
        let half = self.with(BinaryOp::Lshr, difference, 1);
        let args = [self.emit(half), high];
        Some(self.shifted(binary(BinaryOp::Add, args), shift - 1))
    }

    /// A dividend, the most that it is, and its divisor without the zeros at the end of that: fewer bits need no longer multiplier.
    fn halved(&mut self, a: Value, most: u64, divisor: u64) -> (Value, u64, u64) {
        let zeros = divisor.trailing_zeros();
        let half = self.with(BinaryOp::Lshr, a, zeros.into());
        (self.emit(half), most >> zeros, divisor >> zeros)
    }

    fn with(&mut self, op: BinaryOp, a: Value, number: u64) -> Op {
        binary(op, [a, self.constant(Type::I64, number)])
    }

    fn shifted(&mut self, op: Op, count: u64) -> Op {
        if count == 0 {
            return op;
        }
        let value = self.emit(op);
        self.with(BinaryOp::Lshr, value, count)
    }
}

fn binary(op: BinaryOp, args: [Value; 2]) -> Op {
    Op::Binary { op, ty: Type::I64, args }
}

/// How many bits a number has.
const fn bits(number: u64) -> u8 {
    (u64::BITS - number.leading_zeros()) as u8
}
