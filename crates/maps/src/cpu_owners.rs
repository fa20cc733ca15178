//! The owners of the CPUs of a per-CPU map. A CPU's values are for one worker at a time, as the kernel runs one program at a time on a
//! CPU: two workers with one number would lose each other's changes.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

/// A CPU that users of the library share out themselves has this bit, and the number of its workers.
const SHARED: u64 = 1 << 63;

/// The worker that each CPU of a map belongs to, or how many there are.
#[derive(Debug)]
pub struct CpuOwners(Box<[AtomicU64]>);

/// How a worker has a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuOwner {
    /// Alone, by the worker's number.
    One(NonZeroU64),
    /// With others whose user takes care that one runs at a time.
    Shared,
}

impl CpuOwners {
    pub(crate) fn new(cpus: usize) -> Self {
        Self((0..cpus).map(|_| AtomicU64::new(0)).collect())
    }

    /// Number of CPUs that have values.
    #[must_use]
    pub fn cpus(&self) -> usize {
        self.0.len()
    }

    /// Gives a CPU to a worker, unless another has it in a way that does not go with this one. Returns whether it is the worker's now;
    /// `false` also for a CPU without values. A worker that shares it takes it once.
    #[must_use]
    pub fn take(&self, cpu: usize, as_owner: CpuOwner) -> bool {
        let next = |owner: u64| match as_owner {
            CpuOwner::One(worker) => (owner == 0 || owner == worker.get()).then_some(worker.get()),
            CpuOwner::Shared if owner == 0 => Some(SHARED | 1),
            CpuOwner::Shared => (owner & SHARED != 0).then_some(owner + 1),
        };
        // What an earlier owner changed is visible to the next one.
        let taken =
            self.0.get(cpu).map(|owner| owner.fetch_update(Ordering::AcqRel, Ordering::Acquire, next));
        taken.is_some_and(|taken| taken.is_ok())
    }

    /// Takes a CPU from a worker that has it.
    pub fn give_back(&self, cpu: usize, as_owner: CpuOwner) {
        let next = |owner: u64| match as_owner {
            CpuOwner::One(worker) => (owner == worker.get()).then_some(0),
            CpuOwner::Shared if owner == SHARED | 1 => Some(0),
            CpuOwner::Shared => (owner & SHARED != 0).then(|| owner - 1),
        };
        if let Some(owner) = self.0.get(cpu) {
            // Another worker's stays.
            let _other = owner.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next);
        }
    }
}
