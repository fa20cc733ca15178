//! `paceline top`: a view of a live run on the terminal.

mod args;
mod asker;
mod command;
mod history;
mod view;

pub(crate) use args::{EXAMPLES, TopArgs};
pub(crate) use command::top;
