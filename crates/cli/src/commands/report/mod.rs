//! `paceline report`.

mod args;
mod collect;
mod command;
mod flows;
mod page;
mod times;

pub(crate) use args::{EXAMPLES, ReportArgs};
pub(crate) use command::report;
