//! `paceline bench`.

mod args;
mod command;
mod report;

pub(crate) use args::{BenchArgs, EXAMPLES};
pub(crate) use command::bench;
