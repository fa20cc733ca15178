//! Locks, and the primitives that the model checker replaces by its own (`--cfg loom`).

/// What the epoch scheme is made of.
#[cfg(not(loom))]
pub(crate) mod model {
    pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
    pub(crate) use std::sync::{Mutex, MutexGuard};
    pub(crate) use std::thread_local;
}

/// What the epoch scheme is checked with.
#[cfg(loom)]
pub(crate) mod model {
    pub(crate) use loom::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
    pub(crate) use loom::sync::{Mutex, MutexGuard};
    pub(crate) use loom::thread_local;
}

/// Locks, also after a panic of another thread: nothing here is left half done by one.
pub(crate) fn lock<T>(mutex: &model::Mutex<T>) -> model::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
