//! Algebra of operations with two operands.

use super::{Change, Fold, Numbering};
use crate::ir::entity::Value;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::Type;

impl<N: Numbering> Fold<'_, N> {
    pub(super) fn binary(&mut self, op: BinaryOp, ty: Type, [a, b]: [Value; 2]) -> Option<Change> {
        let binary = |op, args| Some(Change::Op(Op::Binary { op, ty, args }));
        match (self.as_const(a), self.as_const(b)) {
            // Constants are second operands.
            (Some(_), None) if op.is_commutative() => binary(op, [b, a]),
            (Some(0), None)
                if matches!(op, BinaryOp::Shl | BinaryOp::Lshr | BinaryOp::Ashr | BinaryOp::Rotl) =>
            {
                Some(Change::Value(a))
            }
            (_, Some(constant)) => self.with_constant(op, ty, a, constant),
            _ if a == b => self.with_itself(op, ty, a),
            _ => self.rotation(op, ty, [a, b]).or_else(|| match op {
                BinaryOp::Or => self.masked(ty, a, b).or_else(|| self.masked(ty, b, a)),
                _ => None,
            }),
        }
    }

    /// `(x << n & mask) | other`, where no bit can be in both: the mask goes outside, so that what is put together is seen as a whole.
    fn masked(&mut self, ty: Type, a: Value, other: Value) -> Option<Change> {
        let Op::Binary { op: BinaryOp::And, args: [inner, mask], .. } = self.op_of(a)? else { return None };
        let Op::Binary { op: BinaryOp::Shl, .. } = self.op_of(inner)? else { return None };
        let (mask, bits) = (self.as_const(mask)?, self.range(other).bits().max());
        if self.range(inner).bits().max() & bits != 0 {
            return None;
        }
        let whole = self.emit(Op::Binary { op: BinaryOp::Or, ty, args: [inner, other] });
        self.with_number(BinaryOp::And, ty, whole, mask | bits)
    }

    /// `a op a`
    fn with_itself(&self, op: BinaryOp, ty: Type, a: Value) -> Option<Change> {
        match op {
            BinaryOp::Sub | BinaryOp::Xor => Some(Change::Op(Op::constant(ty, 0))),
            BinaryOp::And | BinaryOp::Or => Some(Change::Value(a)),
            _ => None,
        }
    }

    /// `a op constant`
    fn with_constant(&mut self, op: BinaryOp, ty: Type, a: Value, constant: u64) -> Option<Change> {
        let zero = Some(Change::Op(Op::constant(ty, 0)));
        let same = Some(Change::Value(a));
        let is_all = constant == ty.cut(u64::MAX);
        let power = constant.is_power_of_two().then(|| u64::from(constant.trailing_zeros()));
        match (op, constant) {
            (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Or | BinaryOp::Xor, 0) => same,
            (BinaryOp::And | BinaryOp::Mul | BinaryOp::Umulhi | BinaryOp::Udiv | BinaryOp::Sdiv, 0)
            | (BinaryOp::Umulhi, 1) => zero,
            (BinaryOp::Mul | BinaryOp::Udiv | BinaryOp::Sdiv, 1) => same,
            (BinaryOp::Urem | BinaryOp::Srem, 0) => same,
            (BinaryOp::Urem | BinaryOp::Srem, 1) => zero,
            (BinaryOp::Sdiv, _) if is_all => Some(Change::Op(Op::Neg { ty, arg: a })),
            (BinaryOp::Srem, _) if is_all => zero,
            (BinaryOp::And, _) if is_all => same,
            (BinaryOp::Or, _) if is_all => Some(Change::Op(Op::constant(ty, constant))),
            (BinaryOp::Sub, _) => {
                let negative = self.constant(ty, constant.wrapping_neg());
                Some(Change::Op(Op::Binary { op: BinaryOp::Add, ty, args: [a, negative] }))
            }
            (BinaryOp::Add, _) => self.add(ty, a, constant),
            (BinaryOp::Mul, _) => self.with_number(BinaryOp::Shl, ty, a, power?),
            (BinaryOp::Udiv, _) => match power {
                Some(power) => self.with_number(BinaryOp::Lshr, ty, a, power),
                None => self.quotient_by(ty, a, constant),
            },
            (BinaryOp::Urem, _) => match power {
                Some(_) => self.with_number(BinaryOp::And, ty, a, constant - 1),
                None => self.remainder_by(ty, a, constant),
            },
            (BinaryOp::And, _) => self.and(ty, a, constant),
            (BinaryOp::Shl | BinaryOp::Lshr | BinaryOp::Ashr | BinaryOp::Rotl, _) => {
                self.shift(op, ty, a, constant)
            }
            _ => None,
        }
    }

    /// An operation with a number.
    fn with_number(&mut self, op: BinaryOp, ty: Type, a: Value, constant: u64) -> Option<Change> {
        let constant = self.constant(ty, constant);
        Some(Change::Op(Op::Binary { op, ty, args: [a, constant] }))
    }

    fn add(&mut self, ty: Type, a: Value, constant: u64) -> Option<Change> {
        match self.op_of(a)? {
            Op::StackAddress { offset } => {
                let distance = i32::try_from(constant.cast_signed()).ok()?;
                Some(Change::Op(Op::StackAddress { offset: offset.checked_add(distance)? }))
            }
            Op::Binary { op: BinaryOp::Add, args: [inner, b], .. } => {
                let sum = self.as_const(b)?.wrapping_add(constant);
                self.with_number(BinaryOp::Add, ty, inner, sum)
            }
            _ => None,
        }
    }

    fn and(&mut self, ty: Type, a: Value, mask: u64) -> Option<Change> {
        let bits = self.range(a).bits();
        // All bits that can be set are kept.
        if bits.max() & !mask == 0 {
            return Some(Change::Value(a));
        }
        match self.op_of(a)? {
            Op::Binary { op: BinaryOp::And, args: [inner, b], .. } => {
                let both = self.as_const(b)? & mask;
                self.with_number(BinaryOp::And, ty, inner, both)
            }
            _ if ty == Type::I64 && mask == u32::MAX.into() => {
                let low = self.emit(Op::Truncate { arg: a });
                Some(Change::Op(Op::ZeroExtend { arg: low }))
            }
            _ => None,
        }
    }

    fn shift(&mut self, op: BinaryOp, ty: Type, a: Value, count: u64) -> Option<Change> {
        let masked = count & u64::from(ty.bits() - 1);
        if masked == 0 {
            return Some(Change::Value(a));
        }
        if masked != count {
            return self.with_number(op, ty, a, masked);
        }
        let Op::Binary { op: inner_op, args: [inner, b], .. } = self.op_of(a)? else { return None };
        let inner_count = self.as_const(b)? & u64::from(ty.bits() - 1);
        match (inner_op, op) {
            // A pair of shifts that clears or copies the sign of the upper half.
            (BinaryOp::Shl, BinaryOp::Lshr) if ty == Type::I64 && (inner_count, count) == (32, 32) => {
                let low = self.emit(Op::Truncate { arg: inner });
                Some(Change::Op(Op::ZeroExtend { arg: low }))
            }
            (BinaryOp::Shl, BinaryOp::Ashr) if ty == Type::I64 && (inner_count, count) == (32, 32) => {
                let low = self.emit(Op::Truncate { arg: inner });
                Some(Change::Op(Op::SignExtend { from: paceline_isa::Size::W, ty, arg: low }))
            }
            (BinaryOp::Shl, BinaryOp::Lshr) if inner_count == count => {
                self.with_number(BinaryOp::And, ty, inner, ty.cut(u64::MAX) >> count)
            }
            (BinaryOp::Lshr, BinaryOp::Shl) if inner_count == count => {
                self.with_number(BinaryOp::And, ty, inner, ty.cut(u64::MAX << count))
            }
            (BinaryOp::Rotl, BinaryOp::Rotl) => self.with_number(op, ty, inner, inner_count + count),
            (first, second) if first == second && op != BinaryOp::Ashr => {
                let sum = inner_count + count;
                if sum >= ty.bits().into() {
                    return Some(Change::Op(Op::constant(ty, 0)));
                }
                self.with_number(op, ty, inner, sum)
            }
            _ => None,
        }
    }
}
