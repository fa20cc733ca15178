//! Rounds of the contenders.

use std::cell::RefCell;
use std::error::Error;
use std::hint::black_box;

use paceline::FrameMut;

use super::contender::{Contender, Role, agree};
use crate::measure::{Timing, Work, rounds, thread_time};
use crate::settings::Settings;

/// Rounds of a full measurement.
pub(super) const ROUNDS: usize = 41;

/// Approximate duration of a contender's round in nanoseconds, so that fast and slow contenders are measured over equal
/// times.
pub(super) const ROUND: f64 = 1e6;

/// Packets per test run in the kernel: its setup takes as long as thousands of packets.
pub(super) const KERNEL_RUNS: usize = 200_000;

/// Cost of a packet for each contender.
pub(super) fn measure(
    settings: Settings,
    title: &str,
    frames: &mut [FrameMut<'_>],
    contenders: &mut [Contender<'_>],
) -> Result<Vec<Timing>, Box<dyn Error>> {
    agree(title, contenders, frames)?;
    let passes: Vec<usize> = contenders.iter_mut().map(|contender| passes(contender, frames)).collect();
    let frames = RefCell::new(frames);
    let mut works: Vec<Work<'_>> = contenders
        .iter_mut()
        .zip(passes)
        .map(|(contender, passes)| -> Work<'_> {
            let frames = &frames;
            Box::new(move || {
                let frames = &mut **frames.borrow_mut();
                let count = if settings.smoke { frames.len() } else { frames.len() * passes };
                black_box((contender.run)(frames, count));
                Ok(count as u64)
            })
        })
        .collect();
    rounds(if settings.smoke { 0 } else { ROUNDS }, &mut works)
}

/// Passes over all frames per round.
pub(super) fn passes(contender: &mut Contender<'_>, frames: &mut [FrameMut<'_>]) -> usize {
    if contender.role == Role::Kernel {
        return KERNEL_RUNS;
    }
    let mut passes = 1;
    loop {
        let start = thread_time();
        black_box((contender.run)(frames, frames.len() * passes));
        let taken = thread_time() - start;
        // The clock's resolution limits short measurements.
        if taken > ROUND / 10.0 {
            return ((passes as f64 * ROUND / taken) as usize).max(1);
        }
        passes *= 8;
    }
}
