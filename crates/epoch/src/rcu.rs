//! A value that workers read without a lock while others replace it (read-copy-update).

use std::fmt;

use super::domain::{Domain, Pin};

use crate::sync::model::{AtomicPtr, Ordering};

/// A replaceable value. Pinned workers read it; a writer that replaces it retires the old value, which is dropped when no worker
/// that may have loaded it is pinned any more.
pub struct Rcu<T> {
    /// From a box.
    current: AtomicPtr<T>,
    domain: Domain,
}

/// A replaced value. A pointer, because workers may read it until the grace period is over.
pub(crate) struct Old<T>(*mut T);

// SAFETY: the pointer owns the value, and a value that may be sent may be dropped on any thread.
unsafe impl<T: Send> Send for Old<T> {}

impl<T> Drop for Old<T> {
    fn drop(&mut self) {
        // SAFETY: came from a box, and the grace period is over.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

impl<T: Send + Sync + 'static> Rcu<T> {
    /// Creates the first value, to be read by workers of `domain`.
    #[must_use]
    pub fn new(value: T, domain: Domain) -> Self {
        Self { current: AtomicPtr::new(Box::into_raw(Box::new(value))), domain }
    }

    /// The current value, which stays alive while the worker is pinned.
    ///
    /// # Panics
    /// If the worker belongs to another domain.
    #[inline]
    pub fn load<'a>(&'a self, pin: &'a Pin<'_>) -> &'a T {
        assert!(pin.holds(&self.domain), "a worker of another domain");
        // SAFETY: the pointer comes from a box. It was current after the pin began, so a writer that replaces it retires it to a
        // domain that waits for the pin.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// Replaces the current value, in one atomic store.
    pub fn replace(&self, value: T) {
        self.retire(self.swap(value));
    }

    /// The same without retiring the old value, which the caller has to [retire](Self::retire): that may drop other values.
    pub(crate) fn swap(&self, value: T) -> Old<T> {
        Old(self.current.swap(Box::into_raw(Box::new(value)), Ordering::AcqRel))
    }

    /// Drops a replaced value after a grace period.
    pub(crate) fn retire(&self, old: Old<T>) {
        self.domain.retire(old);
    }

    /// The domain whose workers read the value.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }
}

impl<T> Drop for Rcu<T> {
    fn drop(&mut self) {
        // No reader exists: `load` borrows `self`.
        drop(Old(self.current.load(Ordering::Acquire)));
    }
}

impl<T> fmt::Debug for Rcu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rcu").finish_non_exhaustive()
    }
}
