//! The first bytes of packets, for filters that look no further.

use paceline_frame::{Burst, FrameMeta, MAX_BURST};

use crate::sink::{Place, Sink};

/// Packets of which the burst has the first bytes only. The others stay where the capture was read to, until the next packets are read:
/// [`CaptureReader::packet`](crate::CaptureReader::packet).
pub struct Heads {
    /// The first bytes of each packet. Their metadata has the length on the wire.
    pub burst: Burst,
    most: usize,
    places: [(Place, usize); MAX_BURST],
}

impl std::fmt::Debug for Heads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Heads").finish_non_exhaustive()
    }
}

impl Heads {
    /// Takes at most this number of bytes of each packet.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { burst: Burst::default(), most, places: [(Place::default(), 0); MAX_BURST] }
    }

    pub(crate) fn clear(&mut self) {
        self.burst.clear();
    }

    /// Offset of a packet's record in the capture.
    #[must_use]
    pub fn offset(&self, index: usize) -> u64 {
        self.places[index].0.record
    }

    /// Captured length of a packet in bytes.
    #[must_use]
    #[inline]
    pub fn captured(&self, index: usize) -> usize {
        self.places[index].1
    }

    /// Offset and length of a packet's bytes in the capture.
    pub(crate) fn bytes(&self, index: usize) -> (u64, usize) {
        let (Place { record, head }, len) = self.places[index];
        (record + head as u64, len)
    }
}

impl Sink for Heads {
    const KEEPS_RECORDS: bool = false;

    #[inline(always)]
    fn push(&mut self, packet: &[u8], meta: FrameMeta, place: Place) -> bool {
        let head = packet.get(..self.most).unwrap_or(packet);
        let index = self.burst.len();
        if self.burst.push(head, meta).is_err() {
            return false;
        }
        self.places[index] = (place, packet.len());
        true
    }

    #[inline]
    fn count(&self) -> usize {
        self.burst.len()
    }
}
