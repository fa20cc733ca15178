//! Random programs that the verifier accepts and on which all engines must agree.
//!
//! A program works on a [`State`]: it loads registers, memory and stack from a map at its start and stores them there at its
//! end, so that all results can be compared. In between is a list of [`Step`]s. Every sublist of steps is a valid program,
//! which makes shrinking simple. Each kind of step must keep this property: it may read and write `r0` to `r8` as numbers,
//! must not change `r9` (the state's address) and `r10`, must not read uninitialized memory, and must refer to other steps
//! only by distance.

mod compare;
mod generated;
mod mix;
mod shrink;
mod state;
mod step;

use state::MEMORY_AT;

pub use compare::{Disagreement, KernelSubject, PlainSubject, Refused, Subject, check};
pub use shrink::shrink;
pub use state::{STACK, State, state_map};
pub use step::Step;

pub use generated::Generated;
pub use mix::Mix;

const _: () = assert!(MEMORY_AT + state::MEMORY <= i16::MAX as usize);
