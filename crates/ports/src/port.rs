//! The port interface: bursts of packets in, groups of packets out.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use paceline_frame::{Burst, FramePool, FrameRef, Taken};

/// Source and destination of packets. A port belongs to one worker; its device or queue may be shared.
pub trait Port: Send {
    /// Adds packets that have arrived to a burst, until it is full or no more are available, and returns their number. It never
    /// waits: a short burst is processed at once. A port with a pool places its frames in the burst ([`Burst::place`]); others have
    /// their packets copied ([`Burst::push`]).
    ///
    /// # Errors
    /// [`PortError`]. Packets added before remain in the burst.
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError>;

    /// Sends a group in order and returns the number of packets sent; those without room, and those that the device refuses, are
    /// lost. All sent packets are on their way when this returns. Frames of the port's pool are taken out of the group ([`Group::take`]), and
    /// other packets are copied.
    ///
    /// # Errors
    /// [`SendError`], with the number of packets that were sent before.
    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError>;

    /// The pool whose frames the port sends without a copy, if it has one.
    fn pool(&self) -> Option<&Arc<FramePool>> {
        None
    }

    /// Number of sent packets that were copied since the port was made. Ports without a pool copy every packet, and count none.
    fn copied(&self) -> u64 {
        0
    }

    /// A descriptor that becomes readable when packets have arrived, for threads that wait. `None` if the port has to be polled.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// Whether no more packets will arrive: a capture is at its end.
    fn is_done(&self) -> bool {
        false
    }

    /// Accepts no more packets from the source, where it can. Those that have arrived can be received still, and packets can be sent.
    fn stop(&mut self) {}

    /// Ends a worker's share of a port that several have: what is to come goes to the others, unless this one receives again. False if
    /// packets wait for this one, which has to receive them first.
    fn leave(&mut self) -> bool {
        true
    }

    /// Number of packets that arrived at the device since the port was made, and were dropped before [`receive`](Self::receive) could
    /// return them.
    fn dropped(&mut self) -> u64 {
        0
    }
}

impl<P: Port + ?Sized> Port for Box<P> {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        (**self).receive(burst)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        (**self).send(group)
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        (**self).pool()
    }

    fn copied(&self) -> u64 {
        (**self).copied()
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        (**self).descriptor()
    }

    fn is_done(&self) -> bool {
        (**self).is_done()
    }

    fn stop(&mut self) {
        (**self).stop();
    }

    fn leave(&mut self) -> bool {
        (**self).leave()
    }

    fn dropped(&mut self) -> u64 {
        (**self).dropped()
    }
}

/// Packets of a burst with the same destination.
pub struct Group<'a> {
    burst: &'a mut Burst,
    indices: &'a [u8],
    keep: u64,
}

impl std::fmt::Debug for Group<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Group").finish_non_exhaustive()
    }
}

impl<'a> Group<'a> {
    /// The packets of a burst with these indices, in this order. An index may occur twice. `keep` has a bit for each packet of the burst
    /// that is needed afterwards, by index: such a packet is copied, and so must one be whose index occurs twice.
    #[must_use]
    pub fn new(burst: &'a mut Burst, indices: &'a [u8], keep: u64) -> Self {
        Self { burst, indices, keep }
    }

    /// Number of packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether the group is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The packets, in order.
    ///
    /// # Panics
    /// If an index is out of the burst's bounds.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = FrameRef<'_>> {
        self.indices.iter().map(|&index| self.burst.frame(usize::from(index)))
    }

    /// A packet, by its position in the group.
    ///
    /// # Panics
    /// If the position or its index is out of bounds.
    #[inline]
    #[must_use]
    pub fn packet(&self, position: usize) -> FrameRef<'_> {
        self.burst.frame(usize::from(self.indices[position]))
    }

    /// Takes a packet out of the burst with its memory, if that is of `pool` and the packet is not needed afterwards ([`Burst::take`]).
    ///
    /// # Panics
    /// If the position or its index is out of bounds.
    #[inline]
    #[must_use]
    pub fn take(&mut self, position: usize, pool: &FramePool) -> Option<Taken> {
        let index = self.indices[position];
        let is_kept = self.keep & (1 << index) != 0;
        if is_kept { None } else { self.burst.take(usize::from(index), pool) }
    }
}

/// A permanent failure of a port while it sent a group.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct SendError {
    /// Number of packets that were sent before it; the others are lost.
    pub sent: usize,
    /// Cause.
    pub error: PortError,
}

impl From<PortError> for SendError {
    /// Nothing was sent.
    fn from(error: PortError) -> Self {
        Self { sent: 0, error }
    }
}

/// A permanent failure of a port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// An I/O error of the system.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The interface does not exist any more.
    #[error("interface `{name}` has gone")]
    Gone {
        /// Its name.
        name: String,
    },
}
