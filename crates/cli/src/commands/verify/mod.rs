//! `paceline verify`.

mod args;
mod command;
mod json;
mod log;

pub(crate) use args::{EXAMPLES, VerifyArgs};
pub(crate) use command::verify;
