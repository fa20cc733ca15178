//! Times of programs: rounds over the packets of a capture, and their statistics. Knows no command.

mod busy;
mod contender;
mod lines;
mod rounds;
mod statistics;

pub(crate) use busy::{busy_machine, uneven};
pub(crate) use contender::Contender;
pub(crate) use lines::{Hot, hot_lines};
pub(crate) use rounds::{Manner, Room, Times, rounds};
pub(crate) use statistics::{Comparison, Ratio, Summary};
