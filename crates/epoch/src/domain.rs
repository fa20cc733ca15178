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
//!
//! # When `membarrier(2)` is denied
//! A seccomp filter may come after the domain. The first heavy fence that is denied sets a bit of the epoch,
//! [`FENCED`], for ever. A reader that loads an epoch with the bit runs a full fence when it pins itself, and keeps the
//! bit in its line, also when it clears the rest. A reader whose line has the bit fences all later pins too (it never
//! loads an older epoch again), so that a full fence on the reclaiming side is enough for it. One whose line lacks the bit
//! may be about to pin itself without a fence: nothing passes before it has pinned itself again, or is dropped.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::defer;
use crate::fence::{self, Heavy, Membarrier};
use crate::garbage::{AT_ONCE, Backlog, Limit, Queue, Retired, Stalled};
use crate::sync::lock;
use crate::sync::model::{AtomicU64, Mutex, Ordering};

/// Epoch of a worker that is not pinned.
const IDLE: u64 = 0;

/// In the epoch: readers run full fences. In a reader's line: it does so, and will.
const FENCED: u64 = 1 << 63;

/// How long a writer lets workers run before it is refused: longer than a worker is kept from its burst by others that
/// want its CPU. Not for ever: its thread may be pinned itself.
const PATIENCE: Duration = Duration::from_millis(200);

