//! `bpf_csum_diff` (`net/core/filter.c`).

use super::mem::ReadMem;
use crate::host::Host;

/// One's complement sum of the bytes as 32-bit words in native order, on top of `seed` (`csum_partial`).
#[inline]
fn sum(bytes: ReadMem<'_>, seed: u32) -> u32 {
    // A size of 32 bits has fewer words than 2^32, whose sum does not overflow.
    fold32(bytes.sum_words(u64::from(seed)))
}

/// Folds a sum of 32-bit words with its carries; what is not zero does not become zero.
fn fold32(sum: u64) -> u32 {
    let sum = (sum & 0xffff_ffff) + (sum >> 32);
    ((sum & 0xffff_ffff) + (sum >> 32)) as u32
}

/// Folds to 16 bits (`csum_from32to16`).
fn fold16(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

/// The change of a checksum when `from` is replaced by `to`: 16 bits and for sizes of all kinds, as in kernels since
/// 6.13; older ones returned the sum before it was folded and refused sizes that are no multiple of 4.
fn diff(from: ReadMem<'_>, to: ReadMem<'_>, seed: u32) -> u32 {
    let is_empty = |bytes: ReadMem<'_>| bytes.is_null() || bytes.len() == 0;
    let total = match (is_empty(from), is_empty(to)) {
        (true, true) => seed,
        (false, false) => fold32(u64::from(sum(to, seed)) + u64::from(!sum(from, 0))),
        (true, false) => sum(to, seed),
        (false, true) => !sum(from, !seed),
    };
    u32::from(fold16(total))
}

/// `s64 bpf_csum_diff(from, from_size, to, to_size, seed)`
pub(super) fn csum_diff(_: &mut Host, from: ReadMem<'_>, to: ReadMem<'_>, seed: u32) -> u64 {
    u64::from(diff(from, to, seed))
}
