//! Packets of a capture, one after the other in memory.

use paceline_frame::{Burst, FrameMeta};

/// Where decoded packets go.
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

/// Packets of a capture without frames: the bytes are next to each other, so that threads can share them and many fit into a cache.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    /// End of each packet in `bytes`.
    ends: Vec<usize>,
    metas: Vec<FrameMeta>,
    /// Number of bytes from which it is full.
    most: usize,
}

impl Batch {
    /// An empty batch, which is full from this number of bytes on.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { most, ..Self::default() }
    }

    /// Number of packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no packets.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Whether it takes no more packets.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.bytes.len() >= self.most
    }

    /// A packet.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    #[inline]
    pub fn packet(&self, index: usize) -> (&[u8], &FrameMeta) {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        (&self.bytes[start..self.ends[index]], &self.metas[index])
    }

    /// Removes the packets from this index on.
    pub fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.metas.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// Removes all packets; the memory is kept.
    pub fn clear(&mut self) {
        self.truncate(0);
    }
}

impl Sink for Batch {
    fn count(&self) -> usize {
        self.len()
    }

    #[inline]
    fn push(&mut self, packet: &[u8], meta: FrameMeta, _: Place) -> bool {
        if self.is_full() {
            return false;
        }
        self.bytes.extend_from_slice(packet);
        self.ends.push(self.bytes.len());
        self.metas.push(meta);
        true
    }
}
