//! Rounds: every contender runs once per round, in random order, so that disturbances affect all, and no contender always
//! follows the same other one.

use std::error::Error;

use rustix::time::{ClockId, clock_gettime};

/// Rounds of a full measurement.
const ROUNDS: usize = 15;

/// A measured function: does its work and returns the number of units.
pub(crate) type Work<'a> = Box<dyn FnMut() -> Result<u64, Box<dyn Error>> + 'a>;

/// Time for one unit of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    /// The best round: the cost of the code.
    pub(crate) min: f64,
    /// The median round: the typical cost.
    pub(crate) median: f64,
    /// Rounds after the warm-up; 0 if the warm-up is the result, or if the number is unknown.
    pub(crate) rounds: usize,
}

/// Runs the contenders in turn. The first round is a warm-up.
pub(crate) fn interleaved(smoke: bool, contenders: &mut [Work<'_>]) -> Result<Vec<Timing>, Box<dyn Error>> {
    rounds(if smoke { 0 } else { ROUNDS }, contenders)
}

/// The same with this number of rounds after the warm-up; with 0 the warm-up is the result.
pub(crate) fn rounds(rounds: usize, contenders: &mut [Work<'_>]) -> Result<Vec<Timing>, Box<dyn Error>> {
    prepared(rounds, contenders, || ())
}

/// The same, with an untimed preparation before each measurement.
pub(crate) fn prepared(
    rounds: usize,
    contenders: &mut [Work<'_>],
    mut prepare: impl FnMut(),
) -> Result<Vec<Timing>, Box<dyn Error>> {
    let mut times = vec![Vec::with_capacity(rounds.max(1)); contenders.len()];
    let mut order: Vec<usize> = (0..contenders.len()).collect();
    let mut rng = fastrand::Rng::with_seed(4);
    for round in 0..=rounds {
        rng.shuffle(&mut order);
        for &index in &order {
            prepare();
            let start = thread_time();
            let units = contenders[index]()?;
            let nanoseconds = (thread_time() - start) / units.max(1) as f64;
            if round > 0 || rounds == 0 {
                times[index].push(nanoseconds);
            }
        }
    }
    Ok(times.into_iter().map(|times| Timing { rounds, ..Timing::of(times) }).collect())
}

/// Processor time of this thread in nanoseconds, in user and kernel mode. Unlike elapsed time it excludes other threads on
/// the same core.
pub(crate) fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

impl Timing {
    /// A timing of an unknown number of rounds.
    pub(crate) const fn new(min: f64, median: f64) -> Self {
        Self { min, median, rounds: 0 }
    }

    /// The best and the median of the rounds, at least one.
    pub(crate) fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self { min: times[0], median: times[times.len() / 2], rounds: times.len() }
    }

    /// Ratio of another's time to this one: above 1 if this one is faster. The best rounds are compared, as everywhere: they
    /// show the cost of the code, the others also disturbances. A difference of two figures may be zero or negative by
    /// chance: then the ratio is infinite.
    pub(crate) fn ratio(self, other: Self) -> f64 {
        if self.min <= 0.0 && other.min > 0.0 { f64::INFINITY } else { other.min / self.min }
    }

    /// The differences from another's figures.
    pub(crate) fn minus(self, other: Self) -> Self {
        let rounds = self.rounds.min(other.rounds);
        Self { min: self.min - other.min, median: self.median - other.median, rounds }
    }

    /// A fraction of it.
    pub(crate) fn divided_by(self, parts: f64) -> Self {
        Self { min: self.min / parts, median: self.median / parts, ..self }
    }
}
