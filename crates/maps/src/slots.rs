//! Slots without an element. Each thread has a lane of its own to take them from and give them back to, as each CPU has a
//! free list in the kernel (`kernel/bpf/percpu_freelist.c`, `bpf_lru_list.c`), so that workers seldom meet.
//!
//! Two things are counted apart. A *permit* is the right to add one element: there are as many as the map may have
//! elements. A *slot* is memory for one, and there are more: the slot of an element that was replaced or removed waits until no
//! worker can be using it. Waiting slots are tagged by the batch, because finding out that they have waited long enough
//! costs a fence on all CPUs.
//!
//! A worker that finds only waiting slots gets `ENOMEM`; it does not block.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::time::{Duration, Instant};

use paceline_epoch::Domain;

use crate::lanes::Lanes;
use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard};

/// Most slots that a lane takes at once.
const MAX_CHUNK: u32 = 32;
/// Most slots that wait under one tag.
const MAX_BATCH: u32 = 256;
/// Bytes of slots that may wait: as many as the elements take, within these. A worker that loses its core in a burst keeps
/// all that others replace meanwhile from being used again; this is room for milliseconds of that. Pages are committed when it
/// happens, not before.
const RESERVE_BYTES: std::ops::RangeInclusive<u64> = 4 << 20..=64 << 20;
/// The reserve takes no more of a limit on memory than one part in so many.
const RESERVE_SHARE: u64 = 4;
/// Slots that each lane may have waiting at least.
const LEAST_RESERVE: u64 = 16;

/// Maximum time that user space waits for workers when no slot is free: longer than the preemption of a worker within its burst. It is
/// limited because the waiting thread may be pinned itself.
pub(crate) const PATIENCE: Duration = Duration::from_millis(200);

/// Caller that requests a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Caller {
    /// A worker in its burst: no packet waits for another worker, and two that wait for each other would never end.
    Worker,
    /// User space, which may wait for workers.
    User,
}

/// Number of slots of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotCount {
    pub(crate) elements: u32,
    reserve_per_lane: u32,
    pub(crate) lanes: usize,
}

impl SlotCount {
    /// For so many elements, whose slots take so many bytes each, where a map may take `memory` bytes.
    pub(crate) fn new(elements: u32, slot_bytes: u64, lanes: usize, memory: u64) -> Self {
        let all = u64::from(elements).saturating_mul(slot_bytes);
        let bytes = all.clamp(*RESERVE_BYTES.start(), *RESERVE_BYTES.end()).min(memory / RESERVE_SHARE);
        let reserve = (bytes / slot_bytes.max(1) / lanes.max(1) as u64).max(LEAST_RESERVE);
        Self { elements, reserve_per_lane: u32::try_from(reserve).unwrap_or(u32::MAX), lanes }
    }

    /// All of them; `None` where they cannot be counted.
    pub(crate) fn total(self) -> Option<u32> {
        let reserve = self.reserve_per_lane.checked_mul(u32::try_from(self.lanes).ok()?)?;
        self.elements.checked_add(reserve).filter(|&total| total < u32::MAX)
    }
}

pub(crate) struct Slots {
    /// Of the workers that look elements up.
    domain: Domain,
    lanes: Lanes<Mutex<Lane>>,
    /// Permits that were returned to each lane. Apart from the slots, because a thread without permits searches the lanes of all threads.
    permits: Lanes<AtomicU32>,
    /// Slots that were never taken.
    first_permits: AtomicU32,
    /// Slots from this one on were never used.
    fresh: AtomicU32,
    total: u32,
    chunk: u32,
    batch: usize,
    /// The tag after which a wait has timed out: no thread waits for it again.
    waited_for: AtomicU64,
}

#[derive(Default)]
struct Lane {
    /// The one that waited longest first: so slots come back in the order in which they went.
    free: VecDeque<u32>,
    /// Slots that wait for a tag.
    open: Vec<u32>,
    /// Slots that wait for the end of their grace period, by ascending tag.
    waiting: VecDeque<(u64, Vec<u32>)>,
    /// Empty lists that are used again: workers take no memory of the heap.
    lists: Vec<Vec<u32>>,
}

impl Slots {
    /// `None` where there are more than can be counted.
    pub(crate) fn new(count: SlotCount) -> Option<Self> {
        let lanes = count.lanes as u32;
        Some(Self {
            domain: Domain::global().clone(),
            lanes: Lanes::new(count.lanes),
            permits: Lanes::new(count.lanes),
            first_permits: AtomicU32::new(count.elements),
            fresh: AtomicU32::new(0),
            total: count.total()?,
            chunk: (count.elements / lanes / 8).clamp(1, MAX_CHUNK),
            waited_for: AtomicU64::new(u64::MAX),
            batch: (count.reserve_per_lane / 4).clamp(1, MAX_BATCH) as usize,
        })
    }

