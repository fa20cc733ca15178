//! Ring buffers (`BPF_MAP_TYPE_RINGBUF`, `kernel/bpf/ringbuf.c`): records of any size from programs to one reader, in
//! the order in which they were reserved.
//!
//! A record is a word of header and its bytes, rounded up to whole words. Positions count all bytes ever written; a
//! record lies at its position modulo the ring's size, and the block is twice that size, so that the one record that
//! runs over the ring's end lies in one piece all the same.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use paceline_spec::Errno;

use crate::slab::{NoMemory, WORD, Zeroed};
use crate::sync::{AtomicBool, AtomicU64, Condvar, Mutex, MutexGuard, Ordering, model_fence};

/// `RINGBUF_MAX_RECORD_SZ`
const MAX_RECORD: u64 = (u32::MAX / 4) as u64;
/// In a header beside the length: the program has the record.
const BUSY: u64 = 1 << 31;
/// In a header beside the length: the reader skips the record.
const DISCARDED: u64 = 1 << 30;
/// The length in a header; its upper half is the record's place in the block, in words.
const LENGTH: u64 = DISCARDED - 1;
/// Words before the first record; the first is the ring's address.
const START: usize = 8;

/// Do not wake the reader (`BPF_RB_NO_WAKEUP`).
const NO_WAKEUP: u64 = 1;
/// Wake the reader in any case (`BPF_RB_FORCE_WAKEUP`).
const FORCE_WAKEUP: u64 = 2;

/// Questions of [`RingBuffer::query`] (`BPF_RB_AVAIL_DATA` and so on).
pub(crate) const AVAILABLE: u64 = 0;
const SIZE: u64 = 1;
const CONSUMED: u64 = 2;
const PRODUCED: u64 = 3;

/// Origin of a record, for readers that [request](crate::RingReader::keep_origins) it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Number of the packet that was run, from 1, where it was known.
    pub packet: Option<u64>,
    /// The worker.
    pub cpu: u32,
    /// When the record was reserved, in nanoseconds of the clock that programs see.
    pub time_ns: u64,
    /// Time at which that packet was received in nanoseconds since the epoch; 0 if it is unknown.
    pub received_ns: u64,
}

/// A record that a program submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its bytes.
    pub data: &'a [u8],
    /// Origin, if the ring keeps origins.
    pub origin: Option<Origin>,
}

/// A ring buffer.
pub struct RingBuffer {
    words: Zeroed<AtomicU64>,
    /// Bytes of the ring less one, a mask for positions.
    mask: u64,
    /// Position of the reader.
    consumed: AtomicU64,
    /// Position of the next record; changed under the lock of `pending`.
    produced: AtomicU64,
    /// Records for which there was no room.
    lost: AtomicU64,
    /// Whether the reader wants to know where records come from.
    keeps_origins: AtomicBool,
    /// The origins of records that were not read yet, by their positions.
    origins: Mutex<VecDeque<(u64, Origin)>>,
    /// Position of the first record that a program still holds.
    pending: Mutex<u64>,
    /// Held while a record is taken out.
    reading: Mutex<()>,
    wakeups: Mutex<Wakeups>,
    wakeup: Condvar,
}

/// What wakes the readers.
#[derive(Default)]
struct Wakeups {
    /// Number of wake-ups.
    count: u64,
    /// Event counters (`eventfd`) of readers that poll. Few rings have one.
    pollers: Vec<Arc<OwnedFd>>,
}

/// Makes an event counter readable.
fn signal(event: &OwnedFd) {
    // It fails only if the counter is at its maximum, and then it is readable.
    let _ = rustix::io::write(event, &1_u64.to_ne_bytes());
}

impl std::fmt::Debug for RingBuffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RingBuffer").finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Words of the block of a ring of so many bytes.
fn words_for(entries: u32) -> usize {
    START + 2 * entries as usize / WORD
}

/// Bytes that a record of a length takes.
fn room(len: u64) -> u64 {
    (len + WORD as u64).next_multiple_of(WORD as u64)
}

