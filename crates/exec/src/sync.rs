//! Locks.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks, also after a panic of another thread: no panic leaves a value half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
