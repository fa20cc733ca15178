//! Chains whose bursts run in stages.

use paceline_runtime::host::Host;
use paceline_runtime::interpreter::image::{BurstEntry, Unset};
use paceline_runtime::interpreter::staged::without_stages;

use super::fused::Loop;
use super::shared::Shared;

/// Entry of bursts to a chain's code, which counts or does not: in stages, if look-ups are made ahead.
pub(super) fn entry<const COUNTED: bool>(code: &Loop) -> BurstEntry {
    if code.staged.is_some() { staged_entry::<COUNTED> } else { code.burst_entry }
}

/// Entry of bursts in stages, which counts or does not.
///
/// # Safety
/// As for every entry of bursts; `chain` must be the address of a [`Shared`] with stages.
unsafe extern "C" fn staged_entry<const COUNTED: bool>(
    first: u64,
    end: u64,
    chain: u64,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the address is guaranteed by the caller.
    let fused = unsafe { &*(chain as *const Shared) }.fused.as_ref();
    let code = fused.and_then(|fused| if COUNTED { fused.counted() } else { Some(fused.plain()) });
    match code.and_then(|code| code.staged.as_ref()) {
        // SAFETY: the frames are guaranteed by the caller; the token is the chain's.
        Some(staged) => unsafe { staged.run(first..end, chain, host) },
        None => without_stages(first, host),
    }
}