/// Workers and what they may be using. Clones are handles to the same domain.
///
/// The side that frees pays for both: a collection asks the kernel for a fence on every CPU that runs this process
/// (`membarrier(2)`, about a microsecond), so that a worker pins itself without one. Retirements collect by themselves
/// when some tens of things wait; whoever wants memory back at once calls [`Domain::collect`].
///
/// A fork of the process has the domain as it was, but not the other threads: see [`Domain::after_fork`].
///
/// While a worker stalls, what others retire piles up: [`Domain::backlog`] tells how much, and [`Domain::admit`] refuses
/// changes that would exceed a [`Limit`].
#[derive(Clone)]
pub struct Domain {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` if all readers have run full fences from the beginning.
    membarrier: Option<Membarrier>,
    /// The epoch, and [`FENCED`].
    epoch: AtomicU64,
    /// The last epoch known to have passed: nobody uses what has its tag or an earlier one.
    passed: AtomicU64,
    readers: Mutex<Vec<Arc<Slot>>>,
    queue: Mutex<Queue>,
}

/// The epoch of one worker, alone on its pair of cache lines, because adjacent lines are prefetched in pairs.
#[repr(align(128))]
struct Slot {
    /// [`IDLE`] or the epoch that it is pinned at, and [`FENCED`].
    epoch: AtomicU64,
    /// The thread that registered the reader.
    thread: std::thread::Thread,
}

/// The result of a scan of all readers.
struct Scan {
    /// The earliest epoch that one is pinned at, or the end of time.
    earliest: u64,
    /// Readers that do not fence.
    unfenced: usize,
}

impl Domain {
    /// A domain without workers.
    #[must_use]
    pub fn new() -> Self {
        Self::with_fence(Membarrier::new())
    }

    /// The domain of the process, for everything that has no reason for another.
    pub fn global() -> &'static Self {
        static DOMAIN: std::sync::OnceLock<Domain> = std::sync::OnceLock::new();
        DOMAIN.get_or_init(Self::new)
    }

    fn with_fence(membarrier: Option<Membarrier>) -> Self {
        let fenced = if membarrier.is_some() { 0 } else { FENCED };
        let shared = Shared {
            membarrier,
            epoch: AtomicU64::new((IDLE + 1) | fenced),
            passed: AtomicU64::new(IDLE),
            readers: Mutex::new(Vec::new()),
            queue: Mutex::new(Queue::default()),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Registers a worker, until the reader is dropped.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let thread = std::thread::current();
        let mut readers = lock(&self.shared.readers);
        // Under the lock: a scan that missed this reader set the bit before, and then it is seen here, and by each pin.
        let fenced = self.shared.epoch.load(Ordering::Relaxed) & FENCED;
        let slot = Arc::new(Slot { epoch: AtomicU64::new(IDLE | fenced), thread });
        readers.push(Arc::clone(&slot));
        Reader { slot, shared: Arc::clone(&self.shared) }
    }

    /// Drops `value` when no worker is pinned that was when this was called. Whoever calls has made sure that no
    /// worker that pins itself from now on finds the value.
    ///
    /// The value is dropped by a later call of this or of [`Domain::collect`], or with the last handle to the domain,
    /// on the thread that does it. Who calls them with a lock [defers drops](crate::defer_drops).
    pub fn retire<T: Send + 'static>(&self, value: T) {
        self.retire_sized(value, size_of::<T>());
    }

    /// The same for a value that keeps so many bytes, its own included.
    pub fn retire_sized(&self, value: impl Send + 'static, bytes: usize) {
        self.push(Retired { is_inert: false, _value: Box::new(value) }, bytes);
    }

    /// The same for a value whose drop calls nothing that users wrote and takes no lock that anybody holds who retires, collects
    /// or [asks for room](Self::admit): it is not [deferred](crate::defer_drops).
    pub fn retire_inert(&self, value: impl Send + 'static, bytes: usize) {
        self.push(Retired { is_inert: true, _value: Box::new(value) }, bytes);
    }

    fn push(&self, value: Retired, bytes: usize) {
        let due = {
            let mut queue = lock(&self.shared.queue);
            // Under the lock: tags ascend.
            let tag = self.advance();
            queue.push(tag, bytes, value);
            queue.is_due()
        };
        // While a worker stalls this costs a look at the readers: the fence comes when it goes on.
        if due && !defer::is_draining() {
            self.collect_some(AT_ONCE);
        }
    }

    /// The tag of what was unpublished before this call, for [`has_passed`](Self::has_passed).
    pub fn advance(&self) -> u64 {
        // Release: who reads the new epoch sees what was unpublished.
        (self.shared.epoch.fetch_add(1, Ordering::AcqRel) & !FENCED) + 1
    }

    /// Whether no worker can be using what has this tag. It may cost a fence on all CPUs to find out that it has passed:
    /// ask for many things at once. That a worker which is pinned keeps it from passing costs no fence.
    #[must_use]
    pub fn has_passed(&self, tag: u64) -> bool {
        self.shared.passed_since(tag) >= tag
    }

    /// Drops what no worker can be using any more, and says how many things that were, [deferred](crate::defer_drops) ones included.
    pub fn collect(&self) -> usize {
        self.collect_some(usize::MAX)
    }

    fn collect_some(&self, most: usize) -> usize {
        let shared = &self.shared;
        let Some(oldest) = lock(&shared.queue).oldest() else { return 0 };
        let passed = shared.passed_since(oldest);
        if passed < oldest {
            return 0;
        }
        let freed = lock(&shared.queue).take(passed, most);
        // Outside the lock, because a value may retire others when it is dropped.
        let count = freed.len();
        defer::release(freed);
        count
    }

    /// How many things wait for the end of their grace period.
    #[must_use]
    pub fn pending(&self) -> usize {
        lock(&self.shared.queue).len()
    }

    /// The garbage that waits for the end of its grace period, and the reader that holds it back.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        let backlog = lock(&self.shared.queue).backlog();
        let Scan { earliest, unfenced } = self.shared.scan();
        let is_fenced = self.shared.epoch.load(Ordering::Relaxed) & FENCED != 0;
        let unfenced = if is_fenced { unfenced } else { 0 };
        Backlog { holder: self.shared.holder(earliest), unfenced, ..backlog }
    }

    /// Sets how much may wait before changes are refused.
    pub fn set_limit(&self, limit: Limit) {
        lock(&self.shared.queue).limit = limit;
    }

    /// Whether a change may retire more, for workers in their bursts: frees what it can, and waits for nobody.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let is_within_limit = || lock(&self.shared.queue).is_within_limit();
        is_within_limit() || self.collect_some(AT_ONCE) > 0 && is_within_limit()
    }

    /// Asks whether a change may retire more. While too much waits this frees what it can, and lets workers run for up to
    /// 200 ms, once for each stall. For those who replace things, before they do; not for workers in their bursts.
    ///
    /// # Errors
    /// [`Stalled`]: workers that stall keep as much as the [`Limit`] allows.
    pub fn admit(&self) -> Result<(), Stalled> {
        if self.has_room() {
            return Ok(());
        }
        let start = Instant::now();
        loop {
            self.collect_some(AT_ONCE);
            let mut queue = lock(&self.shared.queue);
            let oldest = queue.oldest().unwrap_or(IDLE);
            if queue.is_within_limit() {
                return Ok(());
            }
            if queue.waited_for == oldest || start.elapsed() > PATIENCE {
                queue.waited_for = oldest;
                drop(queue);
                return Err(Stalled(self.backlog()));
            }
            drop(queue);
            std::thread::yield_now();
        }
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
        let limit = self.epoch.load(Ordering::Acquire) & !FENCED;
        // A worker pinned since before the oldest tag makes the fence pointless.
        if self.scan().earliest < oldest {
            return IDLE;
        }
        let Some(readers_fence) = self.heavy() else { return IDLE };
        let Scan { earliest, unfenced } = self.scan();
        if readers_fence && unfenced != 0 {
            return IDLE;
        }
        let passed = earliest.min(limit);
        self.passed.fetch_max(passed, Ordering::AcqRel);
        passed
    }

    /// The reclaiming side's fence; `None` if it failed. True if it orders only readers that fence too.
    fn heavy(&self) -> Option<bool> {
        if let Some(membarrier) = self.membarrier
            && self.epoch.load(Ordering::Relaxed) & FENCED == 0
        {
            match membarrier.heavy() {
                Heavy::Done => return Some(false),
                Heavy::Failed => return None,
                Heavy::Denied => drop(self.epoch.fetch_or(FENCED, Ordering::AcqRel)),
            }
        }
        fence::fence(Ordering::SeqCst);
        Some(true)
    }

    fn scan(&self) -> Scan {
        let readers = lock(&self.readers);
        let mut scan = Scan { earliest: u64::MAX, unfenced: 0 };
        for slot in &*readers {
            let line = slot.epoch.load(Ordering::Acquire);
            scan.unfenced += usize::from(line & FENCED == 0);
            if line & !FENCED != IDLE {
                scan.earliest = scan.earliest.min(line & !FENCED);
            }
        }
        scan
    }

    /// The thread of a reader that is pinned at an epoch.
    fn holder(&self, epoch: u64) -> Option<String> {
        let readers = lock(&self.readers);
        let is_it = |slot: &&Arc<Slot>| slot.epoch.load(Ordering::Relaxed) & !FENCED == epoch;
        let thread = &readers.iter().find(is_it)?.thread;
        Some(thread.name().map_or_else(|| format!("{:?}", thread.id()), str::to_owned))
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
        if epoch & FENCED == 0 {
            fence::light();
        } else {
            fence::fence(Ordering::SeqCst);
        }
        Pin { slot: &self.slot, domain: &self.shared, idle: IDLE | epoch & FENCED }
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
    /// The value of the reader's line after the pin.
    idle: u64,
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
        self.slot.epoch.store(self.idle, Ordering::Release);
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

#[cfg(not(loom))]
#[path = "fork.rs"]
mod fork;

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
