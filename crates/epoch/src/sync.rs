//! Locks, and the primitives that the model checker replaces (`--cfg loom`).

/// Primitives of the epoch scheme.
#[cfg(not(loom))]
pub(crate) mod model {
    pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard};
    pub(crate) use std::thread_local;
}

/// Primitives of the model checker.
#[cfg(loom)]
pub(crate) mod model {
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread_local;
}

/// Locks a mutex even if it is poisoned: no panic leaves a value inconsistent.
pub(crate) fn lock<T>(mutex: &model::Mutex<T>) -> model::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
