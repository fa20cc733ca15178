//! Coverage of programs.
//!
//! Counters are instructions of the program itself: [`instrument`] rewrites a program so that it adds one to a number in an array map at the
//! start of each basic block, and on each edge that its blocks do not tell apart. The verifier proves the rewritten program, so counts
//! are exact and the same on every engine, and in the kernel. [`Plan::counts`] computes from the counters how often each instruction
//! ran and each branch was taken, for the program as it was, and [`Report`] merges that by source lines.
#![forbid(unsafe_code)]

mod blocks;
mod counts;
mod instrument;
mod lcov;
mod lines;
mod listing;
mod liveness;
mod report;
mod sides;

pub use counts::{BranchCount, Counts};
pub use instrument::{Counting, InstrumentError, Plan, instrument};
pub use report::{BranchLine, FileReport, FunctionReport, LineReport, Report, Totals};
