//! Signs that a machine does other things meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use crate::measure::statistics::Summary;
use crate::measure::waits::Waits;

/// Threads that run for each processor, from which others are said to run.
const BUSY: f64 = 0.5;

/// Share of the time that this thread waits for a processor from which the machine is said to be busy.
const WAITING: f64 = 0.01;

/// The median of the rounds to the best one from which they are said to be uneven.
const UNEVEN: f64 = 1.1;

/// The load before a measurement, and what this thread waits from then on.
#[derive(Debug)]
pub struct Busy {
    load: Option<(f64, usize)>,
    waits: Waits,
    start: Instant,
}

impl Busy {
    /// Begins.
    #[must_use]
    pub fn begin() -> Self {
        let waits = Waits::of_this_thread();
        Self { load: load().zip(processors()), waits, start: Instant::now() }
    }

    /// The signs that the machine was busy, in words.
    #[must_use]
    pub fn signs(&mut self) -> Vec<String> {
        let waited = in_words(self.waits.since(), self.start.elapsed());
        let load = self.load.filter(|(load, processors)| *load >= BUSY * *processors as f64).map(|(load, processors)| {
            format!("the machine had a load of {load} on {processors} processors before (/proc/loadavg): programs on them share caches and clocks")
        });
        waited.into_iter().chain(load).collect()
    }
}

fn in_words(waited: Duration, all: Duration) -> Option<String> {
    let share = waited.as_secs_f64() / all.as_secs_f64().max(1e-9);
    (share >= WAITING).then(|| {
        format!("the machine is busy: {:.0}% of the time other programs had the processor (/proc/thread-self/schedstat); what ran then is left out", 100.0 * share)
    })
}

/// The mean number of threads that ran or wanted to in the last minute (proc_loadavg(5)).
fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The processors of the machine; this process may have fewer.
fn processors() -> Option<usize> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let is_one = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    Some(text.lines().filter(is_one).count()).filter(|count| *count > 0)
}

/// A warning if rounds differ more than those of a machine that does nothing else.
#[must_use]
pub fn uneven(what: &str, summary: &Summary) -> Option<String> {
    let ratio = summary.median / summary.min.max(f64::MIN_POSITIVE);
    (summary.min > 0.0 && ratio > UNEVEN).then(|| {
        let percent = 100.0 * (ratio - 1.0);
        format!("{what}: the median is {percent:.0}% above the best round; the machine is busy, or its clock changes")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_told_from_a_hundredth_on() {
        let ms = Duration::from_millis;
        assert_eq!(in_words(ms(9), ms(1000)), None);
        assert!(in_words(ms(250), ms(1000)).is_some_and(|words| words.contains(" 25% ")));
        assert_eq!(in_words(ms(0), ms(0)), None);
    }

    #[test]
    fn this_machine_has_processors() {
        assert!(processors().is_some_and(|count| count > 0));
    }
}
