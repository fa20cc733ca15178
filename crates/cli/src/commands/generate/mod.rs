//! `paceline generate`.

mod args;
mod capture;
mod command;
mod folder;
mod found;
mod json;
mod table;
mod tests_of;

pub(crate) use args::{EXAMPLES, GenerateArgs};
pub(crate) use command::generate;
