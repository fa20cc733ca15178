//! Programs that are explored at the same time, and how far they have come.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use paceline::ProgramSpec;
use paceline::generate::Progress;

/// A shorter exploration needs no progress bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Between two looks at the bar.
const INTERVAL: Duration = Duration::from_millis(50);

/// Calls a function for each program, on some threads, and returns what it returns in the order of the programs; the first error of them.
pub(super) fn each<T: Send, E: Send>(
    programs: &[&ProgramSpec],
    workers: usize,
    one: impl Fn(&ProgramSpec, &mut dyn FnMut(Progress)) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E> {
    let bar = Bar::new(programs.len());
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

/// A bar of the programs that are done, with a line on one that is not.
struct Bar {
    bar: ProgressBar,
    start: Instant,
    /// Time of the last update, and whether the bar is shown.
    told: Mutex<(Duration, bool)>,
}

impl Bar {
    fn new(programs: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(programs as u64), ProgressDrawTarget::hidden());
        let bar = match ProgressStyle::with_template("{bar:20} {pos}/{len} programs {elapsed} {msg}") {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        };
        Self { bar, start: Instant::now(), told: Mutex::default() }
    }

    fn tell(&self, program: &str, progress: Progress) {
        let elapsed = self.start.elapsed();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if elapsed < told.0 + INTERVAL {
            return;
        }
        told.0 = elapsed;
        let Progress { reached, open, paths } = progress;
        let program = crate::common::console::shown(program);
        self.bar.set_message(format!("{program}: {reached} reached, {open} open, {paths} paths"));
        if elapsed > PATIENCE && !told.1 {
            told.1 = true;
            // Draws nothing where standard error is no terminal.
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    fn done(&self) {
        self.bar.inc(1);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
