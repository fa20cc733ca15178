//! `paceline status`, `paceline stop` and `paceline map`: requests to a live run.

mod args;
mod command;

pub(crate) use args::{MAP_EXAMPLES, MapArgs, STATUS_EXAMPLES, STOP_EXAMPLES, StatusArgs, StopArgs};
pub(crate) use command::{map, status, stop};
