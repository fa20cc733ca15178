//! The prefixes of up to 8 bits: for each first byte of an address the slot of the longest one, and 1; or 0.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::line::{LINE, Line, positions};
use crate::slab::{NoMemory, Zeroed};
use crate::sync::AtomicU32;

/// Bits of an address that choose an entry.
#[cfg(not(loom))]
const SHORT_BITS: u32 = 8;
/// As few as the root of the trie has in the model checker.
#[cfg(loom)]
const SHORT_BITS: u32 = 1;
const ENTRIES: usize = 1 << SHORT_BITS;

pub(super) struct ShortPrefixes {
    entries: Zeroed<Line>,
    /// Counts up before and after each change.
    changes: AtomicU32,
}

/// Whether a prefix of so many bits is kept here, and not in the trie.
pub(super) fn is_short(length: u32) -> bool {
    length <= SHORT_BITS
}

impl ShortPrefixes {
    pub(super) const BYTES: u64 = (size_of::<u32>() * ENTRIES) as u64;

    pub(super) fn new() -> Result<Self, NoMemory> {
        Ok(Self { entries: Zeroed::new(ENTRIES.div_ceil(LINE))?, changes: AtomicU32::new(0) })
    }

    /// The slot of an address's longest short prefix.
    pub(super) fn find(&self, address: u32) -> Option<u32> {
        let index = (address >> (u32::BITS - SHORT_BITS)) as usize;
        // Acquire: the slot is written, and later loads are not older.
        self.entry(index)?.load(Acquire).checked_sub(1)
    }

    /// Another number when a change begins, which an entry that it wrote is not seen before; and another one before anything
    /// that the caller changes next.
    pub(super) fn changes(&self) -> u32 {
        self.changes.load(Acquire)
    }

    /// Lets `change` replace the prefixes that the addresses have which begin with these bits. False if the prefix is not a
    /// short one: nothing is changed.
    pub(super) fn change(
        &self,
        bits: u32,
        length: u32,
        change: &impl Fn(Option<u32>) -> Option<u32>,
    ) -> bool {
        if !is_short(length) {
            return false;
        }
        // Release: with this number all is seen that the caller changed before.
        self.changes.fetch_add(1, Release);
        for entry in positions(bits, length, 0, SHORT_BITS).filter_map(|index| self.entry(index)) {
            let new = change(entry.load(Relaxed).checked_sub(1));
            // Release: a reader of the new prefix sees its contents.
            entry.store(new.map_or(0, |slot| slot + 1), Release);
        }
        // Release: with this number all entries are seen.
        self.changes.fetch_add(1, Release);
        true
    }

    fn entry(&self, index: usize) -> Option<&AtomicU32> {
        self.entries.get(index / LINE).map(|line| &line.0[index % LINE])
    }
}
