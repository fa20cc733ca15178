//! `paceline diff`.

mod all;
mod args;
mod command;
mod shrink;
mod told;

pub(crate) use args::{DiffArgs, EXAMPLES};
pub(crate) use command::diff;
