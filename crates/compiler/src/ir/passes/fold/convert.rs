//! Operations with one operand: extensions, byte swaps, negation.

use paceline_isa::Size;

use super::{Change, Fold, Numbering};
use crate::ir::entity::Value;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::Type;

impl<N: Numbering> Fold<'_, N> {
    pub(super) fn convert(&mut self, op: &Op) -> Option<Change> {
        match *op {
            Op::Neg { arg, .. } => match self.op_of(arg)? {
                Op::Neg { arg, .. } => Some(Change::Value(arg)),
                _ => None,
            },
            Op::ZeroExtend { arg } => match self.op_of(arg)? {
                // Nothing is cut off.
                Op::Truncate { arg } if self.range(arg).umax() <= u32::MAX.into() => Some(Change::Value(arg)),
                _ => None,
            },
            Op::Truncate { arg } => self.truncate(arg),
            Op::SignExtend { from, ty, arg } => self.sign_extend(from, ty, arg),
            Op::Swap { size, ty, arg } => match self.op_of(arg)? {
                Op::Swap { size: inner, arg, .. } if inner == size => {
                    let mask = paceline_isa::eval::zero_extend(size, u64::MAX);
                    if ty.cut(u64::MAX) == mask {
                        return Some(Change::Value(arg));
                    }
                    let mask = self.emit(Op::constant(ty, mask));
                    Some(Change::Op(Op::Binary { op: BinaryOp::And, ty, args: [arg, mask] }))
                }
                _ => None,
            },
            _ => None,
        }
    }

    fn truncate(&mut self, arg: Value) -> Option<Change> {
        match self.op_of(arg)? {
            Op::ZeroExtend { arg } | Op::SignExtend { from: Size::W, arg, .. } => Some(Change::Value(arg)),
            // The low half of the result needs the low halves of the operands only.
            Op::Binary { op, args: [a, b], .. }
                if matches!(
                    op,
                    BinaryOp::Add
                        | BinaryOp::Sub
                        | BinaryOp::Mul
                        | BinaryOp::And
                        | BinaryOp::Or
                        | BinaryOp::Xor
                ) && self.is_narrow(a)
                    && self.is_narrow(b) =>
            {
                let args = [a, b].map(|arg| self.narrowed(arg));
                Some(Change::Op(Op::Binary { op, ty: Type::I32, args }))
            }
            Op::Binary { op: BinaryOp::Or | BinaryOp::Xor | BinaryOp::Add, args, .. } => {
                Some(Change::Op(self.rotated_low(args)?))
            }
            _ => None,
        }
    }

    /// Whether the low half of a value needs no conversion.
    fn is_narrow(&self, value: Value) -> bool {
        matches!(self.op_of(value), Some(Op::ZeroExtend { .. } | Op::Const { .. }))
    }

    /// The low half of a value.
    fn narrowed(&mut self, value: Value) -> Value {
        match self.op_of(value) {
            Some(Op::ZeroExtend { arg }) => arg,
            Some(Op::Const { value, .. }) => self.constant(Type::I32, value),
            _ => self.emit(Op::Truncate { arg: value }),
        }
    }

    fn sign_extend(&mut self, from: Size, ty: Type, arg: Value) -> Option<Change> {
        let sign = 1_u64 << (8 * from.bytes() - 1);
        // The sign is known to be 0, and so are the bits above.
        if self.range(arg).umax() < sign {
            return match from {
                Size::W => Some(Change::Op(Op::ZeroExtend { arg })),
                _ => Some(Change::Value(arg)),
            };
        }
        match self.op_of(arg)? {
            Op::SignExtend { from: inner, ty: same, arg } if inner <= from && same == ty => {
                Some(Change::Op(Op::SignExtend { from: inner, ty, arg }))
            }
            _ => None,
        }
    }
}
