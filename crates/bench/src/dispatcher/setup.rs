//! The burst, the sites and the rounds of all contenders.

use std::error::Error;

use paceline::{Burst, CallSite, Fallback, FrameMeta, Target};

use crate::measure::{Timing, Work, rounds};
use crate::settings::Settings;

/// Rounds of a full measurement.
pub(super) const ROUNDS: usize = 41;

/// Packets per round.
pub(super) const PACKETS: usize = 1 << 19;

/// Consecutive bursts of a program before the next program's turn.
pub(super) const TURN: usize = 16;

/// Frames of the burst.
pub(super) const FRAMES: usize = 64;

/// Entries of the kernel's dispatcher when it is full.
pub(super) const FULL: usize = 16;

pub(super) fn burst() -> Result<Burst, Box<dyn Error>> {
    let mut burst = Burst::new(FRAMES);
    for _ in 0..FRAMES {
        burst.push(&[0; 64], FrameMeta::default())?;
    }
    Ok(burst)
}

/// A site with the first targets.
pub(super) fn site(targets: &[Target], fallback: Fallback) -> Result<CallSite, Box<dyn Error>> {
    let site = CallSite::new(fallback);
    targets.iter().try_for_each(|target| site.update(None, Some(target)))?;
    Ok(site)
}

pub(super) fn measure(settings: Settings, works: &mut [Work<'_>]) -> Result<Vec<Timing>, Box<dyn Error>> {
    rounds(if settings.smoke { 0 } else { ROUNDS }, works)
}

/// Bursts per round.
pub(super) fn bursts(settings: Settings, entries: usize) -> usize {
    if settings.smoke { TURN * entries } else { PACKETS / FRAMES }
}
