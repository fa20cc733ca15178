//! The index from keys to slots: an open-addressed table whose buckets are cache lines.
//!
//! A bucket has twelve positions: a tag, eight bits of the key's hash, and the number of a slot. A look-up compares the
//! tags of a bucket at once and reads the key in the slot only where one fits: two cache misses for a key that is there,
//! mostly one for a key that is not. Keys that find their home bucket full go to the next that is not; each bucket counts
//! those that passed it, so that a look-up knows where to stop. An element never moves, and the table never grows:
//! a packet never waits for a rehash. Chained buckets, as the kernel has, take a miss for every link; a table that stores the
//! keys itself cannot keep values where they are.
//!
//! # Changes under look-ups
//! Look-ups take no lock. Changes of a key hold the lock of its stripe; changes of different stripes can affect one bucket, hence
//! the atomics.
//! * An insertion writes the slot, claims a position by putting the slot's number there, counts itself in the buckets that
//!   it passed, and only then shows the tag.
//! * A replacement puts another slot's number in place of the old one: a look-up finds one or the other.
//! * A removal hides the tag first.
//!
//! A look-up may read a number after the position was reused for another key, so it always compares the key. The compared slot is
//! consistent: slots are not rewritten before the look-up's burst ends.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::slab::{Atomics, NoMemory, Zeroed, prefetch};
use crate::sync::{AtomicU32, AtomicU64};

/// Positions of a bucket.
const POSITIONS: usize = 12;
/// Elements per bucket of a full table: one bucket in sixteen is passed by some key.
const FILL: usize = 8;

/// Tags in a word.
const TAGS: usize = 8;
/// The high bit of every tag.
const HIGH: u64 = 0x8080_8080_8080_8080;
const LOW: u64 = HIGH >> 7;
/// The tags in the second word of a bucket, which has the count of keys that passed above them.
const SECOND: u64 = u32::MAX as u64;
/// One key that passed, in the second word.
const PASSED: u64 = 1 << 32;

/// A cache line: twelve tags, 0 where there is no element; how many keys passed; twelve numbers of slots, one more than
/// each is, 0 where the position is free.
#[repr(C, align(64))]
#[cfg_attr(loom, derive(Default))]
struct Bucket {
    tags: [AtomicU64; 2],
    slots: [AtomicU32; POSITIONS],
}

// SAFETY: atomics alone, for which zeros are a value.
unsafe impl Atomics for Bucket {}

impl Bucket {
    /// The positions whose tags fit a hash, as bits for [`position_of`], and whether keys passed.
    #[inline(always)]
    fn candidates(&self, hash: u64) -> (u64, bool) {
        let pattern = u64::from(tag_of(hash)) * LOW;
        let [first, second] = [0, 1].map(|word| self.tags[word].load(Acquire));
        // Both words as one, the second's in the bits between: in which word the key is cannot be foreseen.
        let fits = candidates(first ^ pattern) >> 7 | (candidates(second ^ pattern) & SECOND) >> 6;
        (fits, second >= PASSED)
    }
}

/// The first position of some.
#[inline(always)]
fn position_of(fits: u64) -> usize {
    let bit = fits.trailing_zeros() as usize;
    (bit / 8) | ((bit & 1) * TAGS)
}

/// Location of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    bucket: usize,
    position: usize,
}

impl Place {
    /// Its number in the table's order.
    pub(crate) fn number(self) -> usize {
        self.bucket * POSITIONS + self.position
    }
}

pub(crate) struct Index {
    buckets: Zeroed<Bucket>,
}

fn buckets_for(entries: u32) -> usize {
    (entries as usize).div_ceil(FILL).max(1)
}

fn tag_of(hash: u64) -> u8 {
    ((hash >> 24) as u8).max(1)
}

impl Index {
    /// An index of so many elements at most.
    pub(crate) fn new(entries: u32) -> Result<Self, NoMemory> {
        Ok(Self { buckets: Zeroed::new(buckets_for(entries))? })
    }

    /// Bytes of the index of so many elements.
    pub(crate) fn bytes(entries: u32) -> u64 {
        buckets_for(entries) as u64 * size_of::<Bucket>() as u64
    }

    /// Bytes of the buckets that so many elements lie in.
    pub(crate) fn bytes_for(&self, elements: u32) -> u64 {
        self.buckets.len().min(elements as usize) as u64 * size_of::<Bucket>() as u64
    }

    /// Positions of the whole table.
    pub(crate) fn places(&self) -> usize {
        self.buckets.len() * POSITIONS
    }

    #[inline(always)]
    fn home(&self, hash: u64) -> usize {
        (((hash >> 32) * self.buckets.len() as u64) >> 32) as usize
    }

    #[inline(always)]
    fn after(&self, bucket: usize) -> usize {
        if bucket + 1 == self.buckets.len() { 0 } else { bucket + 1 }
    }

    /// Brings the first bucket of a hash closer.
    #[inline(always)]
    pub(crate) fn prefetch(&self, hash: u64) {
        if let Some(line) = self.buckets.get(self.home(hash)) {
            prefetch(std::ptr::from_ref(line).addr());
        }
    }

