//! The port interface: bursts of packets in, groups of packets out.

use std::io;

use paceline_frame::{Burst, FrameRef};

/// Source and destination of packets. A port belongs to one worker; its device or queue may be shared.
pub trait Port: Send {
    /// Adds packets that have arrived to a burst, until it is full or no more are available, and returns their number. It never
    /// waits: a short burst is processed at once.
    ///
    /// # Errors
    /// [`PortError`]. Packets added before remain in the burst.
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError>;

    /// Sends a group in order and returns the number of packets sent: packets without room are the last ones, and are lost. All
    /// sent packets are on their way when this returns.
    ///
    /// # Errors
    /// [`PortError`].
    fn send(&mut self, group: Group<'_>) -> Result<usize, PortError>;
}

/// A permanent failure of a port.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// An I/O error of the system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Packets of a burst with the same destination.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    burst: &'a Burst,
    indices: &'a [u8],
}

impl<'a> Group<'a> {
    /// The packets of a burst with these indices, in this order. An index may occur twice.
    #[must_use]
    pub fn new(burst: &'a Burst, indices: &'a [u8]) -> Self {
        Self { burst, indices }
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
    pub fn iter(&self) -> impl ExactSizeIterator<Item = FrameRef<'a>> + use<'a> {
        let burst = self.burst;
        self.indices.iter().map(move |&index| burst.frame(usize::from(index)))
    }
}
