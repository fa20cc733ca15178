//! `paceline test`.

mod after;
mod args;
mod case;
mod check;
mod command;
mod discover;
mod error;
mod in_c;
mod json;
mod junit;
mod kernel;
mod mismatch;
mod read;
mod report;
mod run;
mod typed;
mod update;

pub(crate) use args::{EXAMPLES, TestArgs};
pub(crate) use command::test;
#[cfg(test)]
pub(crate) use read::test_file;
