//! Grace periods: what was replaced is freed only when no worker can still be using it.
//!
//! The epoch counts retirements. A worker that pins itself stores the epoch it sees in a cache line of its own, and
//! clears it when its burst is over. What is retired gets the epoch after it was unpublished as its tag. It may be
//! freed when every worker has either cleared its line or stored that epoch or a later one:
//! * a worker with a tag's epoch or a later one loaded it after the retirement counted it up (acquire, release), and
//!   so after the pointer was replaced: it cannot have found the old one;
//! * a worker whose line is clear after the heavy fence either was done (its clearing is a release, our load an
//!   acquire), or had not yet stored its epoch when the fence ran on its CPU. In the latter case it looks for the
//!   current pointer after the fence, and finds the new one.
//!
//! A worker preempted between loading the epoch and storing it stores an old one, which only delays.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::fence::Fence;
use crate::sync::lock;
use crate::sync::model::{AtomicU64, Mutex, Ordering};

/// Epoch of a worker that is not pinned.
const IDLE: u64 = 0;

/// So many retired things are let wait before a retirement pays for the heavy fence: it interrupts other CPUs.
const BATCH: usize = 32;

/// Workers and what they may be using. Clones are handles to the same domain.
///
/// The side that frees pays for both: a collection asks the kernel for a fence on every CPU that runs this process
/// (`membarrier(2)`, about a microsecond), so that a worker pins itself without one. Retirements collect by themselves
/// when some tens of things wait; whoever wants memory back at once calls [`Domain::collect`].
#[derive(Clone)]
pub struct Domain {
    shared: Arc<Shared>,
}

struct Shared {
    fence: Fence,
    epoch: AtomicU64,
    /// The last epoch known to have passed: nobody uses what has its tag or an earlier one.
    passed: AtomicU64,
    readers: Mutex<Vec<Arc<Slot>>>,
    queue: Mutex<Queue>,
}

struct Queue {
    /// By ascending tag.
    waiting: VecDeque<(u64, Box<dyn Send>)>,
    /// Retirements collect from this length on.
    threshold: usize,
}

/// The epoch of one worker, alone on its pair of cache lines, because adjacent lines are prefetched in pairs.
#[repr(align(128))]
struct Slot {
    epoch: AtomicU64,
}

impl Domain {
    /// A domain without workers.
    #[must_use]
    pub fn new() -> Self {
        Self::with_fence(Fence::new())
    }

    /// The domain of the process, for everything that has no reason for another.
    pub fn global() -> &'static Self {
        static DOMAIN: std::sync::OnceLock<Domain> = std::sync::OnceLock::new();
        DOMAIN.get_or_init(Self::new)
    }

    fn with_fence(fence: Fence) -> Self {
        let queue = Queue { waiting: VecDeque::new(), threshold: BATCH };
        let shared = Shared {
            fence,
            epoch: AtomicU64::new(IDLE + 1),
            passed: AtomicU64::new(IDLE),
            readers: Mutex::new(Vec::new()),
            queue: Mutex::new(queue),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Registers a worker, until the reader is dropped.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let slot = Arc::new(Slot { epoch: AtomicU64::new(IDLE) });
        lock(&self.shared.readers).push(Arc::clone(&slot));
        Reader { fence: self.shared.fence, slot, shared: Arc::clone(&self.shared) }
    }

    /// Drops `value` when no worker is pinned that was when this was called. Whoever calls has made sure that no
    /// worker that pins itself from now on finds the value.
    ///
    /// The value is dropped by a later call of this or of [`Domain::collect`], or with the last handle to the domain,
    /// on the thread that does it.
    pub fn retire(&self, value: impl Send + 'static) {
        let value: Box<dyn Send> = Box::new(value);
        let due = {
            let mut queue = lock(&self.shared.queue);
            // Under the lock: tags ascend.
            let tag = self.advance();
            queue.waiting.push_back((tag, value));
            queue.waiting.len() >= queue.threshold
        };
        if due {
            self.collect();
        }
    }

    /// The tag of what was unpublished before this call, for [`has_passed`](Self::has_passed).
    pub fn advance(&self) -> u64 {
        // Release: who reads the new epoch sees what was unpublished.
        self.shared.epoch.fetch_add(1, Ordering::AcqRel) + 1
    }

    /// Whether no worker can be using what has this tag. It may cost a fence on all CPUs to find out that it has passed:
    /// ask for many things at once. That a worker which is pinned keeps it from passing costs no fence.
    #[must_use]
    pub fn has_passed(&self, tag: u64) -> bool {
        self.shared.passed_since(tag) >= tag
    }

    /// Drops what no worker can be using any more, and says how many things that were.
    pub fn collect(&self) -> usize {
        let shared = &self.shared;
        let oldest = match lock(&shared.queue).waiting.front() {
            Some(&(oldest, _)) => oldest,
            None => return 0,
        };
        let passed = shared.passed_since(oldest);
        let freed: Vec<Box<dyn Send>> = {
            let mut queue = lock(&shared.queue);
            let count = queue.waiting.partition_point(|&(tag, _)| tag <= passed);
            let freed = queue.waiting.drain(..count).map(|(_, value)| value).collect();
            // Twice what remains: a worker that stays pinned does not make every retirement look again.
            queue.threshold = BATCH.max(2 * queue.waiting.len());
            freed
        };
        // Outside the lock, because a value may retire others when it is dropped.
        let count = freed.len();
        drop(freed);
        count
    }

    /// How many things wait for the end of their grace period.
    #[must_use]
    pub fn pending(&self) -> usize {
        lock(&self.shared.queue).waiting.len()
    }
}

