//! User space's side of a ring buffer.

use std::time::Duration;

use crate::ringbuf::{AVAILABLE, Record, RingBuffer};

/// The reader of a ring buffer's records, from [`Map::ring_buffer`](crate::Map::ring_buffer).
#[derive(Clone, Copy)]
pub struct RingReader<'a>(&'a RingBuffer);

impl std::fmt::Debug for RingReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingReader").finish_non_exhaustive()
    }
}

impl<'a> RingReader<'a> {
    pub(crate) fn new(ring: &'a RingBuffer) -> Self {
        Self(ring)
    }

    /// Keeps the [origin](crate::Origin) of each record from now on, for [`consume_records`](Self::consume_records). Without it,
    /// records cost nothing more.
    pub fn keep_origins(self) {
        self.0.keep_origins();
    }

    /// Reads the records that were submitted, up to the first that a program still holds, and returns their number.
    ///
    /// A record leaves the ring before `read` is called, without a lock: `read` may use the ring, this function included, which then
    /// goes on with the next record, and a record counts as read if `read` panics. Several readers share the records.
    pub fn consume(self, mut read: impl FnMut(&[u8])) -> usize {
        self.consume_records(|record| read(record.data))
    }

    /// [`consume`](Self::consume) with the origins of the records, if the ring [keeps](Self::keep_origins) them.
    pub fn consume_records(self, mut read: impl FnMut(Record<'_>)) -> usize {
        let (mut count, mut bytes) = (0, Vec::new());
        while let Some(origin) = self.0.take_next(&mut bytes) {
            read(Record { data: &bytes, origin });
            count += 1;
        }
        count
    }

    /// Bytes in the ring that are not read yet, with headers, including records that programs still hold.
    #[must_use]
    pub fn available(self) -> u64 {
        self.0.query(AVAILABLE)
    }

    /// Number of records that found no room.
    #[must_use]
    pub fn lost(self) -> u64 {
        self.0.lost()
    }

    /// Waits until there is a record to read, or a program wakes the reader, for at most `timeout`; false if neither happened.
    /// A record that is submitted without waking the reader (`BPF_RB_NO_WAKEUP`) does not end a wait that has begun.
    pub fn wait(self, timeout: Duration) -> bool {
        self.0.wait(timeout)
    }
}
