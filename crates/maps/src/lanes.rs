//! Something for each worker, on cache lines of its own.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Two cache lines, because adjacent lines are prefetched in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Padded<T>(T);

pub(crate) struct Lanes<T>(Box<[Padded<T>]>);

/// Number of the calling thread, in the order in which threads first ask.
fn thread_number() -> usize {
    static THREADS: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static NUMBER: usize = THREADS.fetch_add(1, Relaxed);
    }
    NUMBER.with(|number| *number)
}

impl<T: Default> Lanes<T> {
    pub(crate) fn new(count: usize) -> Self {
        Self(std::iter::repeat_with(Padded::default).take(count.max(1)).collect())
    }
}

impl<T> Lanes<T> {
    /// The lane of the calling thread. Threads share lanes if there are more threads than lanes.
    pub(crate) fn own(&self) -> &T {
        let (number, lanes) = (thread_number(), self.0.len());
        // Most threads have a lane of their own, and need no division.
        &self.0[if number < lanes { number } else { number % lanes }].0
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|lane| &lane.0)
    }
}
