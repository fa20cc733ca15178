//! TAP interfaces: the host's network stack is on the other side.

mod header;
mod port;
mod syscalls;

pub use port::TapPort;
