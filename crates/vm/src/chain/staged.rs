//! Chains whose bursts run in stages.

use paceline_interpreter::image::Unset;
use paceline_interpreter::staged::without_stages;
use paceline_runtime::host::Host;

use super::shared::Shared;

/// Entry of bursts in stages, which counts or does not.
///
/// # Safety
/// As for every entry of bursts; `chain` must be the address of a [`Shared`] with stages.
pub(super) unsafe extern "C" fn staged_entry<const COUNTED: bool>(
    first: u64,
    end: u64,
    chain: u64,
    _: Unset,
    _: Unset,
    host: &mut Host,
) -> u64 {
    // SAFETY: the caller vouches for the address.
    let fused = unsafe { &*(chain as *const Shared) }.fused.as_ref();
    let code = fused.and_then(|fused| if COUNTED { fused.counted() } else { Some(fused.plain()) });
    match code.and_then(|code| code.staged.as_ref()) {
        // SAFETY: the caller vouches for the frames; the token is the chain's.
        Some(staged) => unsafe { staged.run(first..end, chain, host) },
        None => without_stages(first, host),
    }
}
