//! Numbers by operations that passes make of several, or replace by several.

use super::Generator;
use crate::ir::entity::Value;
use crate::ir::op::{BinaryOp, Op};
use crate::ir::types::Type;

impl Generator<'_> {
    pub(super) fn divide_or_rotate(&mut self) {
        let ty = self.ty();
        let (value, ty) = if self.rng.bool() { self.divided(ty) } else { self.rotated(ty) };
        // It is stored, so that it is seen.
        let value = if ty == Type::I32 { self.compute(Op::ZeroExtend { arg: value }) } else { value };
        self.numbers.extend([(value, Type::I64); 3]);
        self.store();
    }

    /// A number that is no constant, if there is one.
    fn unknown(&mut self, ty: Type) -> Value {
        let is_unknown = |value: Value| !matches!(self.function.op_of(value), Some(Op::Const { .. }));
        let found: Vec<Value> = self
            .numbers
            .iter()
            .filter(|(value, of)| *of == ty && is_unknown(*value))
            .map(|(value, _)| *value)
            .collect();
        if found.is_empty() { self.number(ty) } else { self.pick(&found) }
    }

    fn with(&mut self, op: BinaryOp, ty: Type, a: Value, number: u64) -> Value {
        let number = self.constant(ty, number);
        self.compute(Op::Binary { op, ty, args: [a, number] })
    }

    /// A number next to a multiple of a divisor, divided by it.
    fn divided(&mut self, ty: Type) -> (Value, Type) {
        const DIVISORS: [u64; 9] = [3, 7, 10, 14, 641, 1000, 0x7fff_ffff, 0xffff_fffb, u64::MAX - 4];
        let divisor = if self.rng.bool() { self.pick(&DIVISORS) } else { self.interesting() };
        let mut a = self.unknown(ty);
        if self.rng.bool() {
            // A small one or none, or the largest or none.
            let most = ty.cut(u64::MAX);
            let factor = if self.rng.bool() { divisor } else { most - most % ty.cut(divisor).max(1) };
            let few = self.with(BinaryOp::And, ty, a, 1);
            let multiple = self.with(BinaryOp::Mul, ty, few, factor);
            let distance = self.pick(&[0, 1, u64::MAX]);
            a = self.with(BinaryOp::Add, ty, multiple, distance);
        }
        if ty == Type::I64 && self.rng.u8(..4) == 0 {
            let low = self.compute(Op::Truncate { arg: a });
            a = self.compute(Op::ZeroExtend { arg: low });
        }
        let op = self.pick(&[BinaryOp::Udiv, BinaryOp::Urem, BinaryOp::Sdiv, BinaryOp::Srem]);
        (self.with(op, ty, a, divisor), ty)
    }

    /// A rotation by two shifts, or nearly one.
    fn rotated(&mut self, ty: Type) -> (Value, Type) {
        let of = self.ty();
        let bits = u64::from(of.bits());
        let count = self.rng.u64(1..bits);
        let (a, other) = (self.unknown(of), self.unknown(of));
        let b = if self.rng.u8(..4) == 0 { other } else { a };
        let off = if self.rng.u8(..8) == 0 { 1 } else { 0 };
        let right = if self.rng.u8(..8) == 0 { BinaryOp::Ashr } else { BinaryOp::Lshr };
        let mut halves =
            [self.with(BinaryOp::Shl, of, a, count), self.with(right, of, b, bits - count + off)];
        if ty != of {
            let arg = |arg| if ty == Type::I64 { Op::ZeroExtend { arg } } else { Op::Truncate { arg } };
            halves = halves.map(|half| self.compute(arg(half)));
        }
        if self.rng.bool() {
            halves.reverse();
        }
        let op = self.pick(&[BinaryOp::Or, BinaryOp::Xor, BinaryOp::Add]);
        (self.compute(Op::Binary { op, ty, args: halves }), ty)
    }
}
