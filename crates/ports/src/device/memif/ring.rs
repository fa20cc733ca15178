//! Rings of descriptors (`memif_ring_t`): a header of two cache lines, and entries of 16 bytes.
//!
//! ```text
//! 0 cookie  4 flags  6 head  |  64 tail  |  128 entries: 0 flags  2 region  4 length  8 offset  12 metadata
//! ```
//!
//! The client of a connection owns the buffers. It moves the head, with packets in a ring to the server, and with empty buffers
//! in a ring to the client; the server moves the tail behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering, fence};

use super::channel::End;
use super::region::Region;

const COOKIE: u32 = 0x3E3_1F20;
const FLAGS: usize = 4;
const HEAD: usize = 6;
const TAIL: usize = 64;
const ENTRIES: usize = 128;
const ENTRY: usize = 16;
/// The receiver wants no interrupts.
const MASK: u16 = 1;
/// The packet continues in the next entry.
pub(super) const MORE: u16 = 1;
/// Logarithm of the largest number of entries.
pub(super) const MAX_LOG2: u8 = 14;

/// Size of a ring in bytes.
pub(super) const fn size(log2_entries: u8) -> usize {
    ENTRIES + (ENTRY << log2_entries)
}

/// An entry, read or to be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) flags: u16,
    pub(super) region: u16,
    pub(super) len: u32,
    pub(super) offset: u32,
}

/// A ring in a memory of a connection.
pub(super) struct Ring {
    regions: Arc<[Region]>,
    region: usize,
    offset: usize,
    log2_entries: u8,
}

impl Ring {
    /// The ring at an offset.
    pub(super) fn open(
        regions: &Arc<[Region]>,
        region: u16,
        offset: u32,
        log2_entries: u8,
    ) -> Result<Self, End> {
        let (region, offset) = (usize::from(region), offset as usize);
        let memory = regions.get(region).ok_or(End::Broken("ring in an unknown region"))?;
        if log2_entries > MAX_LOG2 {
            return Err(End::Broken("ring has too many entries"));
        }
        if !offset.is_multiple_of(8) || !memory.has(offset, size(log2_entries)) {
            return Err(End::Broken("ring outside of its region"));
        }
        let mut cookie = [0; 4];
        memory.read(offset, &mut cookie);
        if u32::from_ne_bytes(cookie) != COOKIE {
            return Err(End::Broken("ring without its cookie"));
        }
        Ok(Self { regions: Arc::clone(regions), region, offset, log2_entries })
    }

    /// Writes the header of a new ring in zeroed memory; false if it is outside.
    pub(super) fn format(region: &Region, offset: usize) -> bool {
        region.write(offset, &COOKIE.to_ne_bytes())
    }

    /// A memory of the connection.
    #[inline]
    pub(super) fn memory(&self, region: u16) -> Option<&Region> {
        self.regions.get(usize::from(region))
    }

    /// Number of entries.
    #[inline]
    pub(super) fn entries(&self) -> u16 {
        1 << self.log2_entries
    }

    fn index(&self, at: usize) -> Result<&AtomicU16, End> {
        // `open` has checked that all places of the ring are in its memory.
        self.regions[self.region].index(self.offset + at).ok_or(End::Broken("ring outside of its region"))
    }

    fn words(&self, slot: u16) -> Result<[&AtomicU64; 2], End> {
        let slot = usize::from(slot & (self.entries() - 1));
        let at = self.offset + ENTRIES + slot * ENTRY;
        let memory = &self.regions[self.region];
        let words =
            memory.word(at).zip(memory.word(at + 8)).ok_or(End::Broken("ring outside of its region"))?;
        Ok([words.0, words.1])
    }

    #[inline]
    pub(super) fn head(&self) -> Result<u16, End> {
        Ok(self.index(HEAD)?.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn tail(&self) -> Result<u16, End> {
        Ok(self.index(TAIL)?.load(Ordering::Acquire))
    }

    /// Shows the peer all entries before an index: they were written before.
    #[inline]
    pub(super) fn set_head(&self, head: u16) -> Result<(), End> {
        self.index(HEAD)?.store(head, Ordering::Release);
        Ok(())
    }

    /// As [`set_head`](Self::set_head), for the server.
    #[inline]
    pub(super) fn set_tail(&self, tail: u16) -> Result<(), End> {
        self.index(TAIL)?.store(tail, Ordering::Release);
        Ok(())
    }

    /// Whether the peer wants to be woken, after an index was stored: the peer stores this wish before it looks at the index again.
    pub(super) fn wants_interrupt(&self) -> Result<bool, End> {
        fence(Ordering::SeqCst);
        Ok(self.index(FLAGS)?.load(Ordering::Relaxed) & MASK == 0)
    }

    /// Tells the peer whether to wake this side. An index that is loaded afterwards is not older.
    pub(super) fn want_interrupts(&self, wanted: bool) -> Result<(), End> {
        self.index(FLAGS)?.store(if wanted { 0 } else { MASK }, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        Ok(())
    }

    /// A copy of an entry; indices run on over the ring's end.
    #[inline]
    pub(super) fn entry(&self, index: u16) -> Result<Entry, End> {
        let words = self.words(index)?.map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        let [[f0, f1, r0, r1, l0, l1, l2, l3], [o0, o1, o2, o3, ..]] = words;
        Ok(Entry {
            flags: u16::from_ne_bytes([f0, f1]),
            region: u16::from_ne_bytes([r0, r1]),
            len: u32::from_ne_bytes([l0, l1, l2, l3]),
            offset: u32::from_ne_bytes([o0, o1, o2, o3]),
        })
    }

    #[inline]
    pub(super) fn set_entry(&self, index: u16, entry: Entry) -> Result<(), End> {
        let Entry { flags, region, len, offset } = entry;
        let ([f0, f1], [r0, r1]) = (flags.to_ne_bytes(), region.to_ne_bytes());
        let ([l0, l1, l2, l3], [o0, o1, o2, o3]) = (len.to_ne_bytes(), offset.to_ne_bytes());
        let [first, second] = self.words(index)?;
        first.store(u64::from_ne_bytes([f0, f1, r0, r1, l0, l1, l2, l3]), Ordering::Relaxed);
        second.store(u64::from_ne_bytes([o0, o1, o2, o3, 0, 0, 0, 0]), Ordering::Relaxed);
        Ok(())
    }
}
