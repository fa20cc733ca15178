//! `paceline why`.

mod args;
mod command;
mod json;
mod text;

pub(crate) use args::{EXAMPLES, WhyArgs};
pub(crate) use command::why;
