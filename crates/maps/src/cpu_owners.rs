//! The owners of the CPUs of a per-CPU map. A CPU's values are for one worker at a time, as the kernel runs one program at a time on a
//! CPU: two workers with one number would lose each other's changes.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// Workers up to this number have no CPU any more.
static LAST_GONE: AtomicU64 = AtomicU64::new(0);

/// The worker that each CPU of a map belongs to; 0 for none.
#[derive(Debug)]
pub struct CpuOwners(Box<[AtomicU64]>);

impl CpuOwners {
    pub(crate) fn new(cpus: usize) -> Self {
        Self((0..cpus).map(|_| AtomicU64::new(0)).collect())
    }

    /// Number of CPUs that have values.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.0.len()
    }

    /// Takes all CPUs from the workers up to a number, as a child of a fork does, which has no thread of its parent.
    pub fn take_from_all_until(last: u64) {
        LAST_GONE.fetch_max(last, Ordering::Relaxed);
    }

    /// Gives a CPU to a worker, unless another has it. Returns whether it is the worker's now; `false` also for a CPU without values.
    #[must_use]
    pub fn take(&self, cpu: usize, worker: NonZeroU64) -> bool {
        let Some(owner) = self.0.get(cpu) else { return false };
        let last_gone = LAST_GONE.load(Ordering::Relaxed);
        let next = |owner: u64| (owner <= last_gone || owner == worker.get()).then_some(worker.get());
        // What an earlier owner changed is visible to the next one.
        owner.fetch_update(Ordering::AcqRel, Ordering::Acquire, next).is_ok()
    }

    /// Takes a CPU from a worker, if it has it.
    pub fn give_back(&self, cpu: usize, worker: NonZeroU64) {
        if let Some(owner) = self.0.get(cpu) {
            // Another worker's stays.
            let _other = owner.compare_exchange(worker.get(), 0, Ordering::Release, Ordering::Relaxed);
        }
    }
}
