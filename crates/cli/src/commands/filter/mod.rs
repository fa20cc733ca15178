//! `paceline filter`.

mod args;
mod command;
mod error;
mod listing;
#[cfg(test)]
mod mutations;
mod optimizer;
mod printer;
mod report;
mod socket;
mod syscalls;
mod wanted;

pub(crate) use args::{EXAMPLES, FilterArgs};
pub(crate) use command::filter;
