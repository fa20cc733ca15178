//! Calls of helpers as operations of the form, so that passes see what they do. Code generators expand a module before its passes.
//!
//! A look-up in a known array is a comparison of the key and a sum: the program's test for a missing value is that comparison, if
//! only what follows it uses the value. The function of another map (`lookup` in `paceline-maps`) is given a key of up to 8 bytes
//! as a number; keys are loaded in the parts that the program stored, so that `mem2reg` finds each part and a key is not stored.
//! `bpf_loop` with a known callback becomes a loop, unless the program makes tail calls: only the helper looks at their faults.

mod key;
mod look_up;
mod rounds;

pub use self::look_up::{ArrayLink, Table, known_map, look_ups};
pub use self::rounds::loops;