impl RingBuffer {
    /// Bytes of memory that a ring of so many bytes takes.
    pub(crate) fn memory(entries: u32) -> usize {
        words_for(entries) * WORD
    }

    /// A ring of so many bytes, a power of two, whose block begins with its address.
    pub(crate) fn boxed(entries: u32) -> Result<Box<Self>, NoMemory> {
        let ring = Box::new(Self::new(entries)?);
        if let Some(first) = ring.words().first() {
            first.store(&raw const *ring as u64, Ordering::Relaxed);
        }
        Ok(ring)
    }

    fn new(entries: u32) -> Result<Self, NoMemory> {
        Ok(Self {
            words: Zeroed::new(words_for(entries))?,
            mask: u64::from(entries) - 1,
            consumed: AtomicU64::new(0),
            produced: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            keeps_origins: AtomicBool::new(false),
            origins: Mutex::default(),
            pending: Mutex::new(0),
            reading: Mutex::new(()),
            wakeups: Mutex::new(Wakeups::default()),
            wakeup: Condvar::new(),
        })
    }

    fn words(&self) -> &[AtomicU64] {
        &self.words
    }

    /// Offset of an address in the block, in bytes.
    fn offset_of(&self, address: usize) -> Option<usize> {
        let offset = address.checked_sub(self.words().as_ptr().addr())?;
        (offset < self.words().len() * WORD).then_some(offset)
    }

    /// Place in the block of the header of the record at a position.
    fn place(&self, position: u64) -> usize {
        START + (position & self.mask) as usize / WORD
    }

    fn header(&self, position: u64) -> u64 {
        // In one order with the positions: see `finish`.
        self.words().get(self.place(position)).map_or(0, |word| word.load(Ordering::SeqCst))
    }

    /// The positions of the records from one position to another, with their headers.
    fn records(&self, from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
        let mut position = from;
        std::iter::from_fn(move || {
            let header = (position < to).then(|| self.header(position))?;
            let found = position;
            position += room(header & LENGTH);
            Some((found, header))
        })
    }

    /// `bpf_ringbuf_reserve`: room for `size` bytes, which hold what earlier records left there. `None` when the ring
    /// is full or could never hold them, and for flags, of which there are none.
    #[must_use]
    pub fn reserve(&self, size: u64, flags: u64) -> Option<NonNull<u8>> {
        self.reserve_from(size, flags, || None)
    }

    /// Keeps the origin of each record from now on.
    pub(crate) fn keep_origins(&self) {
        self.keeps_origins.store(true, Ordering::Relaxed);
    }