impl Shared {
    /// The last epoch that has passed, where that is `oldest` or later; else something before `oldest`.
    fn passed_since(&self, oldest: u64) -> u64 {
        // Acquire: who reuses what another thread found to have passed comes after the workers' last looks.
        let known = self.passed.load(Ordering::Acquire);
        if known >= oldest {
            return known;
        }
        // What is retired while we look was perhaps unpublished after the fence.
        let limit = self.epoch.load(Ordering::Acquire);
        // A worker pinned since before the oldest tag makes the fence pointless.
        if self.earliest_pin() < oldest || !self.fence.heavy() {
            return IDLE;
        }
        let passed = self.earliest_pin().min(limit);
        self.passed.fetch_max(passed, Ordering::AcqRel);
        passed
    }

    /// The earliest epoch that a worker is pinned at, or the end of time.
    fn earliest_pin(&self) -> u64 {
        let readers = lock(&self.readers);
        let epochs = readers.iter().map(|slot| slot.epoch.load(Ordering::Acquire));
        epochs.filter(|&epoch| epoch != IDLE).min().unwrap_or(u64::MAX)
    }
}

impl Default for Domain {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Domain").field("pending", &self.pending()).finish_non_exhaustive()
    }
}

/// A worker's registration in a domain.
pub struct Reader {
    fence: Fence,
    slot: Arc<Slot>,
    shared: Arc<Shared>,
}

impl Reader {
    /// Begins a burst: what can be found from now on stays until the guard is dropped. Load the pointer to what is
    /// to be run after this, with acquire.
    ///
    /// Costs a load, two stores to a line that no other worker writes, and no fence (see [`Domain`]).
    #[inline]
    pub fn pin(&mut self) -> Pin<'_> {
        let epoch = self.shared.epoch.load(Ordering::Acquire);
        self.slot.epoch.store(epoch, Ordering::Relaxed);
        self.fence.light();
        Pin { slot: &self.slot, domain: &self.shared }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        lock(&self.shared.readers).retain(|slot| !Arc::ptr_eq(slot, &self.slot));
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// A worker in a burst.
#[derive(Debug)]
#[must_use = "the worker is pinned only as long as this lives"]
pub struct Pin<'reader> {
    slot: &'reader Slot,
    /// Whose grace periods wait for this worker.
    domain: &'reader Shared,
}

impl Pin<'_> {
    /// Whether what is retired to a domain stays while this lives.
    #[must_use]
    pub fn holds(&self, domain: &Domain) -> bool {
        std::ptr::eq(self.domain, &raw const *domain.shared)
    }
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.slot.epoch.store(IDLE, Ordering::Release);
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl fmt::Debug for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Slot").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