    /// Slots from this one on were never used.
    pub(crate) fn used(&self) -> u32 {
        self.fresh.load(Relaxed).min(self.total)
    }

    fn lane(&self) -> MutexGuard<'_, Lane> {
        lock(self.lanes.own())
    }

    /// The lane of this thread, for several changes.
    pub(crate) fn own_lane(&self) -> OwnLane<'_> {
        OwnLane { lane: self.lane(), slots: self }
    }

    /// A slot without readers. `None` if workers in a burst may be using all remaining slots.
    pub(crate) fn take(&self, caller: Caller) -> Option<u32> {
        let own = self.lane().take(self);
        own.or_else(|| match caller {
            Caller::Worker => self.take_of_others(),
            Caller::User => self.wait_for_one(),
        })
    }

    #[cold]
    fn take_of_others(&self) -> Option<u32> {
        self.lanes.iter().find_map(|lane| lock(lane).take(self))
    }

    #[cold]
    fn wait_for_one(&self) -> Option<u32> {
        let start = Instant::now();
        loop {
            let found = self.take_of_others();
            if found.is_some() {
                return found;
            }
            let oldest = self.lanes.iter().filter_map(|lane| Some(lock(lane).waiting.front()?.0)).min();
            let oldest = oldest.unwrap_or_default();
            if self.waited_for.load(Relaxed) == oldest {
                return None;
            }
            if start.elapsed() > PATIENCE {
                self.waited_for.store(oldest, Relaxed);
            }
            std::thread::yield_now();
        }
    }

    /// Returns a slot that was never published.
    pub(crate) fn put_back(&self, slot: u32) {
        self.lane().free.push_front(slot);
    }

    /// Gives back a slot that workers may have found.
    pub(crate) fn retire(&self, slot: u32) {
        self.lane().retire(slot, self);
    }

    /// Takes the right to add an element; `None` when the map has as many as it may.
    pub(crate) fn permit(&self) -> Option<Permit<'_>> {
        let take = |permits: &AtomicU32| {
            let take = |left: u32| left.checked_sub(1);
            permits.load(Relaxed) != 0 && permits.fetch_update(AcqRel, Relaxed, take).is_ok()
        };
        // Permits move directly to their taker, so that the search misses none in transit.
        let found = take(self.permits.own()) || take(&self.first_permits) || self.permits.iter().any(take);
        found.then(|| Permit(self))
    }

    /// The right that an element had which is gone.
    pub(crate) fn permit_of_removed(&self) -> Permit<'_> {
        Permit(self)
    }

    /// Slots that were never used.
    fn take_fresh(&self) -> std::ops::Range<u32> {
        let take =
            |fresh: u32| (fresh < self.total).then(|| fresh.saturating_add(self.chunk).min(self.total));
        match self.fresh.fetch_update(Relaxed, Relaxed, take) {
            Ok(start) => start..start.saturating_add(self.chunk).min(self.total),
            Err(_) => 0..0,
        }
    }
}

/// The locked lane of a thread.
pub(crate) struct OwnLane<'a> {
    lane: MutexGuard<'a, Lane>,
    slots: &'a Slots,
}

impl OwnLane<'_> {
    /// A slot of the lane without readers.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.lane.take(self.slots)
    }

    /// As of [`Slots::retire`].
    pub(crate) fn retire(&mut self, slot: u32) {
        self.lane.retire(slot, self.slots);
    }
}

impl Lane {
    fn retire(&mut self, slot: u32, slots: &Slots) {
        self.open.push(slot);
        if self.open.len() >= slots.batch {
            self.close(&slots.domain);
        }
    }

    /// Gives a tag to those that wait for one.
    fn close(&mut self, domain: &Domain) {
        if !self.open.is_empty() {
            // default: a new list.
            let empty = self.lists.pop().unwrap_or_default();
            let slots = std::mem::replace(&mut self.open, empty);
            self.waiting.push_back((domain.advance(), slots));
        }
    }

    /// Frees those that have waited long enough.
    fn collect(&mut self, domain: &Domain) {
        while self.waiting.front().is_some_and(|&(tag, _)| domain.has_passed(tag)) {
            let Some((_, mut slots)) = self.waiting.pop_front() else { break };
            self.free.extend(slots.drain(..));
            self.lists.push(slots);
        }
    }

