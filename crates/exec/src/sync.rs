//! Locks, and the primitives that the model checker replaces by its own (`--cfg loom`).

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic of another thread: nothing here is left half done by one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is published to workers is made of this.
#[cfg(not(loom))]
pub(crate) mod model {
    pub(crate) use super::lock;
    pub(crate) use std::sync::Mutex;
    pub(crate) use std::sync::atomic::{AtomicPtr, Ordering};
}

/// And checked with this.
#[cfg(loom)]
pub(crate) mod model {
    pub(crate) use loom::sync::Mutex;
    pub(crate) use loom::sync::atomic::{AtomicPtr, Ordering};

    pub(crate) fn lock<T>(mutex: &Mutex<T>) -> loom::sync::MutexGuard<'_, T> {
        mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
