//! `paceline capture`: packets of a live run, with what became of them.

mod args;
mod blocks;
mod command;

pub(crate) use args::{CaptureArgs, EXAMPLES};
pub(crate) use command::capture;
