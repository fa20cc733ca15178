//! Numbers of 1 to 64 bits in machine words.

/// The low `bits` bits set, for 1 to 64 of them.
#[inline]
pub(super) const fn mask(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

/// The low `bits` bits of `value` as a signed number.
#[inline]
pub(super) const fn signed(value: u64, bits: u32) -> i64 {
    ((value << (64 - bits)) as i64) >> (64 - bits)
}

/// The smallest signed number of `bits` bits.
#[inline]
pub(super) const fn signed_min(bits: u32) -> i64 {
    i64::MIN >> (64 - bits)
}

/// The greatest signed number of `bits` bits.
#[inline]
pub(super) const fn signed_max(bits: u32) -> i64 {
    i64::MAX >> (64 - bits)
}
