//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic of another thread: nothing here is left half done by one.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
