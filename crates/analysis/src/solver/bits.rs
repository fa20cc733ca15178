//! Masks.

/// The low `width` bits set.
pub(crate) const fn ones(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}
