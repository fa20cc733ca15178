//! `paceline chain`: chains as they are loaded, before anything runs.

mod args;
mod diff;
mod show;

pub(crate) use args::{DiffArgs, EXAMPLES, ExplainArgs, ShowArgs};
pub(crate) use diff::diff;
pub(crate) use show::{explain, show};
