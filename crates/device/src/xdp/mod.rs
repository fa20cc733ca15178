//! AF_XDP: packets from drivers, in frames that are shared with the kernel.

mod port;
mod program;
mod ring;
mod socket;
mod umem;

pub use port::XdpPort;
pub use program::{AttachMode, XdpDevice, XdpOptions};
pub use umem::Umem;
