//! `paceline dump`.

mod args;
mod command;
mod dispatcher;
mod ir;
mod listing;
mod loaded;
mod native;

pub(crate) use args::{DumpArgs, EXAMPLES};
pub(crate) use command::dump;
#[cfg(test)]
pub(crate) use listing::Listing;
