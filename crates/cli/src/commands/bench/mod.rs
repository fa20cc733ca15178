//! `paceline bench`.

mod args;
mod command;
mod contender;
mod measure;
mod report;
mod statistics;

pub(crate) use args::{BenchArgs, EXAMPLES};
pub(crate) use command::bench;
