//! Rotations, which BPF expresses as two shifts and an `or`, `xor` or sum.

use super::{Change, Fold, Numbering};
use crate::ir::entity::Value;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::Type;

/// A number shifted by a constant, as far as it counts.
struct Half {
    is_left: bool,
    arg: Value,
    /// The value that both halves of a rotation must shift.
    root: Value,
    count: u64,
}

impl<N: Numbering> Fold<'_, N> {
    /// `(x << n) op (x >> bits - n)`
    pub(super) fn rotation(&mut self, op: BinaryOp, ty: Type, args: [Value; 2]) -> Option<Change> {
        if !matches!(op, BinaryOp::Or | BinaryOp::Xor | BinaryOp::Add) {
            return None;
        }
        if ty == Type::I32 {
            return Some(Change::Op(self.rotated_low(args)?));
        }
        if let Some((arg, count)) = rotated(64, args.map(|arg| self.half(arg))) {
            let count = self.constant(ty, count);
            return Some(Change::Op(Op::Binary { op: BinaryOp::Rotl, ty, args: [arg, count] }));
        }
        let low = rotated(32, args.map(|arg| self.low_half(arg)))?;
        // Nothing is above what is rotated.
        if args.iter().any(|arg| self.range(*arg).umax() > u32::MAX.into()) {
            return None;
        }
        let low = self.rotl(low);
        Some(Change::Op(Op::ZeroExtend { arg: self.emit(low) }))
    }

    /// The low half of `a op b`, if it is a rotation of 32 bits.
    pub(super) fn rotated_low(&mut self, args: [Value; 2]) -> Option<Op> {
        let low = rotated(32, args.map(|arg| self.low_half(arg)))?;
        Some(self.rotl(low))
    }

    /// A rotation of a value's low half.
    fn rotl(&mut self, (arg, count): (Value, u64)) -> Op {
        let args = [self.low(arg), self.constant(Type::I32, count)];
        Op::Binary { op: BinaryOp::Rotl, ty: Type::I32, args }
    }

    /// A shift of 64 bits.
    fn half(&self, value: Value) -> Option<Half> {
        let Op::Binary { op, ty: Type::I64, args: [arg, count] } = self.op_of(value)? else { return None };
        let is_left = is_left(op)?;
        Some(Half { is_left, arg, root: arg, count: self.as_const(count)? & 63 })
    }

    /// The shift of 32 bits that makes the low half of a value.
    fn low_half(&self, value: Value) -> Option<Half> {
        let Op::Binary { op, ty, args: [arg, count] } = self.op_of(self.root(value))? else { return None };
        let is_left = is_left(op)?;
        let count = self.as_const(count)? & u64::from(ty.bits() - 1);
        // No bit comes from above.
        let is_low = is_left || ty == Type::I32 || self.range(arg).umax() <= u32::MAX.into();
        (is_low && count < 32).then_some(Half { is_left, arg, root: self.root(arg), count })
    }

    /// A value with the same low half that is no conversion of another one.
    fn root(&self, mut value: Value) -> Value {
        while let Some(Op::Truncate { arg } | Op::ZeroExtend { arg }) = self.op_of(value) {
            value = arg;
        }
        value
    }

    /// The low half of a value as an `i32`.
    fn low(&mut self, value: Value) -> Value {
        match self.function.value(value).ty {
            Type::I32 => value,
            Type::I64 => self.emit(Op::Truncate { arg: value }),
        }
    }
}

const fn is_left(op: BinaryOp) -> Option<bool> {
    match op {
        BinaryOp::Shl => Some(true),
        BinaryOp::Lshr => Some(false),
        _ => None,
    }
}

/// The rotated value and the count to the left of two shifts, if they make a rotation.
fn rotated(bits: u64, halves: [Option<Half>; 2]) -> Option<(Value, u64)> {
    let [Some(a), Some(b)] = halves else { return None };
    let (left, right) = if a.is_left { (a, b) } else { (b, a) };
    let is_whole = left.is_left && !right.is_left && left.count + right.count == bits;
    (is_whole && left.root == right.root).then_some((left.arg, left.count))
}
