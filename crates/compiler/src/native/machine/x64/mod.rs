//! x86-64: its [assembler](asm), whose items are here too, code for the operations of all machines, and checked code.

pub mod asm;
pub(crate) mod checked;
pub(crate) mod dispatcher;
mod emit;
mod entry;
mod regs;
mod target;

pub use asm::*;
