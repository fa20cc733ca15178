//! `paceline why`.

mod args;
mod command;
mod explained;
mod json;
mod selection;
mod text;

pub(crate) use args::{EXAMPLES, WhyArgs};
pub(crate) use command::why;
