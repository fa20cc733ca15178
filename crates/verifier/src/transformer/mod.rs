//! The transformer: what an instruction does to a state.
//!
//! It asks the checker for what the instruction demands before it changes the state, and names no error itself.

mod alu;
mod branch;
mod call;
mod callback;
mod dynptr;
mod entry;
mod global;
mod helper;
mod instruction;
mod kfunc;
mod memory;
mod next;
mod pointer;
mod registers;
mod stack;

pub(crate) use callback::start_calling_back;
pub(crate) use entry::entry_state;
pub(crate) use next::{Next, Round};
pub(crate) use registers::Transformer;
