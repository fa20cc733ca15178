//! `paceline scan`: many captures, by a filter and a program, on several workers.

mod args;
mod captures;
mod command;
mod error;
mod outputs;
mod parquet;
mod program;
mod report;
mod table;

pub(crate) use args::{EXAMPLES, ScanArgs};
pub(crate) use command::scan;
