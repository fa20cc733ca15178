//! The control socket of a live run: a Unix socket on which each line is a JSON object, a request or its answer
//! (`docs/LIVE.md` describes them).

mod client;
mod error;
mod protocol;
mod server;
mod text;

pub(crate) use client::{ControlArgs, request};
pub(crate) use server::{Question, Server};
pub(crate) use text::write_counts;
