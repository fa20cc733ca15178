//! A cache line of entries, and which entries the addresses of a prefix have.

use std::ops::Range;

use crate::slab::Atomics;
use crate::sync::AtomicU32;

/// Numbers of 32 bits in a line.
pub(super) const LINE: usize = 16;

/// A cache line of nodes.
#[repr(C, align(64))]
#[cfg_attr(loom, derive(Default))]
pub(super) struct Line(pub(super) [AtomicU32; LINE]);

// SAFETY: atomics alone, for which zeros are a value.
unsafe impl Atomics for Line {}

/// The positions, among those that the next bits after `depth` choose, of the addresses that begin with these bits.
pub(super) fn positions(bits: u32, length: u32, depth: u32, width: u32) -> Range<usize> {
    let fixed = length.saturating_sub(depth).min(width);
    let count = 1 << (width - fixed);
    let first = (bits << depth >> (32 - width)) as usize & !(count - 1);
    if fixed == 0 { 0..count } else { first..first + count }
}
