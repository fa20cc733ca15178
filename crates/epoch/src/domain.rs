//! Grace periods: a replaced value is freed only when no worker can still be using it.
//!
//! The epoch counts retirements. A worker that pins itself stores the current epoch in its own cache line, and clears it at the end
//! of its burst. A retired value is tagged with the epoch after it was unpublished. It may be freed when every worker has either
//! cleared its line or stored that epoch or a later one:
//! * a worker with the tag's epoch or a later one loaded it after the retirement incremented it (acquire, release), and thus after
//!   the pointer was replaced: it cannot have loaded the old one;
//! * a worker whose line is clear after the heavy fence was either done (its clearing is a release, the load of its line an
//!   acquire), or had not yet stored its epoch when the fence ran on its CPU. In the latter case it loads the current pointer after
//!   the fence, and finds the new one.
//!
//! A worker preempted between loading the epoch and storing it stores an old one, which only causes a delay.
//!
//! # When `membarrier(2)` is denied
//! A seccomp filter may be installed after the domain was created. The first heavy fence that is denied sets a bit of the epoch,
//! [`FENCED`], permanently. A reader that loads an epoch with the bit runs a full fence when it pins itself, and keeps the bit in
//! its line, even when it clears the rest. A reader whose line has the bit fences all later pins too (it never loads an older epoch
//! again), so that a full fence on the reclaiming side suffices for it. A reader whose line lacks the bit may be about to pin
//! itself without a fence: no grace period ends before it has pinned itself again, or is dropped.

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

/// In the epoch: readers run full fences. In a reader's line: this reader runs full fences from now on.
const FENCED: u64 = 1 << 63;

/// Time that a writer waits for workers before it is refused: longer than a worker's burst is typically delayed by preemption. It
/// is limited, because the writer's own thread may be pinned.
const PATIENCE: Duration = Duration::from_millis(200);

/// Workers and the retired values that they may be using. Clones are handles to the same domain.
///
/// The reclaiming side bears the cost for both: a collection makes the kernel run a fence on every CPU that runs this process
/// (`membarrier(2)`, about a microsecond), so that a worker pins itself without one. Retirements collect automatically when some
/// tens of values wait; [`Domain::collect`] frees memory at once.
///
/// A fork of the process has the domain in its current state, but not the other threads: see [`Domain::after_fork`].
///
/// While a worker stalls, retired values accumulate: [`Domain::backlog`] reports them, and [`Domain::admit`] refuses changes that
/// would exceed a [`Limit`].
#[derive(Clone)]
pub struct Domain {
    shared: Arc<Shared>,
}

struct Shared {
    /// `None` if all readers run full fences from the beginning.
    membarrier: Option<Membarrier>,
    /// The epoch, possibly with [`FENCED`].
    epoch: AtomicU64,
    /// The last epoch known to have passed: values with this tag or an earlier one are not in use.
    passed: AtomicU64,
    readers: Mutex<Vec<Arc<Slot>>>,
    queue: Mutex<Queue>,
}

/// The epoch of one worker, alone on its pair of cache lines, because adjacent lines are prefetched in pairs.
#[repr(align(128))]
struct Slot {
    /// [`IDLE`] or the epoch that it is pinned at, possibly with [`FENCED`].
    epoch: AtomicU64,
    /// The thread that registered the reader.
    thread: std::thread::Thread,
}

/// The result of a scan of all readers.
struct Scan {
    /// The earliest epoch that a reader is pinned at, or the maximum.
    earliest: u64,
    /// Number of readers that do not run full fences.
    unfenced: usize,
}

impl Domain {
    /// A domain without workers.
    #[must_use]
    pub fn new() -> Self {
        Self::with_fence(Membarrier::new())
    }

    /// The default domain of the process.
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

