//! Keys that are indices.

use paceline_spec::MapFlags;

use crate::create::{CreateErrorKind, Request};

/// Keys copied in one step of an iteration.
const KEYS_PER_PART: usize = 4096;

/// Index of a 4-byte key, where it is below `entries`.
#[inline]
pub(crate) fn index_of(key: &[u8], entries: usize) -> Option<usize> {
    let index = u32::from_ne_bytes(key.try_into().ok()?) as usize;
    (index < entries).then_some(index)
}

/// One part of the keys of an array.
pub(crate) fn index_keys(entries: usize, part: usize, out: &mut Vec<u8>) -> bool {
    let Some(start) = part.checked_mul(KEYS_PER_PART).filter(|&start| start < entries) else { return false };
    let end = entries.min(start.saturating_add(KEYS_PER_PART));
    (start..end).for_each(|index| out.extend_from_slice(&(index as u32).to_ne_bytes()));
    true
}

/// The key after this one in an array.
pub(crate) fn next_index(entries: usize, after: Option<&[u8]>) -> Option<Vec<u8>> {
    let next = match after.and_then(|key| index_of(key, entries)) {
        Some(index) => index + 1,
        None => 0,
    };
    (next < entries).then(|| (next as u32).to_ne_bytes().to_vec())
}

/// The checks that all arrays share.
pub(crate) fn check(request: &Request<'_>, flags: MapFlags) -> Result<(), CreateErrorKind> {
    request.check_entries()?;
    request.check_index_key()?;
    request.check_flags(flags)
}
