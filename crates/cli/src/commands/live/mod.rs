//! `paceline live`

mod args;
mod command;
mod report;
mod workers;

pub(crate) use args::{EXAMPLES, LiveArgs};
pub(crate) use command::live;
