//! A value that workers read without a lock while others replace it (read, copy, update).

use std::fmt;

use crate::{Domain, Pin};

use crate::sync::model::{AtomicPtr, Ordering};

/// The current value of something. Who is pinned reads it; who replaces it retires the old one, which goes when nobody
/// who may have found it is pinned any more.
pub struct Rcu<T> {
    /// From a box.
    current: AtomicPtr<T>,
    domain: Domain,
}

/// A value that was replaced. Through a pointer: until the grace period is over it is still read.
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
    /// A first value, which is read by workers of `domain`.
    #[must_use]
    pub fn new(value: T, domain: Domain) -> Self {
        Self { current: AtomicPtr::new(Box::into_raw(Box::new(value))), domain }
    }

    /// The value, which stays as long as the worker is pinned.
    ///
    /// # Panics
    /// If the worker belongs to another domain.
    #[inline]
    pub fn load<'a>(&'a self, pin: &'a Pin<'_>) -> &'a T {
        assert!(pin.holds(&self.domain), "a worker of another domain");
        // SAFETY: the pointer comes from a box. It was current after the pin began, so that whoever replaces it retires it
        // to a domain that waits for the pin.
        unsafe { &*self.current.load(Ordering::Acquire) }
    }

    /// Makes another value the current one, in one store.
    pub fn replace(&self, value: T) {
        self.retire(self.swap(value));
    }

    /// The same without letting the old value go, which its owner [retires](Self::retire): other values may be dropped then.
    pub(crate) fn swap(&self, value: T) -> Old<T> {
        Old(self.current.swap(Box::into_raw(Box::new(value)), Ordering::AcqRel))
    }

    /// Drops a value that was replaced when nobody reads it any more.
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
        // Nobody reads any more: who does borrows this.
        drop(Old(self.current.load(Ordering::Acquire)));
    }
}

impl<T> fmt::Debug for Rcu<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rcu").finish_non_exhaustive()
    }
}
