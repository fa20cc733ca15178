//! x86-64: its [assembler](asm), whose items are here too, and code for the operations of all machines.

pub mod asm;
pub(crate) mod dispatcher;
mod emit;
mod entry;
mod regs;
mod target;

pub use asm::*;
