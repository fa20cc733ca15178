//! Rounds: every contender once, again and again, so that what disturbs the machine disturbs all.

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
    let rounds = if smoke { 1 } else { ROUNDS };
    let mut times = vec![Vec::with_capacity(rounds); contenders.len()];
    for round in 0..=rounds {
        for (work, times) in contenders.iter_mut().zip(&mut times) {
            let start = thread_time();
            let units = work()?;
            let nanoseconds = (thread_time() - start) / units.max(1) as f64;
            if round > 0 || smoke {
                times.push(nanoseconds);
            }
        }
        if smoke {
            break;
        }
    }
    Ok(times.into_iter().map(timing).collect())
}

/// Nanoseconds that this thread has run, in the program and in the kernel for it. Unlike the clock on the wall, it does
/// not count what others do on the same core.
fn thread_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

fn timing(mut times: Vec<f64>) -> Timing {
    times.sort_by(f64::total_cmp);
    Timing { min: times[0], median: times[times.len() / 2] }
}
