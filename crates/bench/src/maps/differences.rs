//! Costs of look-ups as differences.

use std::error::Error;

use super::program::Subject;
use crate::measure::{Timing, Work, interleaved};
use crate::settings::Settings;

/// Program runs per round.
pub(super) const RUNS: usize = 20_000;

pub(super) fn runs(settings: Settings) -> usize {
    if settings.smoke { 10 } else { RUNS }
}

/// A subject with look-ups and one without.
pub(crate) type Pair<'a> = (Box<dyn Subject + 'a>, Box<dyn Subject + 'a>);

/// Cost of each subject's look-ups; subjects come as pairs, with look-ups and without.
pub(crate) fn differences(
    settings: Settings,
    subjects: &mut [Pair<'_>],
) -> Result<Vec<Timing>, Box<dyn Error>> {
    let runs = runs(settings);
    let mut works: Vec<Work<'_>> = Vec::new();
    for (with, without) in subjects {
        works.push(Box::new(move || with.run(runs)));
        works.push(Box::new(move || without.run(runs)));
    }
    let times = interleaved(settings.smoke, &mut works)?;
    Ok(times.chunks_exact(2).map(|pair| positive(pair[0].minus(pair[1]))).collect())
}

/// A difference within the noise counts as a tenth of a nanosecond.
pub(super) fn positive(timing: Timing) -> Timing {
    Timing { min: timing.min.max(0.1), median: timing.median.max(0.1), ..timing }
}
