//! Eviction from full tables: the clock algorithm (second chance), an approximation of least recently used, like the kernel's
//! reference bits and inactive lists (`kernel/bpf/bpf_lru_list.c`). A look-up marks its slot; a hand sweeps the slots, clears marks and
//! stops at the first slot without one. An element that is used at least once per round stays, unless the hand has passed too many
//! used elements in a row.
//!
//! Each thread has a hand of its own, which sweeps a run of slots before it asks for the next one: workers meet there only.
//!
//! While a worker stalls there may be thousands of slots that wait for each element. A bit for each slot tells where
//! elements may be: an insertion sets it, and the hand clears it when it finds none, so that it comes to a slot that waits
//! once.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::lanes::Lanes;
use crate::occupied::{Occupied, RUN};
use crate::slots::Permit;
use crate::table::Table;

/// Number of used elements in a row after which the next one is evicted all the same, as in `__bpf_lru_list_shrink`.
const PATIENCE: usize = 256;

/// The slot that a thread's hand comes to next; at the beginning of a run it asks for one.
#[derive(Default)]
struct Hand(AtomicU32);

pub(crate) struct Clock {
    /// Start of the next run.
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
        let (slots, occupied) = (table.used_slots(), table.occupied()?);
        let mut used = 0;
        for _ in 0..u64::from(slots) * 2 + u64::from(RUN) {
            let Some(slot) = self.advance(slots, occupied) else { continue };
            let Some(hash) = table.hash_of_element(slot) else {
                occupied.clear(slot, || table.hash_of_element(slot).is_some());
                continue;
            };
            if table.take_mark(slot) && used < PATIENCE {
                used += 1;
            } else if let Some(permit) = table.evict(slot, hash) {
                return Some(permit);
            }
        }
        None
    }

    /// The slot that the thread's hand comes to next; `None` at the end of a run.
    fn advance(&self, slots: u32, occupied: &Occupied) -> Option<u32> {
        let hand = &self.hands.own().0;
        // Threads that share a hand may sweep a run twice, which is no harm.
        let mut place = hand.load(Acquire);
        if place.is_multiple_of(RUN) {
            let next = |run: u32| Some(if run.saturating_add(RUN) >= slots { 0 } else { run + RUN });
            place = self.next_run.fetch_update(AcqRel, Relaxed, next).unwrap_or_default();
        }
        let slot = occupied.next(place);
        hand.store(slot.map_or(0, |slot| slot.wrapping_add(1)), Release);
        slot
    }
}
