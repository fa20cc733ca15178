//! `paceline filter`.

mod args;
mod command;
mod error;
mod listing;
#[cfg(test)]
mod mutations;
mod report;
mod syscalls;
mod wanted;

pub(crate) use args::{EXAMPLES, FilterArgs};
pub(crate) use command::filter;
