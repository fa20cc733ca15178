//! Which slots have an element, and whether it was used, in tables that give up elements.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::slab::{NoMemory, Zeroed};
use crate::sync::AtomicU64 as Bits;

/// Slots that a hand sweeps alone: those of a word of bits.
pub(crate) const RUN: u32 = u64::BITS;
/// An element is there.
const LIVE: u64 = 1;
/// It was used since the hand last came by.
const USED: u64 = 2;
/// The bits of a hash that a state keeps: the index and the stripes need no others.
const HASH: u64 = !0xff;

/// State of a slot's element: its hash, whether it is present, and whether it was used. Presence changes under the lock of the
/// element's stripe.
#[derive(Clone, Copy)]
pub(crate) struct State<'a>(pub(crate) &'a AtomicU64);

impl State<'_> {
    /// Marks the element as used. Writes only where there is no mark yet, so that workers can share hot elements.
    #[inline(always)]
    pub(crate) fn touch(self) {
        if self.0.load(Relaxed) & USED == 0 {
            self.0.fetch_or(USED, Relaxed);
        }
    }

    /// Takes the mark away; whether there was one.
    pub(crate) fn forget(self) -> bool {
        self.0.load(Relaxed) & USED != 0 && self.0.fetch_and(!USED, Relaxed) & USED != 0
    }

    /// The hash of the element, if there is one.
    pub(crate) fn hash(self) -> Option<u64> {
        let state = self.0.load(Acquire);
        (state & LIVE != 0).then_some(state & HASH)
    }

    /// An element of a hash, not used yet; or none.
    pub(crate) fn set(self, hash: Option<u64>) {
        self.0.store(hash.map_or(0, |hash| hash & HASH | LIVE), Release);
    }
}

/// Slots that may have elements, a bit each.
pub(crate) struct Occupied(Zeroed<Bits>);

impl Occupied {
    pub(crate) fn new(slots: usize) -> Result<Self, NoMemory> {
        Ok(Self(Zeroed::new(slots.div_ceil(RUN as usize))?))
    }

    /// Bytes for so many slots.
    pub(crate) fn bytes(slots: usize) -> u64 {
        slots.div_ceil(RUN as usize) as u64 * size_of::<u64>() as u64
    }

    fn change(&self, slot: u32, change: impl FnOnce(&Bits, u64) -> u64) {
        if let Some(word) = self.0.get((slot / RUN) as usize) {
            change(word, 1 << (slot % RUN));
        }
    }

    /// A slot has an element, which its state tells already.
    #[inline]
    pub(crate) fn set(&self, slot: u32) {
        // Also where the bit is set: see `clear`.
        self.change(slot, |word, bit| word.fetch_or(bit, AcqRel));
    }

    /// A slot was found without an element. Of this and the setting of the bit for a new one, whichever comes second sees
    /// the other: there is no element without a bit.
    pub(crate) fn clear(&self, slot: u32, has_element: impl FnOnce() -> bool) {
        self.change(slot, |word, bit| word.fetch_and(!bit, AcqRel));
        if has_element() {
            self.set(slot);
        }
    }

    /// The first slot from this one on to the end of its run that may have an element.
    pub(crate) fn next(&self, slot: u32) -> Option<u32> {
        let run = slot / RUN;
        let word = self.0.get(run as usize)?.load(Acquire) & u64::MAX << (slot % RUN);
        (word != 0).then(|| run * RUN + word.trailing_zeros())
    }
}

#[cfg(test)]
#[cfg(loom)]
mod model {
    use std::sync::Arc;

    use loom::thread;

    use super::{AcqRel, Acquire, Occupied, Release};
    use crate::sync::AtomicU64;

    /// The hand finds a slot that waits, while a thread gives it to a new element: the element has a bit in the end.
    #[test]
    fn no_element_is_without_a_bit() {
        loom::model(|| {
            let shared = Arc::new((Occupied::new(2).unwrap(), AtomicU64::new(0)));
            shared.0.set(1);
            let insert = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    shared.1.store(1, Release);
                    shared.0.set(1);
                })
            };
            let has_element = || shared.1.load(Acquire) != 0;
            if shared.0.next(0) == Some(1) && !has_element() {
                shared.0.clear(1, has_element);
            }
            insert.join().unwrap();
            assert_eq!(shared.0.next(0), Some(1));
            assert_eq!(shared.1.fetch_or(0, AcqRel), 1);
        });
    }
}
