//! The lock of a map value: a word that is 1 while the lock is held, and 0 otherwise.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

/// Waits until the lock is free, and takes it.
pub fn take(word: &AtomicU32) {
    while word.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        // A load does not take the cache line from the holder of the lock.
        while word.load(Ordering::Relaxed) != 0 {
            spin_loop();
        }
    }
}

/// Runs a function under the lock.
pub(crate) fn hold<T>(word: &AtomicU32, action: impl FnOnce() -> T) -> T {
    take(word);
    let result = action();
    give_back(word);
    result
}

/// Gives the lock back.
pub fn give_back(word: &AtomicU32) {
    word.store(0, Ordering::Release);
}
