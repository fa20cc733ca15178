//! Interrupts: event descriptors that both sides have.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::fs::{CWD, readlinkat};
use rustix::io::{Errno, ReadWriteFlags, preadv2, read, write};

use super::channel::End;

/// An event descriptor (`eventfd(2)`). The other side has it, too, and may change the flags of the file: nothing here relies on
/// them to not wait.
pub(super) struct Event(OwnedFd);

impl Event {
    pub(super) fn new() -> Result<Self, Errno> {
        eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map(Self)
    }

    /// The descriptor that a peer sent, if it is that of an event: others might wait for ever.
    pub(super) fn of_peer(fd: OwnedFd) -> Result<Self, End> {
        // No look at the file itself, which might wait, too.
        let link = format!("/proc/self/fd/{}", fd.as_raw_fd());
        if readlinkat(CWD, link, Vec::new())?.to_bytes() == b"anon_inode:[eventfd]" {
            Ok(Self(fd))
        } else {
            Err(End::Broken("ring without an event descriptor"))
        }
    }

    /// A descriptor of the same event for the peer.
    pub(super) fn share(&self) -> Result<OwnedFd, Errno> {
        rustix::io::fcntl_dupfd_cloexec(&self.0, 0)
    }

    /// Wakes the other side, unless it has not read so many events that there is no room for another.
    pub(super) fn signal(&self) {
        let mut waited = [PollFd::new(&self.0, PollFlags::OUT)];
        let has_room =
            poll(&mut waited, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ready| ready > 0);
        if has_room {
            let _ = write(&self.0, &1_u64.to_ne_bytes());
        }
    }

    /// Forgets the events that have arrived.
    pub(super) fn clear(&self) {
        let mut count = [0; 8];
        let read_now = preadv2(&self.0, &mut [IoSliceMut::new(&mut count)], u64::MAX, ReadWriteFlags::NOWAIT);
        // Kernels before 5.10 have no such reads of event descriptors.
        if read_now == Err(Errno::OPNOTSUPP) {
            let mut waited = [PollFd::new(&self.0, PollFlags::IN)];
            let now = Timespec { tv_sec: 0, tv_nsec: 0 };
            if poll(&mut waited, Some(&now)).is_ok_and(|ready| ready > 0) {
                let _ = read(&self.0, &mut count);
            }
        }
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
