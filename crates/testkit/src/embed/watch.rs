//! A thread that ends the process if an operation blocks or does not end.
//!
//! Time in which threads wait for a processor is subtracted (`/proc/PID/task/*/schedstat`), so that load of the machine does
//! not matter.

use std::sync::{Mutex, mpsc};
use std::time::{Duration, Instant};

use super::system::{leave, say};

/// Time limit of an operation; unoptimized builds, such as those for AddressSanitizer, are many times slower.
const PATIENCE: Duration = Duration::from_secs(if cfg!(debug_assertions) { 100 } else { 10 });

/// Exit status of a blocked sequence.
pub(super) const BLOCKED: i32 = 70;

static WATCHED: Mutex<Option<Operation>> = Mutex::new(None);

#[derive(Clone, Copy)]
struct Operation {
    name: &'static str,
    since: Instant,
    /// The process's times at its start.
    before: Times,
}

/// CPU and run-queue time of all threads of the process.
#[derive(Clone, Copy, Default)]
struct Times {
    /// Running.
    ran: Duration,
    /// Waiting for a processor.
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
    /// Whether all threads are blocked, or one runs endlessly.
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

/// Starts the time of an operation.
pub(super) fn watch(name: &'static str) {
    let operation = Operation { name, since: Instant::now(), before: Times::now() };
    let mut watched = WATCHED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let first = watched.replace(operation).is_none();
    drop(watched);
    if first {
        // Started early, because an operation may leave no memory for a thread.
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
