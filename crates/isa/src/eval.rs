//! Semantics of operations (RFC 9669 sections 4.1 to 4.3): the single definition for the interpreters and for the verifier's
//! constant folding.
//!
//! Values are 64-bit registers. A 32-bit operation uses the low halves and zero-extends its result.

use super::insn::{AluOp, Condition, Size, SwapOrder, Width};

/// `a op b`.
#[must_use]
#[inline]
pub fn alu(width: Width, op: AluOp, a: u64, b: u64) -> u64 {
    match width {
        Width::W64 => alu64(op, a, b),
        Width::W32 => u64::from(alu32(op, a as u32, b as u32)),
    }
}

macro_rules! alu {
    ($name:ident, $unsigned:ty, $signed:ty) => {
        #[inline]
        fn $name(op: AluOp, a: $unsigned, b: $unsigned) -> $unsigned {
            match op {
                AluOp::Add => a.wrapping_add(b),
                AluOp::Sub => a.wrapping_sub(b),
                AluOp::Mul => a.wrapping_mul(b),
                AluOp::Div => a.checked_div(b).unwrap_or(0),
                AluOp::Mod => a.checked_rem(b).unwrap_or(a),
                AluOp::SDiv if b == 0 => 0,
                AluOp::SDiv => (a as $signed).wrapping_div(b as $signed) as $unsigned,
                AluOp::SMod if b == 0 => a,
                AluOp::SMod => (a as $signed).wrapping_rem(b as $signed) as $unsigned,
                AluOp::Or => a | b,
                AluOp::And => a & b,
                AluOp::Xor => a ^ b,
                // The wrapping shifts mask the count to the width, as the RFC requires.
                AluOp::Lsh => a.wrapping_shl(b as u32),
                AluOp::Rsh => a.wrapping_shr(b as u32),
                AluOp::Arsh => (a as $signed).wrapping_shr(b as u32) as $unsigned,
                AluOp::Mov => b,
            }
        }
    };
}

alu!(alu64, u64, i64);
alu!(alu32, u32, i32);

/// `-a`.
#[must_use]
#[inline]
pub fn neg(width: Width, a: u64) -> u64 {
    match width {
        Width::W64 => a.wrapping_neg(),
        Width::W32 => u64::from((a as u32).wrapping_neg()),
    }
}

/// The low `size` bytes of `a`, sign-extended to 64 bits.
#[must_use]
#[inline]
pub fn sign_extend(size: Size, a: u64) -> u64 {
    match size {
        Size::B => a as i8 as u64,
        Size::H => a as i16 as u64,
        Size::W => a as i32 as u64,
        Size::Dw => a,
    }
}

/// The low `size` bytes of `a`, zero-extended to 64 bits.
#[must_use]
#[inline]
pub fn zero_extend(size: Size, a: u64) -> u64 {
    match size {
        Size::B => u64::from(a as u8),
        Size::H => u64::from(a as u16),
        Size::W => u64::from(a as u32),
        Size::Dw => a,
    }
}

/// The part of a register that an operation of this width uses: the low half, or all of it.
#[must_use]
#[inline]
pub fn truncate(width: Width, a: u64) -> u64 {
    match width {
        Width::W32 => u64::from(a as u32),
        Width::W64 => a,
    }
}

/// The low `size` bytes of `a` in another byte order, zero-extended; depends on the host's byte order.
#[must_use]
#[inline]
pub fn swap(order: SwapOrder, size: Size, a: u64) -> u64 {
    let reverse = match order {
        SwapOrder::Always => true,
        SwapOrder::ToBe => cfg!(target_endian = "little"),
        SwapOrder::ToLe => cfg!(target_endian = "big"),
    };
    match size {
        _ if !reverse => zero_extend(size, a),
        Size::B => zero_extend(size, a),
        Size::H => u64::from((a as u16).swap_bytes()),
        Size::W => u64::from((a as u32).swap_bytes()),
        Size::Dw => a.swap_bytes(),
    }
}

/// Whether `a condition b` holds.
#[must_use]
#[inline]
pub fn compare(width: Width, condition: Condition, a: u64, b: u64) -> bool {
    let (a, b) = (truncate(width, a), truncate(width, b));
    let (signed_a, signed_b) = match width {
        Width::W64 => (a as i64, b as i64),
        Width::W32 => (i64::from(a as i32), i64::from(b as i32)),
    };
    match condition {
        Condition::Eq => a == b,
        Condition::Ne => a != b,
        Condition::Gt => a > b,
        Condition::Ge => a >= b,
        Condition::Lt => a < b,
        Condition::Le => a <= b,
        Condition::Set => a & b != 0,
        Condition::SGt => signed_a > signed_b,
        Condition::SGe => signed_a >= signed_b,
        Condition::SLt => signed_a < signed_b,
        Condition::SLe => signed_a <= signed_b,
    }
}
