//! Programs that are measured, and the lines that their instructions are spent on. Knows no command; `paceline::measure` has the clock.

mod contender;
mod lines;

pub(crate) use contender::{Contender, timed};
pub(crate) use lines::{Hot, hot_lines};
