//! `paceline test`.

mod args;
mod case;
mod check;
mod command;
mod discover;
mod error;
mod expand;
mod in_c;
mod json;
mod junit;
mod kernel;
mod keys;
mod report;
mod run;
mod update;

pub(crate) use args::{EXAMPLES, TestArgs};
pub(crate) use command::test;
#[cfg(test)]
pub(crate) use expand::test_file;
