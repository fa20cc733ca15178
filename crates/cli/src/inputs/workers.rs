//! Programs that are explored at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use paceline::generate::Progress;

use super::progress::{Bar, Words};

/// Calls a function for each item, on some threads, and returns what it returns in the order of the items. `name` is that of an item's program.
pub(crate) fn each<I: Sync, T: Send>(
    items: &[I],
    workers: usize,
    words: Words,
    name: fn(&I) -> &str,
    one: impl Fn(&I, &mut dyn FnMut(Progress)) -> T + Sync,
) -> Vec<T> {
    let bar = Bar::new(items.len(), words);
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<T>>> = items.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(item), Some(result)) = (items.get(index), results.get(index)) else { return };
            let done = one(item, &mut |progress| bar.tell(name(item), progress));
            bar.done();
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers.min(items.len()) {
            scope.spawn(work);
        }
        work();
    });
    bar.finish();
    // Each item was taken by a thread, which ends after it has left the result.
    results
        .into_iter()
        .filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner))
        .collect()
}
