//! What the handles and workers of a chain share.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::change::ChangeError;
use super::state::State;
use super::status::Totals;
use crate::pipeline::Pipeline;
use crate::version::Version;

/// What the handles and workers of a chain share.
pub(super) struct Shared {
    /// State for the next change; locked during a change.
    pub(super) state: Mutex<State>,
    /// The published version.
    pub(super) current: Mutex<Arc<Version>>,
    pub(super) pipeline: Pipeline,
    /// The interface that the chain was made for, which its own workers run.
    pub(super) ifindex: u32,
    /// Interfaces whose packets run through the chain; changed only with the state locked.
    pub(super) ifindexes: Mutex<Vec<u32>>,
    /// Counts of all workers.
    pub(super) totals: Mutex<Totals>,
    /// Whether a worker counts, or did: changes compile code that counts. Set only with the state locked.
    pub(super) counts: AtomicBool,
}

impl Shared {
    /// Compiles code that counts, now and with each change.
    pub(super) fn count(&self) -> Result<(), ChangeError> {
        let _state = lock(&self.state);
        lock(&self.current).chain.counts()?;
        self.counts.store(true, Ordering::Relaxed);
        Ok(())
    }
}

/// The locked state is consistent at all times, so that poisoning by a panic of another thread is ignored.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
