//! Stalled workers: a program or a port holds them up.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use paceline::Polls;

/// The polls of each worker, and whether it has ended.
pub(super) struct Beats(Vec<Beat>);

#[derive(Default)]
struct Beat {
    /// Empty for a worker that has not begun.
    polls: OnceLock<Polls>,
    has_ended: AtomicBool,
}

impl Beats {
    pub(super) fn new(workers: usize) -> Self {
        Self((0..workers).map(|_| Beat::default()).collect())
    }

    /// A worker begins.
    pub(super) fn begin(&self, worker: usize, polls: Polls) {
        if let Some(beat) = self.0.get(worker) {
            // Each begins once.
            let _ = beat.polls.set(polls);
        }
    }

    /// A worker has ended.
    pub(super) fn end(&self, worker: usize) {
        if let Some(beat) = self.0.get(worker) {
            beat.has_ended.store(true, Ordering::Relaxed);
        }
    }
}

/// The counts of workers' polls, with the time since when each is what it is.
pub(super) struct Watched<'a> {
    beats: &'a Beats,
    counts: Vec<(u64, Instant)>,
}

impl<'a> Watched<'a> {
    pub(super) fn new(beats: &'a Beats) -> Self {
        Self { beats, counts: beats.0.iter().map(|_| (0, Instant::now())).collect() }
    }

    /// Workers that have not come to their ports for longer than a time, as far as the calls of this function tell.
    pub(super) fn stalled(&mut self, longer: Duration) -> Vec<usize> {
        let now = Instant::now();
        for ((count, since), beat) in self.counts.iter_mut().zip(&self.beats.0) {
            let counted = beat.polls.get().map_or(0, Polls::count);
            if counted != *count || beat.has_ended.load(Ordering::Relaxed) {
                (*count, *since) = (counted, now);
            }
        }
        let all = self.counts.iter().enumerate();
        all.filter(|(_, (_, since))| now - *since > longer).map(|(worker, _)| worker).collect()
    }
}

#[cfg(test)]
mod tests {
    use paceline::Pipeline;

    use super::*;

    #[test]
    fn stalled_workers_are_found() {
        const LONG: Duration = Duration::from_millis(50);
        let (beats, pipeline) = (Beats::new(4), Pipeline::new());
        let mut workers = [0, 1, 2].map(|number| pipeline.worker(number));
        workers.iter().enumerate().for_each(|(number, worker)| beats.begin(number, worker.polls()));
        let mut watched = Watched::new(&beats);
        assert_eq!(watched.stalled(LONG), [0_usize; 0]);
        std::thread::sleep(LONG + Duration::from_millis(10));
        // One poll is enough, and one that has ended is not stalled.
        workers[1].poll().expect("no failure");
        beats.end(2);
        assert_eq!(watched.stalled(LONG), [0, 3]);
    }
}
