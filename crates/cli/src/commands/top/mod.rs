//! `paceline top`: a view of a live run on the terminal.

mod args;
#[cfg(feature = "top")]
mod asker;
#[cfg(feature = "top")]
mod command;
#[cfg(feature = "top")]
mod history;
#[cfg(feature = "top")]
mod view;
#[cfg(not(feature = "top"))]
mod without;

pub(crate) use args::{EXAMPLES, TopArgs};
#[cfg(feature = "top")]
pub(crate) use command::top;
#[cfg(not(feature = "top"))]
pub(crate) use without::top;
