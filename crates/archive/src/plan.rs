//! Captures prepared for workers: filters by link, and parts of a size that keeps all workers busy.

use paceline::capture::Link;
use paceline::filter::PacketFilter;

use crate::error::Error;
use crate::opened::Opened;
use crate::source::Part;

/// Bytes of a part: so many that finding its boundary costs little, so few that workers end at about the same time.
const SMALLEST: u64 = 4 << 20;
const LARGEST: u64 = 64 << 20;
/// Parts for each worker.
const PARTS: u64 = 4;

/// Gives captures their filters. `compile` is called once for each link among them.
///
/// # Errors
/// The error of `compile`.
pub fn set_filters<E>(
    captures: &mut [Opened],
    mut compile: impl FnMut(Link) -> Result<PacketFilter, E>,
) -> Result<(), E> {
    let mut known: Vec<(Link, PacketFilter)> = Vec::new();
    for capture in captures {
        let link = capture.link;
        if known.iter().all(|(other, _)| *other != link) {
            known.push((link, compile(link)?));
        }
        capture.filter = known.iter().find(|(other, _)| *other == link).map(|(_, filter)| filter.clone());
    }
    Ok(())
}

/// Cuts captures into parts for so many workers, each with the index of its capture.
///
/// With a program, boundaries are certain: the program would have changed maps before the part in front of its own is read.
///
/// # Errors
/// [`Error::Read`]
pub fn parts(captures: &[Opened], workers: usize, has_program: bool) -> Result<Vec<(usize, Part)>, Error> {
    let total: u64 = captures.iter().map(|capture| capture.source.len()).sum();
    let size = (total / (workers as u64 * PARTS)).clamp(SMALLEST, LARGEST);
    let mut parts = Vec::new();
    for (index, capture) in captures.iter().enumerate() {
        let count = if workers == 1 { 1 } else { capture.source.len().div_ceil(size) };
        let found = capture.parts(usize::try_from(count).unwrap_or(1), has_program)?;
        parts.extend(found.into_iter().map(|part| (index, part)));
    }
    Ok(parts)
}
