//! Tests in C: programs of an object that make a packet, run the program under test, and check what came out, as those of Cilium
//! (`bpf/tests`) do.

mod find;
mod log;
mod machines;
mod result;
mod run;
mod stages;

pub(super) use find::{FindError, TestInC, find, may_have_tests};
pub(super) use run::{Ended, EndedAs, Suite};
