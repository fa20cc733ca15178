//! `paceline run`.

mod args;
mod chain;
mod command;
mod events;
mod fault;
mod outputs;
mod redirects;
mod report;
mod setup;
mod single;
mod verdicts;

pub(crate) use args::{EXAMPLES, RunArgs};
pub(crate) use command::run;
