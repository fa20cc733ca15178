//! Which element of a full table to give up: the clock algorithm (second chance), an approximation of least recently
//! used, as the kernel's reference bits and inactive lists are one (`kernel/bpf/bpf_lru_list.c`). A look-up marks its
//! slot; a hand goes round the slots, takes marks away and stops at the first slot without one. So an element that is
//! used at least once in each round stays, unless so many in a row are in use that looking on would take too long.
//!
//! Each thread has a hand of its own, which sweeps a run of slots before it asks for the next one: workers meet there only.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::lanes::Lanes;
use crate::slots::Permit;
use crate::table::Table;

/// Slots that a hand sweeps alone.
const RUN: u32 = 64;
/// Elements in use after which the next one goes all the same, as in `__bpf_lru_list_shrink`.
const PATIENCE: usize = 256;

/// An element is there.
const LIVE: u64 = 1;
/// It was used since the hand last came by.
const USED: u64 = 2;
/// The bits of a hash that a state keeps: the index and the stripes need no others.
const HASH: u64 = !0xff;

/// What a slot tells of its element: its hash, whether it is there, and whether it was used. Whether it is there changes
/// under the lock of its stripe.
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

/// A thread's place in the run of slots that it sweeps.
#[derive(Default)]
struct Hand(AtomicU64);

pub(crate) struct Clock {
    /// Where the next run begins.
    next_run: AtomicU32,
    hands: Lanes<Hand>,
}

impl Clock {
    pub(crate) fn new(lanes: usize) -> Self {
        Self { next_run: AtomicU32::new(0), hands: Lanes::new(lanes) }
    }

    /// Removes an element that was not used since a hand last came by, or else the one that the hand is at, and gives its
    /// permit. `None` when two rounds find none, which other threads can cause.
    pub(crate) fn evict<'a>(&self, table: &'a Table) -> Option<Permit<'a>> {
        let slots = table.used_slots();
        let mut used = 0;
        for _ in 0..u64::from(slots) * 2 + u64::from(RUN) {
            let slot = self.advance(slots);
            let Some(hash) = table.hash_of_element(slot) else { continue };
            if table.take_mark(slot) && used < PATIENCE {
                used += 1;
            } else if let Some(permit) = table.evict(slot, hash) {
                return Some(permit);
            }
        }
        None
    }

    /// The slot that the thread's hand comes to next.
    fn advance(&self, slots: u32) -> u32 {
        let hand = &self.hands.own().0;
        // Threads that share a hand may sweep a run twice, which is no harm.
        let place = hand.fetch_add(1, AcqRel);
        if !place.is_multiple_of(u64::from(RUN)) {
            return place as u32;
        }
        let next = |run: u32| Some(if run.saturating_add(RUN) >= slots { 0 } else { run + RUN });
        let run = self.next_run.fetch_update(AcqRel, Relaxed, next).unwrap_or_default();
        hand.store(u64::from(run) + 1, Release);
        run
    }
}
