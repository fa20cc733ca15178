//! Abstract numbers: the possible values of a register over all paths to an instruction.
//!
//! A [`Scalar`] is the product of known bits ([`Tnum`]) and of bounds, unsigned and signed, of the whole value
//! and of its low half ([`Bounds`]). Each part refines the others.
//!
//! Everything takes its width as a parameter: programs use 64 bits with a low half of 32, and the tests run the
//! same code exhaustively at 4 and 6 bits.

mod arithmetic;
mod bounds;
mod refine;
mod scalar;
mod tnum;

#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use scalar::{Number, Scalar};
pub use tnum::Tnum;

/// The low `bits` bits set, for 1 to 64 of them.
#[inline]
const fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The low `bits` bits of `value` as a signed number.
#[inline]
const fn signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

/// The smallest signed number of `bits` bits.
#[inline]
const fn signed_min(bits: u32) -> i64 {
    i64::MIN >> (64 - bits)
}

/// The greatest signed number of `bits` bits.
#[inline]
const fn signed_max(bits: u32) -> i64 {
    i64::MAX >> (64 - bits)
}