    fn take(&mut self, slots: &Slots) -> Option<u32> {
        if self.free.is_empty() {
            self.collect(&slots.domain);
        }
        if self.free.is_empty() {
            self.free.extend(slots.take_fresh());
        }
        if self.free.is_empty() {
            self.close(&slots.domain);
            self.collect(&slots.domain);
        }
        self.free.pop_front()
    }
}

/// The right to add an element, given back unless it is used.
pub(crate) struct Permit<'a>(&'a Slots);

impl Permit<'_> {
    /// An element was added.
    pub(crate) fn spend(self) {
        std::mem::forget(self);
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.0.permits.own().fetch_add(1, AcqRel);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[cfg(not(loom))]
pub(crate) mod tests {
    use super::*;

    /// Held by tests that stay in a burst, and by those that need bursts to end: they have one domain.
    pub(crate) static BURSTS_END: Mutex<()> = Mutex::new(());

    #[test]
    fn user_space_waits_for_workers_and_workers_for_nobody() {
        let count = SlotCount::new(1, 8, 1, 0);
        let slots = Slots::new(count).unwrap();
        let _turn = lock(&BURSTS_END);
        let mut reader = Domain::global().reader();
        let burst = reader.pin();
        while let Some(slot) = slots.take(Caller::Worker) {
            slots.retire(slot);
        }
        assert_eq!(slots.used(), count.total().unwrap());
        assert_eq!(slots.waited_for.load(Relaxed), u64::MAX, "nobody waited");
        assert_eq!(slots.take(Caller::User), None);
        assert_ne!(slots.waited_for.load(Relaxed), u64::MAX);
        drop(burst);
        // Other tests of this process may be in bursts of theirs.
        while slots.take(Caller::Worker).is_none() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_reserve_is_a_share_of_the_memory() {
        let bytes = |elements, memory| {
            let count = SlotCount::new(elements, 16, 4, memory);
            u64::from(count.total().unwrap() - elements) * 16
        };
        assert_eq!(bytes(1000, u64::MAX), *RESERVE_BYTES.start());
        assert_eq!(bytes(1 << 20, u64::MAX), 16 << 20);
        assert_eq!(bytes(1 << 26, u64::MAX), *RESERVE_BYTES.end());
        assert_eq!(bytes(1 << 20, 1 << 20), (1 << 20) / RESERVE_SHARE);
        assert_eq!(bytes(1, 0), LEAST_RESERVE * 4 * 16);
    }
}

#[cfg(test)]
#[cfg(loom)]
mod model {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::{Acquire, Release};

    use loom::thread;

    use super::*;

    /// Two slots for one element.
    fn two_slots(domain: &Domain) -> Slots {
        Slots {
            domain: domain.clone(),
            lanes: Lanes::new(1),
            permits: Lanes::new(1),
            first_permits: AtomicU32::new(1),
            fresh: AtomicU32::new(0),
            total: 2,
            chunk: 1,
            batch: 1,
            waited_for: AtomicU64::new(u64::MAX),
        }
    }

    /// A worker looks at the element's slot while it is replaced, again and again: nobody writes the slot that it found.
    #[test]
    fn a_slot_that_is_looked_at_is_not_given_away() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let domain = Domain::new();
            let slots = two_slots(&domain);
            let shared = Arc::new(([0, 1].map(AtomicU64::new), AtomicU32::new(0)));
            let first = slots.take(Caller::Worker).unwrap();
            shared.1.store(first, Release);
            let mut reader = domain.reader();
            let worker = {
                let shared = Arc::clone(&shared);
                thread::spawn(move || {
                    let _burst = reader.pin();
                    let cell = &shared.0[shared.1.load(Acquire) as usize];
                    assert_eq!(cell.load(Relaxed), cell.load(Relaxed));
                })
            };
            for version in 2..4 {
                if let Some(slot) = slots.take(Caller::Worker) {
                    shared.0[slot as usize].store(version, Relaxed);
                    slots.retire(shared.1.swap(slot, AcqRel));
                }
            }
            worker.join().unwrap();
            assert!(slots.take(Caller::Worker).is_some(), "none is lost");
        });
    }

    /// Two threads add an element each to a table for one, which another leaves meanwhile.
    #[test]
    fn there_are_as_many_permits_as_elements() {
        loom::model(|| {
            let slots = Arc::new(two_slots(&Domain::new()));
            let take = |slots: &Slots| slots.permit().map(Permit::spend).is_some();
            let others = [(); 2].map(|()| {
                let slots = Arc::clone(&slots);
                thread::spawn(move || take(&slots))
            });
            let taken = others.map(|other| other.join().unwrap());
            assert!(taken[0] != taken[1]);
            drop(slots.permit_of_removed());
            assert!(take(&slots) && !take(&slots));
        });
    }
}
