//! Shared-memory packet interfaces (memif): packets between processes, as VPP and DPDK exchange them, without either.
//!
//! The two sides of a connection talk over a Unix socket (`setup`), and share memory (`region`) with rings of descriptors (`ring`).

mod channel;
mod endpoint;
mod event;
mod link;
mod message;
mod options;
mod port;
mod queue;
mod region;
mod ring;
mod setup;
mod socket;
mod watch;

#[cfg(test)]
mod tests;

pub use options::{MemifOptions, MemifRole};
pub use port::MemifPort;
