//! Chains whose bursts run in stages.

use std::sync::Arc;

use paceline_interpreter::image::{BurstEntry, Unset};
use paceline_interpreter::staged::{Staged, without_stages};
use paceline_maps::Map;
use paceline_runtime::host::Host;
use paceline_verifier::Verified;

use super::shared::Shared;
use crate::look_ahead::LookAhead;
use crate::stages::ahead;

/// Entries of chains with look-ups ahead.
pub(super) const STAGED: [BurstEntry; 2] = [staged_entry::<0>, staged_entry::<1>];

/// A chain's entries in stages, by the slice of its first program.
pub(super) fn staged(
    parts: &[(&Verified, Vec<Arc<Map>>)],
    entries: [BurstEntry; 2],
    look_ahead: LookAhead,
) -> Option<[Staged; 2]> {
    let (first, maps) = parts.first()?;
    let ahead = Arc::new(ahead(first.program(), first.code(), maps, look_ahead).ok()?);
    Some(entries.map(|burst_entry| Staged { ahead: ahead.clone(), burst_entry }))
}

/// Entry of bursts in stages: the uncounted one, or the counted one.
///
/// # Safety
/// As for every entry of bursts; `chain` must be the address of a [`Shared`] with stages.
unsafe extern "C" fn staged_entry<const COUNTED: usize>(
    first: u64,
    end: u64,
    chain: u64,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the caller vouches for the address.
    match unsafe { &*(chain as *const Shared) }.staged.as_ref().and_then(|staged| staged.get(COUNTED)) {
        // SAFETY: the caller vouches for the frames; the token is the chain's.
        Some(staged) => unsafe { staged.run(first..end, chain, host) },
        None => without_stages(first, host),
    }
}
