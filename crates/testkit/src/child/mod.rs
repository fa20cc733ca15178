//! Work in child processes: a crash or hang of a child is reported, and the campaign continues.
//!
//! [`run`] runs one child under a time limit. [`supervise`] runs numbered jobs: a child reports each job before it begins
//! ([`begin`]), and the end of all jobs ([`finish`]). If a child ends before that, the last reported job has failed, and
//! another child continues with the next job. All other lines are passed to the campaign.
//!
//! A child does not outlive its parent: [`command`] passes the parent's process id, and [`attach`], which each program calls
//! first, asks the kernel for `SIGKILL` when the parent dies.

mod jobs;
mod process;
mod seeds;
mod totals;

pub use jobs::{Event, Jobs, begin, finish, supervise};
pub use seeds::{crashes, run_seeds};
pub use totals::Totals;

pub use process::{Ended, Ran, attach, command, panic_of, run};
