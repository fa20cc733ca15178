//! `paceline chain`: chains as they are loaded, before anything runs, and that of a live run.

mod args;
mod diff;
mod running;
mod show;

pub(crate) use args::{DiffArgs, EXAMPLES, ExplainArgs, RunningArgs, ShowArgs};
pub(crate) use diff::diff;
pub(crate) use running::running;
pub(crate) use show::{explain, show};
