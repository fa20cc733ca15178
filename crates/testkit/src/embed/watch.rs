//! A thread that ends the process when an operation blocks, or never ends.
//!
//! On a machine with much else to do threads wait for processors: that time is taken off (`/proc/PID/task/*/schedstat`).

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use super::system::{leave, say};

/// An operation may take so long; builds that are not optimized, such as those for AddressSanitizer, are many times slower.
const PATIENCE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 100 } else { 10 });

/// The status that a blocked sequence ends with.
pub(super) const BLOCKED: i32 = 70;

static WATCHED: Mutex<Option<Operation>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct Operation {
    name: &'static str,
    since: Instant,
    /// The process's times when it began.
    before: Times,
}

/// CPU and run-queue time of all threads of the process.
#[derive(Clone, Copy, Default)]
struct Times {
    /// On a processor.
    ran: Duration,
    /// Ready to run.
    waited: Duration,
}

impl Times {
    fn now() -> Self {
        let mut all = Self::default();
        let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return all };
        for task in tasks.flatten() {
            let text = std::fs::read_to_string(task.path().join("schedstat")).unwrap_or_default();
            let mut numbers = text.split_whitespace().map(|word| word.parse().unwrap_or(0));
            all.ran += Duration::from_nanos(numbers.next().unwrap_or(0));
            all.waited += Duration::from_nanos(numbers.next().unwrap_or(0));
        }
        all
    }
}

impl Operation {
    /// Whether no thread can run, or one runs without end.
    fn blocks(&self) -> bool {
        let elapsed = self.since.elapsed();
        if elapsed <= PATIENCE {
            return false;
        }
        let now = Times::now();
        let waited = now.waited.saturating_sub(self.before.waited);
        let ran = now.ran.saturating_sub(self.before.ran);
        elapsed.saturating_sub(waited) > PATIENCE || ran > 2 * PATIENCE
    }
}

/// Begins the time of an operation.
pub(super) fn watch(name: &'static str) {
    let operation = Operation { name, since: Instant::now(), before: Times::now() };
    let mut watched = WATCHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let first = watched.replace(operation).is_none();
    drop(watched);
    if first {
        // An operation may leave no memory for a thread to start with.
        let (started, has_started) = mpsc::channel();
        std::thread::spawn(move || {
            let _ = started.send(());
            end_what_blocks();
        });
        let _ = has_started.recv();
    }
}

fn end_what_blocks() {
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let watched = *WATCHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(operation) = watched.filter(Operation::blocks) {
            say(&format!("FAIL {}: blocks", operation.name));
            leave(BLOCKED);
        }
    }
}
