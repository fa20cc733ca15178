//! Domains in a fork of the process.

use std::sync::{PoisonError, TryLockError};

use super::{Domain, FENCED};
use crate::sync::model::Ordering;

impl Domain {
    /// Forgets what workers were doing that a fork has left behind. They are not in the new process, but what they were pinned at
    /// is: without this nothing passes there that is retired to the domain, if any was in a burst. False if one of them was being
    /// registered or dropped at that time, and nothing can be done.
    ///
    /// # Safety
    /// The process was just forked, the calling thread is the only one in it, and no [`Pin`](crate::Pin) of the domain lives on
    /// it, which also says that no program runs.
    #[allow(unsafe_code, reason = "only declares what the caller vouches for")]
    pub unsafe fn after_fork(&self) -> bool {
        let readers = match self.shared.readers.try_lock() {
            Ok(readers) => readers,
            Err(TryLockError::Poisoned(readers)) => PoisonError::into_inner(readers),
            Err(TryLockError::WouldBlock) => return false,
        };
        // Whether they fence is said by all pins to come.
        for slot in &*readers {
            slot.epoch.fetch_and(FENCED, Ordering::AcqRel);
        }
        true
    }
}
