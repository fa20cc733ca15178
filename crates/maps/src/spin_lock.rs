//! The lock of a map value: a word that is 0 while nobody has it, and 1 otherwise.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU32, Ordering};

/// Waits until nobody else has the lock, and takes it.
pub fn take(word: &AtomicU32) {
    while word.compare_exchange_weak(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
        // Looking does not take the cache line from whoever has the lock.
        while word.load(Ordering::Relaxed) != 0 {
            spin_loop();
        }
    }
}

/// Does something while nobody else has the lock.
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
