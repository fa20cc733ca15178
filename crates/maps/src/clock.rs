//! Which element of a full table to give up: the clock algorithm (second chance), an approximation of least recently
//! used, as the kernel's reference bits and inactive lists are one (`kernel/bpf/bpf_lru_list.c`). A look-up marks its
//! slot; a hand goes round the slots, takes marks away and stops at the first slot without one. So an element that is
//! used at least once in each round stays.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};

use crate::slab::{NoMemory, Shape, Slab};
use crate::table::Table;

/// Slots that have their marks in one word.
const MARKS: usize = u64::BITS as usize;

pub(crate) struct Clock {
    marks: Slab,
    slots: usize,
    hand: AtomicUsize,
}

fn shape(slots: usize) -> Shape {
    Shape { lanes: 1, cells: slots.div_ceil(MARKS), words: 1 }
}

impl Clock {
    pub(crate) fn new(slots: usize) -> Result<Self, NoMemory> {
        Ok(Self { marks: Slab::new(shape(slots))?, slots, hand: AtomicUsize::new(0) })
    }

    /// Bytes of the marks of so many slots.
    pub(crate) fn bytes(slots: usize) -> Option<u64> {
        shape(slots).bytes().map(|bytes| bytes as u64)
    }

    fn mark_of(&self, slot: usize) -> Option<(&AtomicU64, u64)> {
        let word = self.marks.words(0, slot / MARKS).first()?;
        Some((word, 1 << (slot % MARKS)))
    }

    /// Marks a slot as used. Writes only where there is no mark yet, so that workers can share hot elements.
    #[inline]
    pub(crate) fn touch(&self, slot: u32) {
        if let Some((word, bit)) = self.mark_of(slot as usize)
            && word.load(Relaxed) & bit == 0
        {
            word.fetch_or(bit, Relaxed);
        }
    }

    /// Takes the mark of a slot away; whether there was one.
    pub(crate) fn forget(&self, slot: usize) -> bool {
        self.mark_of(slot).is_some_and(|(word, bit)| {
            word.load(Relaxed) & bit != 0 && word.fetch_and(!bit, Relaxed) & bit != 0
        })
    }

    /// Removes an element that was not used since the hand last came by. False when two rounds find none, which
    /// other threads can cause.
    pub(crate) fn evict(&self, table: &Table) -> bool {
        (0..self.slots.saturating_mul(2)).any(|_| {
            let slot = self.hand.fetch_add(1, Relaxed) % self.slots;
            !self.forget(slot) && table.evict(slot as u32)
        })
    }
}