    /// Registers a worker until the reader is dropped.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let thread = std::thread::current();
        let mut readers = lock(&self.shared.readers);
        // Under the lock: a scan that missed this reader has set the bit before, which is then visible here and to each pin.
        let fenced = self.shared.epoch.load(Ordering::Relaxed) & FENCED;
        let slot = Arc::new(Slot { epoch: AtomicU64::new(IDLE | fenced), thread });
        readers.push(Arc::clone(&slot));
        Reader { slot, shared: Arc::clone(&self.shared) }
    }

    /// Drops `value` when no worker is pinned that was pinned at this call. The caller must have unpublished the value, so that
    /// workers that pin themselves later cannot find it.
    ///
    /// The value is dropped by a later call of this or of [`Domain::collect`], or with the last handle to the domain, on that
    /// thread. Callers that hold a lock [defer drops](crate::defer_drops).
    pub fn retire<T: Send + 'static>(&self, value: T) {
        self.retire_sized(value, size_of::<T>());
    }

    /// The same for a value that owns `bytes` bytes, including its own size.
    pub fn retire_sized(&self, value: impl Send + 'static, bytes: usize) {
        self.push(Retired { is_inert: false, _value: Box::new(value) }, bytes);
    }

    /// The same for a value whose drop calls no user code and takes no lock that may be held while retiring, collecting or [asking
    /// for room](Self::admit): it is not [deferred](crate::defer_drops).
    pub fn retire_inert(&self, value: impl Send + 'static, bytes: usize) {
        self.push(Retired { is_inert: true, _value: Box::new(value) }, bytes);
    }

    fn push(&self, value: Retired, bytes: usize) {
        let due = {
            let mut queue = lock(&self.shared.queue);
            // Under the lock, so that tags are increasing.
            let tag = self.advance();
            queue.push(tag, bytes, value);
            queue.is_due()
        };
        // While a worker stalls this costs a scan of the readers: the fence is run after it has continued.
        if due && !defer::is_draining() {
            self.collect_some(AT_ONCE);
        }
    }

    /// Tag for values that were unpublished before this call, for [`has_passed`](Self::has_passed).
    pub fn advance(&self) -> u64 {
        // Release: a thread that loads the new epoch sees that the values are unpublished.
        (self.shared.epoch.fetch_add(1, Ordering::AcqRel) & !FENCED) + 1
    }

    /// Whether no worker can be using values with this tag. A positive answer may cost a fence on all CPUs, so ask for many values
    /// at once. If a pinned worker keeps the tag from passing, the answer costs no fence.
    #[must_use]
    pub fn has_passed(&self, tag: u64) -> bool {
        self.shared.passed_since(tag) >= tag
    }

    /// Frees all values that no worker can be using any more, and returns their number, [deferred](crate::defer_drops) ones
    /// included.
    pub fn collect(&self) -> usize {
        // Values that the drops below retire wait for a later collection.
        let waiting = self.pending();
        // The first pass may end at the epoch that is known to have passed; the second one then looks at the readers.
        match self.collect_some(waiting) {
            freed if freed == 0 || freed == waiting => freed,
            freed => freed + self.collect_some(waiting - freed),
        }
    }

    fn collect_some(&self, most: usize) -> usize {
        let shared = &self.shared;
        let Some(oldest) = lock(&shared.queue).oldest() else { return 0 };
        let passed = shared.passed_since(oldest);
        if passed < oldest {
            return 0;
        }
        let freed = lock(&shared.queue).take(passed, most);
        // Outside of the lock, because a value may retire others when it is dropped.
        let count = freed.len();
        defer::release(freed);
        count
    }

    /// Number of values that wait for the end of their grace period.
    #[must_use]
    pub fn pending(&self) -> usize {
        lock(&self.shared.queue).len()
    }

    /// The values that wait for the end of their grace period, and the reader that holds them back.
    #[must_use]
    pub fn backlog(&self) -> Backlog {
        let backlog = lock(&self.shared.queue).backlog();
        let Scan { earliest, unfenced } = self.shared.scan();
        let is_fenced = self.shared.epoch.load(Ordering::Relaxed) & FENCED != 0;
        let unfenced = if is_fenced { unfenced } else { 0 };
        Backlog { holder: self.shared.holder(earliest), unfenced, ..backlog }
    }

    /// Sets the limit above which changes are refused.
    pub fn set_limit(&self, limit: Limit) {
        lock(&self.shared.queue).limit = limit;
    }

    /// Whether a change may retire more values. For workers in a burst: frees values if possible, but does not wait.
    #[must_use]
    pub fn has_room(&self) -> bool {
        let is_within_limit = || lock(&self.shared.queue).is_within_limit();
        is_within_limit() || self.collect_some(AT_ONCE) > 0 && is_within_limit()
    }

    /// Checks whether a change may retire more values. If too many wait, this frees values if possible, and waits up to 200 ms for
    /// workers, once per stall. For writers before a change; not for workers in a burst.
    ///
    /// # Errors
    /// [`Stalled`]: stalled workers hold back as much as the [`Limit`] allows.
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
    /// The last epoch that has passed, if that is `oldest` or later; otherwise an epoch before `oldest`.
    fn passed_since(&self, oldest: u64) -> u64 {
        // Acquire: reuse of values that another thread found to have passed happens after the workers' last accesses.
        let known = self.passed.load(Ordering::Acquire);
        if known >= oldest {
            return known;
        }
        // Values that are retired during the scan may have been unpublished after the fence.
        let limit = self.epoch.load(Ordering::Acquire) & !FENCED;
        // If a worker has been pinned since before the oldest tag, the fence is pointless.
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

    /// The reclaiming side's fence; `None` if it failed, true if it orders only readers that run fences too.
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
    /// Begins a burst: values that are found from now on stay alive until the guard is dropped. Load the pointer to the value after
    /// this call, with acquire ordering.
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

/// A pinned worker, within a burst.
#[derive(Debug)]
#[must_use = "the worker is pinned only as long as this lives"]
pub struct Pin<'reader> {
    slot: &'reader Slot,
    /// The domain whose grace periods wait for this worker.
    domain: &'reader Shared,
    /// The value of the reader's line after the pin ends.
    idle: u64,
}

impl Pin<'_> {
    /// Whether values that are retired to a domain stay alive while this pin lives.
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
