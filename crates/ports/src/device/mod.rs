//! Linux network devices as ports.
//!
//! - [`XdpPort`]: a queue of an interface by AF_XDP. The interface's packets go to the process rather than to the host, in frames that
//!   are shared with the kernel.
//! - [`SocketPort`]: a packet socket. The host receives the interface's packets too.
//! - [`TapPort`]: a TAP interface. The host's network stack is on the other side.
//! - [`DpdkPort`]: a queue of a device of DPDK's, through a library that is loaded at run time.
//! - [`MemifPort`]: a queue of a shared-memory packet interface. Another process is on the other side.
//!
//! All work on the network namespace of the thread that opens them.

mod bpf;
mod dpdk;
mod error;
mod ethtool;
mod interface;
mod lent;
mod mapping;
mod memif;
mod packet;
mod socket_options;
mod tap;
mod xdp;

pub use dpdk::DpdkPort;
pub use error::{OpenError, Step};
pub use interface::Interface;
pub use memif::{MemifOptions, MemifPort, MemifRole};
pub use packet::SocketPort;
pub use tap::TapPort;
pub use xdp::{AttachMode, Umem, XdpDevice, XdpOptions, XdpPort};
