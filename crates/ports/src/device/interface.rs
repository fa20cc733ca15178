//! Interfaces of the network namespace.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, netdevice, socket_with};

use crate::device::error::{OpenError, Step};
use crate::device::ethtool;

/// An interface, by name and index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    name: String,
    index: u32,
}

impl Interface {
    /// Finds an interface by name.
    ///
    /// # Errors
    /// [`OpenError::NoInterface`]
    pub fn by_name(name: &str) -> Result<Self, OpenError> {
        let unknown = |_| OpenError::NoInterface { name: name.to_owned() };
        let index = netdevice::name_to_index(
            any_socket().map_err(|errno| Step::CreateSocket.failed(name, errno))?,
            name,
        );
        Ok(Self { name: name.to_owned(), index: index.map_err(unknown)? })
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The index (`ifindex`).
    #[must_use]
    pub fn index(&self) -> u32 {
        self.index
    }

    /// Number of receive queues; 1 if the driver does not tell.
    #[must_use]
    pub fn receive_queues(&self) -> u32 {
        ethtool::receive_queues(&self.name)
    }

    /// Whether an interface has this index still.
    pub(crate) fn exists(index: u32) -> bool {
        any_socket().is_ok_and(|socket| netdevice::index_to_name(socket, index).is_ok())
    }
}

/// Refuses texts that no interface can have as a name (`dev_valid_name` in `net/core/dev.c`).
pub(crate) fn check_name(name: &str) -> Result<(), OpenError> {
    let is_wrong = |c: char| c == '/' || c == ':' || c.is_ascii_whitespace() || c == '\0';
    let is_name = (1..16).contains(&name.len()) && !name.contains(is_wrong) && !matches!(name, "." | "..");
    if is_name { Ok(()) } else { Err(OpenError::Name { name: name.to_owned() }) }
}

/// A socket for requests about interfaces; it needs no privilege. One that reaches no network, so that a filter of system calls may allow it.
fn any_socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None)
}
