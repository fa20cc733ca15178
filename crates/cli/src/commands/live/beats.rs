//! Workers that stand still: a program or a port holds them up.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// When each worker was last seen at work.
pub(super) struct Beats {
    start: Instant,
    /// Milliseconds from the start; [`ENDED`] for a worker that has ended.
    last: Vec<AtomicU64>,
}

const ENDED: u64 = u64::MAX;

impl Beats {
    pub(super) fn new(workers: usize) -> Self {
        Self { start: Instant::now(), last: (0..workers).map(|_| AtomicU64::new(0)).collect() }
    }

    /// A worker is at work. It says so about ten times a second.
    pub(super) fn beat(&self, worker: usize) {
        self.set(worker, self.start.elapsed().as_millis() as u64);
    }

    /// A worker has ended.
    pub(super) fn end(&self, worker: usize) {
        self.set(worker, ENDED);
    }

    fn set(&self, worker: usize, time: u64) {
        if let Some(last) = self.last.get(worker) {
            last.store(time, Ordering::Relaxed);
        }
    }

    /// Workers that were not at work for longer than a time.
    pub(super) fn still(&self, longer: Duration) -> Vec<usize> {
        let now = self.start.elapsed();
        let time = |last: &AtomicU64| now.saturating_sub(Duration::from_millis(last.load(Ordering::Relaxed)));
        let all = self.last.iter().map(time).enumerate();
        all.filter(|(_, time)| *time > longer).map(|(worker, _)| worker).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_that_stand_still_are_found() {
        let beats = Beats::new(3);
        std::thread::sleep(Duration::from_millis(60));
        beats.beat(1);
        beats.end(2);
        assert_eq!(beats.still(Duration::from_millis(50)), [0]);
    }
}
