//! Coverage of programs.
//!
//! Engines count beside the program: a [`Plan`] tells them to add one to a number in an array map at the start of each basic block, and on
//! each edge that its blocks do not tell apart ([`paceline_spec::Counters`]). The verifier sees the program alone, so each program that
//! loads can be counted. [`Plan::counts`] computes from the counters how often each instruction ran and each branch was taken, and
//! [`Report`] merges that by source lines.

mod blocks;
mod counts;
mod instrument;
mod lcov;
mod lines;
mod listing;
mod report;
mod sides;

pub use counts::{BranchCount, Counts};
pub use instrument::{Counting, InstrumentError, Plan};
pub use report::{BranchLine, FileReport, FunctionReport, LineReport, Report, Totals};
