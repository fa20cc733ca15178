//! `paceline live`

mod answer;
mod args;
mod beats;
mod command;
mod maps;
mod recorder;
mod report;
mod sandbox;
mod sockets;
mod threads;

pub(crate) use args::{EXAMPLES, LiveArgs};
pub(crate) use command::live;