    /// [`reserve`](Self::reserve) with the origin of the record.
    #[must_use]
    pub fn reserve_from(
        &self,
        size: u64,
        flags: u64,
        origin: impl FnOnce() -> Option<Origin>,
    ) -> Option<NonNull<u8>> {
        if flags != 0 || size > MAX_RECORD || room(size) > self.mask + 1 {
            return None;
        }
        // Not under a lock, as it is the caller's function.
        let origin = self.keeps_origins.load(Ordering::Relaxed).then(origin).flatten();
        let mut pending = lock(&self.pending);
        let position = self.produced.load(Ordering::Relaxed);
        let next = position + room(size);
        while *pending < position {
            let header = self.header(*pending);
            if header & BUSY != 0 {
                break;
            }
            *pending += room(header & LENGTH);
        }
        let consumed = self.consumed.load(Ordering::Acquire);
        if next - consumed > self.mask || next - *pending > self.mask {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let place = self.place(position);
        let header = size | BUSY | (place as u64) << 32;
        self.words().get(place)?.store(header, Ordering::Relaxed);
        if let Some(origin) = origin {
            // In the order of positions: under the lock of `pending`.
            lock(&self.origins).push_back((position, origin));
        }
        // Release: a reader that sees the position sees the header.
        self.produced.store(next, Ordering::Release);
        self.words().get(place + 1).map(NonNull::from).map(NonNull::cast)
    }

    /// `bpf_ringbuf_submit` and `bpf_ringbuf_discard`: gives a record back, to be read or to be skipped.
    ///
    /// # Safety
    /// [`reserve`](Self::reserve) must have given this address, it must not have been given back since, and its map must
    /// be alive.
    pub unsafe fn commit(record: NonNull<u8>, discard: bool, flags: u64) {
        // SAFETY: before a record is its header, which says how far before that the block begins, with the address of
        // its ring.
        let (ring, header) = unsafe {
            let header = record.cast::<AtomicU64>().sub(1);
            let place = (header.as_ref().load(Ordering::Relaxed) >> 32) as usize;
            let ring = header.sub(place).as_ref().load(Ordering::Relaxed) as *const Self;
            (&*ring, header.as_ref())
        };
        ring.finish(header, discard, flags);
    }

    fn finish(&self, header: &AtomicU64, discard: bool, flags: u64) {
        let old = header.load(Ordering::Relaxed);
        let done = old & !BUSY | if discard { DISCARDED } else { 0 };
        // Release: a reader that finds the record done sees its bytes.
        header.store(done, Ordering::SeqCst);
        model_fence();
        // Either this load sees that the reader has arrived at the record, or the reader, which publishes its position before it reads the
        // header, sees that the record is done.
        let position = self.consumed.load(Ordering::SeqCst) & self.mask;
        let is_next = START as u64 + position / WORD as u64 == old >> 32;
        if flags & FORCE_WAKEUP != 0 || is_next && flags & NO_WAKEUP == 0 {
            self.wake();
        }
    }

    fn wake(&self) {
        let mut wakeups = lock(&self.wakeups);
        wakeups.count += 1;
        self.wakeup.notify_all();
        wakeups.pollers.iter().for_each(|event| signal(event));
    }

    /// Signals an event counter at each wake-up from now on, and at once if a record is there.
    pub(crate) fn add_poller(&self, event: &Arc<OwnedFd>) {
        lock(&self.wakeups).pollers.push(Arc::clone(event));
        // A record that is done from here on wakes; one that was done before is seen here.
        self.signal_if_done(event);
    }

    pub(crate) fn remove_poller(&self, event: &Arc<OwnedFd>) {
        lock(&self.wakeups).pollers.retain(|known| !Arc::ptr_eq(known, event));
    }

    /// Signals an event counter if there is a record to read.
    pub(crate) fn signal_if_done(&self, event: &OwnedFd) {
        if self.next_done().is_some() {
            signal(event);
        }
    }

    /// `bpf_ringbuf_output`: a record with these bytes.
    ///
    /// # Errors
    /// `EINVAL`: unknown flags. `EAGAIN`: no room.
    pub fn output(&self, bytes: &[u8], flags: u64) -> Result<(), Errno> {
        self.output_from(bytes, flags, || None)
    }

    /// [`output`](Self::output) with the origin of the record.
    ///
    /// # Errors
    /// As for [`output`](Self::output).
    pub fn output_from(
        &self,
        bytes: &[u8],
        flags: u64,
        origin: impl FnOnce() -> Option<Origin>,
    ) -> Result<(), Errno> {
        if flags & !(NO_WAKEUP | FORCE_WAKEUP) != 0 {
            return Err(Errno::EINVAL);
        }
        let record = self.reserve_from(bytes.len() as u64, 0, origin).ok_or(Errno::EAGAIN)?;
        for (to, from) in self.payload(record).iter().zip(bytes.chunks(WORD)) {
            let mut word = [0; WORD];
            word[..from.len()].copy_from_slice(from);
            to.store(u64::from_ne_bytes(word), Ordering::Relaxed);
        }
        // SAFETY: just reserved.
        unsafe { Self::commit(record, false, flags) };
        Ok(())
    }

    /// The words from a record's first on.
    fn payload(&self, record: NonNull<u8>) -> &[AtomicU64] {
        let offset = self.offset_of(record.addr().get()).unwrap_or(usize::MAX);
        self.words().get(offset / WORD..).unwrap_or_default()
    }

    /// `bpf_ringbuf_query`: bytes that were not read yet (0), size (1), position of the reader (2) and of the next
    /// record (3); 0 for other questions.
    #[must_use]
    pub fn query(&self, question: u64) -> u64 {
        let (consumed, produced) =
            (self.consumed.load(Ordering::Acquire), self.produced.load(Ordering::Acquire));
        match question {
            AVAILABLE => produced.wrapping_sub(consumed),
            SIZE => self.mask + 1,
            CONSUMED => consumed,
            PRODUCED => produced,
            _ => 0,
        }
    }

    /// Takes the next submitted record out of the ring, without discarded ones: its bytes and its origin.
    pub(crate) fn take_next(&self, bytes: &mut Vec<u8>) -> Option<Option<Origin>> {
        let _reading = lock(&self.reading);
        loop {
            let (position, header) = self.next_done()?;
            let len = header & LENGTH;
            let words = self.words().get(self.place(position) + 1..).unwrap_or_default();
            let wanted = (len as usize).div_ceil(WORD);
            // Skipped records lose their origins too.
            let origin = self.origin_of(position);
            let is_discarded = header & DISCARDED != 0;
            if !is_discarded {
                bytes.clear();
                bytes.extend(
                    words.iter().take(wanted).flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()),
                );
                bytes.truncate(len as usize);
            }
            self.consumed.store(position + room(len), Ordering::SeqCst);
            if !is_discarded {
                return Some(origin);
            }
        }
    }

