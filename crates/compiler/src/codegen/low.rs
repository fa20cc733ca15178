//! 32-bit values in registers of 64 bits, whose upper half is not defined: a truncation is its operand, and an extension is one only if the
//! operation that makes its operand does not clear the upper half.

use crate::ir::{Function, Op, Value};
use paceline_isa::Size;

/// The value whose register a value is in.
#[must_use]
#[inline]
pub fn same(function: &Function, value: Value) -> Value {
    match function.op_of(value) {
        Some(Op::Truncate { .. } | Op::ZeroExtend { .. }) => operand(function, value),
        _ => value,
    }
}

/// The same for a truncation or an extension.
fn operand(function: &Function, value: Value) -> Value {
    let mut same = value;
    loop {
        match function.op_of(same) {
            Some(Op::Truncate { arg }) => same = *arg,
            Some(Op::ZeroExtend { arg }) if is_clear_above(function, *arg) => same = *arg,
            _ => return same,
        }
    }
}

/// Whether the upper half of the register of an `i32` is zero.
fn is_clear_above(function: &Function, value: Value) -> bool {
    match function.op_of(value) {
        Some(Op::Truncate { arg }) => match function.op_of(*arg) {
            Some(Op::Load { size, signed: false, .. } | Op::LoadAcquire { size, .. }) => *size != Size::Dw,
            Some(Op::ZeroExtend { .. }) => true,
            _ => false,
        },
        Some(_) => true,
        None => false,
    }
}
