//! `paceline report`.

mod args;
mod bench;
mod collect;
mod command;
mod flows;
mod page;

pub(crate) use args::{EXAMPLES, ReportArgs};
pub(crate) use command::report;
