//! Shared-memory packet interfaces (memif): packets between processes, as VPP and DPDK exchange them, without either.
//!
//! The two sides of a connection talk over a Unix socket (`setup`), and share memory (`region`) with rings of descriptors (`ring`).
//!
//! The peer is not trusted. The client takes nothing but length and flags from entries; the server checks each entry's region,
//! offset and length against the mapping. Memory must be a file sealed with `F_SEAL_SHRINK`, because an access behind the end of a
//! file is a signal. Event descriptors must be eventfds, and no call on them relies on `O_NONBLOCK`, which the peer can change.

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
