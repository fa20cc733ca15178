//! Selection: from operations of the form to instructions.
//!
//! Numbers and addresses that are known have no register for themselves: each use makes them anew, where they are not part of its
//! instruction. What is above the low half of an `i32` is not defined, so a truncation is no instruction, and an extension is one only
//! if the operation that makes its operand does not clear the upper half.

mod arithmetic;
mod burst;
mod call;
mod choice;
mod context;
mod fold;
mod look_up;
mod memory;
mod parts;

pub(super) use call::is_loaded;
pub(super) use choice::Choice;
