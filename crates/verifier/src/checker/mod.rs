//! The checker: what an instruction demands of the state before it, and the errors if the demand is not met.
//!
//! It changes no state. It records what a demand depends on: numbers become precise, stack bytes are read, accesses become
//! facts.

mod arguments;
mod arithmetic;
mod buffers;
mod calls;
mod describe;
mod dynptr;
mod global;
mod immediate;
mod kfunc;
mod lock;
mod memory;
mod object;
mod registers;
mod span;
mod stack;
mod text;

pub(crate) use arguments::{Arguments, Effect};
pub(crate) use arithmetic::{Move, check_immediate, check_moved};
pub(crate) use immediate::{check_immediates, immediate};
pub(crate) use kfunc::{KfuncArguments, check_license};
pub(crate) use registers::{Checker, check_supported, check_writable};
pub(crate) use span::check_aligned;
