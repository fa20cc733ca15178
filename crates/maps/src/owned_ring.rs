//! The reader of a ring buffer that owns what it reads, and that poll(2) and epoll(7) wait for.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use paceline_spec::Errno;
use rustix::event::{EventfdFlags, eventfd};
use thiserror::Error;

use crate::map::Map;
use crate::ring_reader::RingReader;
use crate::ringbuf::{Record, RingBuffer};

/// A map has no reader of records.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RingError {
    /// The map is of another kind.
    #[error("map {map:?} is not a ring buffer")]
    Kind {
        /// Name of the map.
        map: String,
    },
    /// The process has no descriptor left, or no memory for one.
    #[error("map {map:?}: eventfd: {errno}")]
    Descriptor {
        /// Name of the map.
        map: String,
        /// Cause.
        errno: Errno,
    },
}

/// A reader of a ring buffer's records that keeps the map, from [`Map::ring_reader`]. Its descriptor ([`AsFd`]) becomes readable when a
/// program wakes the readers: poll(2), or the reactor of an asynchronous runtime, waits for it beside others, and
/// [`consume`](Self::consume) takes the records and the readability. Dropping it closes the descriptor; the records stay in the ring.
///
/// Several readers of a ring share its records, and all are woken. A record that is submitted without waking the reader
/// (`BPF_RB_NO_WAKEUP`) does not make the descriptor readable.
#[derive(Debug)]
pub struct OwnedRingReader {
    map: Arc<Map>,
    event: Arc<OwnedFd>,
}

impl Map {
    /// A reader of the ring buffer's records that keeps the map and has a descriptor for poll(2). The descriptor is readable at once if
    /// there are records.
    ///
    /// # Errors
    /// [`RingError`].
    pub fn ring_reader(self: &Arc<Self>) -> Result<OwnedRingReader, RingError> {
        let map = || self.spec().name.clone();
        let ring = self.for_programs().ring_buffer().ok_or_else(|| RingError::Kind { map: map() })?;
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).map_err(|errno| {
            RingError::Descriptor { map: map(), errno: Errno(errno.raw_os_error() as u16) }
        })?;
        let event = Arc::new(event);
        ring.add_poller(&event);
        Ok(OwnedRingReader { map: Arc::clone(self), event })
    }
}

impl OwnedRingReader {
    /// The map.
    #[must_use]
    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// Reads the records that were submitted, as [`RingReader::consume`] does, and returns their number.
    pub fn consume(&self, mut read: impl FnMut(&[u8])) -> usize {
        self.consume_records(|record| read(record.data))
    }

    /// Reads the records with their origins, as [`RingReader::consume_records`] does.
    pub fn consume_records(&self, read: impl FnMut(Record<'_>)) -> usize {
        let Some(ring) = self.ring() else { return 0 };
        // Before the records: one that comes later makes the descriptor readable again.
        // It fails only if nothing was signalled, and then there is nothing to take back.
        let _ = rustix::io::read(&*self.event, &mut [0; 8]);
        let _left = Left { ring, event: &self.event };
        RingReader::new(ring).consume_records(read)
    }

    /// Waits as [`RingReader::wait`] does.
    #[must_use]
    pub fn wait(&self, timeout: Duration) -> bool {
        self.ring().is_some_and(|ring| RingReader::new(ring).wait(timeout))
    }

    /// Closes the descriptor, as a drop does.
    pub fn close(self) {}

    /// There is one: the constructor has seen it.
    fn ring(&self) -> Option<&RingBuffer> {
        self.map.for_programs().ring_buffer()
    }
}

/// Makes the descriptor readable again where records are left, because `read` panicked.
struct Left<'a> {
    ring: &'a RingBuffer,
    event: &'a OwnedFd,
}

impl Drop for Left<'_> {
    fn drop(&mut self) {
        self.ring.signal_if_done(self.event);
    }
}

impl AsFd for OwnedRingReader {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }
}

impl Drop for OwnedRingReader {
    fn drop(&mut self) {
        if let Some(ring) = self.ring() {
            ring.remove_poller(&self.event);
        }
    }
}
