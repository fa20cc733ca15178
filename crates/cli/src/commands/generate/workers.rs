//! Programs that are explored at the same time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use paceline::ProgramSpec;
use paceline::generate::Progress;

use crate::inputs::{Bar, Words};

/// Calls a function for each program, on some threads, and returns what it returns in the order of the programs; the first error of them.
pub(super) fn each<T: Send, E: Send>(
    programs: &[&ProgramSpec],
    workers: usize,
    one: impl Fn(&ProgramSpec, &mut dyn FnMut(Progress)) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let bar = Bar::new(programs.len(), Words { reached: "reached", open: "open" });
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<T, E>>>> = programs.iter().map(|_| Mutex::new(None)).collect();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let (Some(program), Some(result)) = (programs.get(index), results.get(index)) else { return };
            let done = one(program, &mut |progress| bar.tell(&program.name, progress));
            bar.done();
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
        }
    };
    thread::scope(|scope| {
        for _ in 1..workers.min(programs.len()) {
            scope.spawn(work);
        }
        work();
    });
    bar.finish();
    let results = results.into_iter();
    results.filter_map(|result| result.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
