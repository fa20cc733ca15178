//! The interface of decoders: where packets go, why decoding stops, and how long records are.

use paceline_frame::{Burst, FrameMeta};

use crate::error::ReadError;

/// The consumer of a decoder's packets.
pub(crate) trait Sink {
    /// Whether the records of the packets are kept too, for a writer.
    const KEEPS_RECORDS: bool = true;

    /// Adds a packet, which is copied; false if the sink is full.
    fn push(&mut self, packet: &[u8], meta: FrameMeta, place: Place) -> bool;

    /// Number of packets.
    fn count(&self) -> usize;
}

/// Place of a packet in the capture.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Offset of its record.
    pub(crate) record: u64,
    /// Length of the record's header.
    pub(crate) head: usize,
}

impl Sink for Burst {
    // Inlined as `Burst::push` is.
    #[inline(always)]
    fn push(&mut self, packet: &[u8], meta: FrameMeta, _: Place) -> bool {
        Self::push(self, packet, meta).is_ok()
    }

    #[inline]
    fn count(&self) -> usize {
        self.len()
    }
}

/// Reason why a decoder stopped.
pub(crate) enum Stop {
    /// The burst is full, or the next packets cannot be in the same burst.
    BurstFull,
    /// The next record requires at least this many bytes.
    More(usize),
    /// The next record is invalid. Boxed, so that the common case moves few bytes.
    Failed(Box<ReadError>),
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Length of the record at the start of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The record is of this length, as its header says.
    Record(usize),
    /// No reader takes this for a record.
    Bad,
    /// As many bytes tell.
    More(usize),
}
