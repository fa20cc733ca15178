//! Locks, and the primitives that the model checker replaces (`--cfg loom`).
//!
//! The model checker runs the epochs with a late denial of `membarrier(2)`, the slots of call sites, and of maps the index, slots
//! and permits of tables, the bits of LRU tables, the IPv4 trie with a root of two entries, and a ring buffer with its reader's
//! waits. It models no whole map, because programs reach values by address and the checker's atomics are not plain memory:
//! `crates/maps/tests/hammer.rs` tests those.

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
