//! `paceline diff`.

mod args;
mod command;
mod compare;
mod group;
mod maps;
mod parting;
mod report;
mod shrink;
mod side;

pub(crate) use args::{DiffArgs, EXAMPLES};
pub(crate) use command::diff;
