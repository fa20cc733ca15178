//! `paceline prove`.

mod args;
mod command;
mod told;

pub(crate) use args::{EXAMPLES, ProveArgs};
pub(crate) use command::prove;
