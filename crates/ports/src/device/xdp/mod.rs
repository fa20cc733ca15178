//! AF_XDP: packets from drivers, in frames that are shared with the kernel.

mod device;
mod metadata;
mod port;
mod program;
mod ring;
mod socket;
mod umem;

pub use device::{XdpDevice, XdpOptions};
pub use port::XdpPort;
pub use program::AttachMode;
pub use umem::Umem;
