//! Several descriptors as one that threads can wait for.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;

/// A descriptor that is readable while one of those added to it is.
pub(super) struct Watch(OwnedFd);

impl Watch {
    pub(super) fn new() -> Result<Self, Errno> {
        epoll::create(epoll::CreateFlags::CLOEXEC).map(Self)
    }

    pub(super) fn add(&self, fd: BorrowedFd<'_>) -> Result<(), Errno> {
        epoll::add(&self.0, fd, epoll::EventData::new_u64(0), epoll::EventFlags::IN)
    }

    /// Removes a descriptor before it is closed: a peer that has it, too, would keep it here.
    pub(super) fn remove(&self, fd: BorrowedFd<'_>) {
        let _ = epoll::delete(&self.0, fd);
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
