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
mod width;

#[cfg(test)]
mod tests;

pub use bounds::Bounds;
pub use scalar::{Number, Scalar};
pub use tnum::Tnum;
