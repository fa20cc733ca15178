//! The machines: [`x64`] and [`aarch64`], each with an assembler, and code for the operations that both have. Neither knows the other.

pub mod aarch64;
pub(crate) mod emit;
pub(crate) mod frame;
pub(crate) mod generator;
pub(crate) mod op;
pub(crate) mod operand;
pub(crate) mod target;
pub mod x64;