    /// Calls `visit` for the slots in the first bucket of a hash that may be the one looked for.
    #[inline(always)]
    pub(crate) fn visit_candidates(&self, hash: u64, visit: impl Fn(u32)) {
        let Some(line) = self.buckets.get(self.home(hash)) else { return };
        let (mut fits, _) = line.candidates(hash);
        while fits != 0 {
            if let Some(slot) =
                line.slots.get(position_of(fits)).and_then(|slot| slot.load(Relaxed).checked_sub(1))
            {
                visit(slot);
            }
            fits &= fits - 1;
        }
    }

    /// The result of `look` for the slot with this hash that `look` accepts. `look` may be called with any number, also one without a
    /// slot.
    #[inline(always)]
    pub(crate) fn find<T>(&self, hash: u64, look: impl Fn(u32) -> Option<T>) -> Option<T> {
        let line = self.buckets.get(self.home(hash))?;
        let (mut fits, is_passed) = line.candidates(hash);
        while fits != 0 {
            // A free position's number is 0, and one less that of no slot.
            let number = line.slots.get(position_of(fits))?.load(Acquire);
            if let Some(found) = look(number.wrapping_sub(1)) {
                return Some(found);
            }
            fits &= fits - 1;
        }
        if is_passed { self.find_beyond(hash, look) } else { None }
    }

    /// Cold path of the look-up, for an element in another bucket; a separate function, so that the hot path has all registers.
    #[cold]
    #[inline(never)]
    fn find_beyond<T>(&self, hash: u64, look: impl Fn(u32) -> Option<T>) -> Option<T> {
        let (_, slot) = self.locate(hash, |slot| look(slot).is_some())?;
        look(slot)
    }

    /// The slot under a hash that is the one looked for, with its place, which is its own as long as the caller has its key's
    /// lock.
    pub(crate) fn locate(&self, hash: u64, is_it: impl Fn(u32) -> bool) -> Option<(Place, u32)> {
        let home = self.home(hash);
        let mut bucket = home;
        loop {
            let line = self.buckets.get(bucket)?;
            let (mut fits, is_passed) = line.candidates(hash);
            while fits != 0 {
                let position = position_of(fits);
                // Acquire: the key is in the slot.
                let number = line.slots.get(position)?.load(Acquire);
                if number != 0 && is_it(number - 1) {
                    return Some((Place { bucket, position }, number - 1));
                }
                fits &= fits - 1;
            }
            if !is_passed {
                return None;
            }
            bucket = self.after(bucket);
            if bucket == home {
                return None;
            }
        }
    }

    /// Adds a slot, whose key is written and not in the table; there are fewer elements than the table is for.
    pub(crate) fn insert(&self, hash: u64, slot: u32) {
        let Some(Place { bucket, position }) = self.claim(hash, slot) else { return };
        let mut passed = self.home(hash);
        while passed != bucket {
            self.buckets[passed].tags[1].fetch_add(PASSED, AcqRel);
            passed = self.after(passed);
        }
        let (word, shift) = tag_at(position);
        self.buckets[bucket].tags[word].fetch_or(u64::from(tag_of(hash)) << shift, AcqRel);
    }

    fn claim(&self, hash: u64, slot: u32) -> Option<Place> {
        let mut bucket = self.home(hash);
        // Another thread can take a position meanwhile, but there are more positions than elements.
        for _ in 0..self.buckets.len().saturating_mul(POSITIONS) {
            for (position, number) in self.buckets[bucket].slots.iter().enumerate() {
                // Release: the key is written.
                if number.load(Relaxed) == 0 && number.compare_exchange(0, slot + 1, AcqRel, Relaxed).is_ok()
                {
                    return Some(Place { bucket, position });
                }
            }
            bucket = self.after(bucket);
        }
        None
    }

    /// Puts another slot with the same key in place of the one that is there.
    pub(crate) fn replace(&self, place: Place, slot: u32) {
        self.buckets[place.bucket].slots[place.position].store(slot + 1, Release);
    }

    /// Takes the element at a place out.
    pub(crate) fn remove(&self, hash: u64, place: Place) {
        let (word, shift) = tag_at(place.position);
        let line = &self.buckets[place.bucket];
        line.tags[word].fetch_and(!(0xff << shift), AcqRel);
        line.slots[place.position].store(0, Release);
        let mut passed = self.home(hash);
        while passed != place.bucket {
            self.buckets[passed].tags[1].fetch_sub(PASSED, AcqRel);
            passed = self.after(passed);
        }
    }

    /// The first slot at a place of this number or a later one, and that number.
    pub(crate) fn next(&self, from: usize, until: usize) -> Option<(usize, u32)> {
        (from..until.min(self.places())).find_map(|number| {
            let line = &self.buckets[number / POSITIONS];
            let (word, shift) = tag_at(number % POSITIONS);
            if line.tags[word].load(Acquire) >> shift & 0xff == 0 {
                return None;
            }
            let slot = line.slots[number % POSITIONS].load(Acquire).checked_sub(1)?;
            Some((number, slot))
        })
    }
}

/// The high bits of the bytes that are 0, and perhaps of some above one of these.
#[inline(always)]
fn candidates(word: u64) -> u64 {
    word.wrapping_sub(LOW) & !word & HIGH
}

/// The word with the tag of a position, and its lowest bit there.
fn tag_at(position: usize) -> (usize, usize) {
    (position / TAGS, position % TAGS * 8)
}

#[cfg(test)]
mod tests;