    /// The position of the record that is read next, and its header, if it is done.
    fn next_done(&self) -> Option<(u64, u64)> {
        let position = self.consumed.load(Ordering::SeqCst);
        model_fence();
        let is_there = position < self.produced.load(Ordering::SeqCst);
        let header = is_there.then(|| self.header(position))?;
        (header & BUSY == 0).then_some((position, header))
    }

    /// Takes the origin of the record at a position; drops earlier origins.
    fn origin_of(&self, position: u64) -> Option<Origin> {
        if !self.keeps_origins.load(Ordering::Relaxed) {
            return None;
        }
        let mut origins = lock(&self.origins);
        while origins.front().is_some_and(|(first, _)| *first < position) {
            origins.pop_front();
        }
        let is_its = origins.front().is_some_and(|(first, _)| *first == position);
        if is_its { origins.pop_front().map(|(_, origin)| origin) } else { None }
    }

    /// Number of records that found no room.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn wait(&self, timeout: Duration) -> bool {
        let start = Instant::now();
        let mut wakeups = lock(&self.wakeups);
        let before = wakeups.count;
        loop {
            // Under the lock of the waker: a record that is done after this check ends the wait.
            if wakeups.count != before || self.next_done().is_some() {
                return true;
            }
            let Some(rest) = timeout.checked_sub(start.elapsed()).filter(|rest| !rest.is_zero()) else {
                return false;
            };
            let waited = self.wakeup.wait_timeout(wakeups, rest);
            wakeups = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Whether a range lies in a record that a program holds.
    pub(crate) fn contains(&self, address: usize, len: usize) -> bool {
        self.offset_of(address).is_some()
            && self.reserved(address).is_some_and(|(start, size)| address - start + len <= size)
    }

    /// Whether a program holds the record at an address.
    #[must_use]
    pub fn is_reserved(&self, address: usize) -> bool {
        self.reserved(address).is_some_and(|(start, _)| start == address)
    }

    /// First byte and length of the record that contains an address, if a program holds it.
    fn reserved(&self, address: usize) -> Option<(usize, usize)> {
        // Reservations are searched in order, from the oldest that a program can still hold.
        let pending = lock(&self.pending);
        let produced = self.produced.load(Ordering::Acquire);
        let base = self.words().as_ptr().addr();
        self.records(*pending, produced).find_map(|(position, header)| {
            let start = base + (self.place(position) + 1) * WORD;
            let len = (header & LENGTH) as usize;
            (header & BUSY != 0 && (start..start + len.max(1)).contains(&address)).then_some((start, len))
        })
    }
}

#[cfg(test)]
mod tests;
