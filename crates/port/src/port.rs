//! What a port is: bursts of packets in, groups of packets out.

use std::io;

use paceline_frame::{Burst, FrameRef};

/// Where packets come from and go to. A port belongs to one worker; what is behind it may be shared.
pub trait Port: Send {
    /// Adds packets that have arrived to a burst, until it is full or there are no more, and says how many. It never waits: a
    /// short burst runs at once.
    ///
    /// # Errors
    /// [`PortError`]. What was added is in the burst.
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError>;

    /// Sends a group, in order, and says how many of it: packets that there is no room for are the last ones, and lost. All are on
    /// their way when this returns.
    ///
    /// # Errors
    /// [`PortError`].
    fn send(&mut self, group: Group<'_>) -> Result<usize, PortError>;
}

/// A port does not work any more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PortError {
    /// The system says why.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Packets of a burst that go the same way.
#[derive(Clone, Copy)]
pub struct Group<'a> {
    burst: &'a Burst,
    indices: &'a [u8],
}

impl<'a> Group<'a> {
    /// The packets of a burst with these indices, in their order. One may be there twice.
    #[must_use]
    pub fn new(burst: &'a Burst, indices: &'a [u8]) -> Self {
        Self { burst, indices }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.indices.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.indices.is_empty()
    }

    /// The packets, in order.
    ///
    /// # Panics
    /// If an index is not one of the burst's.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = FrameRef<'a>> + use<'a> {
        let burst = self.burst;
        self.indices.iter().map(move |&index| burst.frame(usize::from(index)))
    }
}
