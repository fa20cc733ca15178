//! Counts of calls.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts of a site.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SiteStatistics {
    /// Calls by a direct jump. A burst is one call.
    pub hits: u64,
    /// Calls that found no slot.
    pub fallbacks: u64,
    /// New images that were published.
    pub updates: u64,
}

/// Counts of callers.
#[derive(Default)]
struct Registered {
    callers: Vec<Arc<Counts>>,
    /// Of callers that are gone.
    gone: SiteStatistics,
}

/// Counts of one caller, which alone writes them, in separate cache lines.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Counts {
    pub(super) hits: AtomicU64,
    pub(super) fallbacks: AtomicU64,
}

impl Counts {
    fn add_to(&self, sum: &mut SiteStatistics) {
        sum.hits += self.hits.load(Ordering::Relaxed);
        sum.fallbacks += self.fallbacks.load(Ordering::Relaxed);
    }
}

/// The counts of all callers of a site.
#[derive(Default)]
pub(super) struct Register(Mutex<Registered>);

impl Register {
    /// Counts of a new caller.
    pub(super) fn add(&self) -> Arc<Counts> {
        let counts = Arc::<Counts>::default();
        self.lock().callers.push(Arc::clone(&counts));
        counts
    }

    /// Keeps the sums of a caller that is dropped.
    pub(super) fn remove(&self, caller: &Arc<Counts>) {
        let mut registered = self.lock();
        registered.callers.retain(|counts| !Arc::ptr_eq(counts, caller));
        caller.add_to(&mut registered.gone);
    }

    /// The sums of all callers, without updates.
    pub(super) fn sum(&self) -> SiteStatistics {
        let registered = self.lock();
        let mut sum = registered.gone;
        registered.callers.iter().for_each(|counts| counts.add_to(&mut sum));
        sum
    }

    fn lock(&self) -> MutexGuard<'_, Registered> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
