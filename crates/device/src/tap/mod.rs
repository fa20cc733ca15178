//! TAP interfaces: the host's network stack is on the other side.

mod port;
mod syscalls;

pub use port::TapPort;
