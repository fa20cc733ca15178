//! `paceline bench`.

mod args;
mod command;
mod output;

pub(crate) use args::{BenchArgs, EXAMPLES};
pub(crate) use command::bench;
