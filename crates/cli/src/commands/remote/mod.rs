//! `paceline status`, `paceline stats`, `paceline stop` and `paceline map`: requests to a live run.

mod args;
mod command;
mod stats;

pub(crate) use args::{
    MAP_EXAMPLES, MapArgs, STATS_EXAMPLES, STATUS_EXAMPLES, STOP_EXAMPLES, StatsArgs, StatusArgs, StopArgs,
};
pub(crate) use command::{map, status, stop};
pub(crate) use stats::stats;
