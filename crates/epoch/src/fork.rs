//! Domains in a fork of the process.

use std::sync::{PoisonError, TryLockError};

use super::{Domain, FENCED};
use crate::sync::model::Ordering;

impl Domain {
    /// Clears the pins of workers in a forked process. These threads do not exist there, but their pins do: without this call no
    /// grace period of the domain ends there, if a worker was within a burst. Returns false if a worker was being registered or
    /// dropped at that time, in which case the domain cannot be repaired.
    ///
    /// # Safety
    /// The process was just forked, the calling thread is the only one in it, and no [`Pin`](crate::Pin) of the domain lives on it,
    /// which implies that no program is running.
    #[allow(unsafe_code, reason = "only declares what is guaranteed by the caller")]
    pub unsafe fn after_fork(&self) -> bool {
        let readers = match self.shared.readers.try_lock() {
            Ok(readers) => readers,
            Err(TryLockError::Poisoned(readers)) => PoisonError::into_inner(readers),
            Err(TryLockError::WouldBlock) => return false,
        };
        // Keeps the bit by which readers announce full fences for all later pins.
        for slot in &*readers {
            slot.epoch.fetch_and(FENCED, Ordering::AcqRel);
        }
        true
    }
}
