//! `paceline inspect`.

mod args;
mod command;
mod missing;
mod program;
mod survey;
mod table;
mod text;

pub(crate) use args::{EXAMPLES, InspectArgs};
pub(crate) use command::inspect;
#[cfg(test)]
pub(crate) use survey::Survey;
#[cfg(test)]
pub(crate) use text::write as write_survey;
