//! Rounds: every contender once, again and again in random order, so that what disturbs the machine disturbs all, and none
//! always follows the same other.

use std::error::Error;

use rustix::time::{ClockId, clock_gettime};

/// Rounds of a measurement that counts.
const ROUNDS: usize = 15;

/// Something that is measured: it does its work and returns how many units it did.
pub(crate) type Work<'a> = Box<dyn FnMut() -> Result<u64, Box<dyn Error>> + 'a>;

/// Time for one unit of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Timing {
    /// The best round: what the code costs.
    pub(crate) min: f64,
    /// The middle round: what one gets.
    pub(crate) median: f64,
}

/// Runs the contenders in turn. The first round only warms up.
pub(crate) fn interleaved(smoke: bool, contenders: &mut [Work<'_>]) -> Result<Vec<Timing>, Box<dyn Error>> {
    rounds(if smoke { 0 } else { ROUNDS }, contenders)
}

/// The same with a number of rounds after the one that warms up; without any, that one is what there is.
pub(crate) fn rounds(rounds: usize, contenders: &mut [Work<'_>]) -> Result<Vec<Timing>, Box<dyn Error>> {
    prepared(rounds, contenders, || ())
}

/// The same, with something done before each work that is not timed.
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
    Ok(times.into_iter().map(timing).collect())
}

/// Nanoseconds that this thread has run, in the program and in the kernel for it. Unlike the clock on the wall, it does
/// not count what others do on the same core.
pub(crate) fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

impl Timing {
    /// How much longer another takes: above 1 if this one is faster. The best rounds are compared, as everywhere: they are
    /// what the code costs, the others also what else the machine did. What is left of two figures may be nothing, or less
    /// than that by chance: then this one is faster without bound.
    pub(crate) fn ratio(self, other: Self) -> f64 {
        if self.min <= 0.0 && other.min > 0.0 { f64::INFINITY } else { other.min / self.min }
    }

    /// What is left of each figure when another one's is taken off.
    pub(crate) fn minus(self, other: Self) -> Self {
        Self { min: self.min - other.min, median: self.median - other.median }
    }

    /// A part of it.
    pub(crate) fn divided_by(self, parts: f64) -> Self {
        Self { min: self.min / parts, median: self.median / parts }
    }
}

fn timing(mut times: Vec<f64>) -> Timing {
    times.sort_by(f64::total_cmp);
    Timing { min: times[0], median: times[times.len() / 2] }
}
