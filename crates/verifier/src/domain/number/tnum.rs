//! Known bits: tristate numbers, as the kernel's `kernel/bpf/tnum.c` has them.
//!
//! The operations follow Vishwanathan, Shachnai, Narayana and Nagarakatte, "Sound, Precise, and Fast Abstract
//! Interpretation with Tristate Numbers" (CGO 2022).

use std::fmt;

use super::width::{mask, signed};

/// A number some of whose bits are known.
///
/// Operations work on all 64 bits; a narrower number is cut with [`Tnum::truncate`], which is exact for everything
/// that carries only upwards.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tnum {
    value: u64,
    unknown: u64,
}

impl Tnum {
    /// Nothing is known of 64 bits.
    pub const UNKNOWN: Self = Self { value: 0, unknown: u64::MAX };

    /// The bits of `value` outside of `unknown` are known.
    #[must_use]
    pub const fn new(value: u64, unknown: u64) -> Self {
        Self { value: value & !unknown, unknown }
    }

    /// A number that is known.
    #[must_use]
    pub const fn constant(value: u64) -> Self {
        Self { value, unknown: 0 }
    }

    /// The known bits, with zeros where nothing is known: the smallest number it can be.
    #[must_use]
    pub const fn value(self) -> u64 {
        self.value
    }

    /// The unknown bits.
    #[must_use]
    pub const fn unknown(self) -> u64 {
        self.unknown
    }

    /// The greatest number it can be.
    #[must_use]
    pub const fn max(self) -> u64 {
        self.value | self.unknown
    }

    /// Whether all bits are known.
    #[must_use]
    pub const fn is_constant(self) -> bool {
        self.unknown == 0
    }

    /// Whether it can be `value`.
    #[must_use]
    pub const fn contains(self, value: u64) -> bool {
        value & !self.unknown == self.value
    }

    /// Whether it can be everything that `other` can be.
    #[must_use]
    pub const fn includes(self, other: Self) -> bool {
        other.unknown & !self.unknown == 0 && other.value & !self.unknown == self.value
    }

    /// The common leading bits of the numbers from `min` to `max`.
    #[must_use]
    pub const fn from_range(min: u64, max: u64) -> Self {
        let differing = 64 - (min ^ max).leading_zeros();
        let unknown = if differing == 0 { 0 } else { mask(differing) };
        Self::new(min, unknown)
    }

    /// Intersection; `None` if it is empty.
    #[must_use]
    pub const fn meet(self, other: Self) -> Option<Self> {
        if (self.value ^ other.value) & !(self.unknown | other.unknown) != 0 {
            return None;
        }
        Some(Self::new(self.value | other.value, self.unknown & other.unknown))
    }

    /// The least that can be everything that either can be.
    #[must_use]
    pub const fn join(self, other: Self) -> Self {
        Self::new(self.value, self.unknown | other.unknown | (self.value ^ other.value))
    }

    /// The low `bits` bits; zeros above.
    #[must_use]
    pub const fn truncate(self, bits: u32) -> Self {
        Self { value: self.value & mask(bits), unknown: self.unknown & mask(bits) }
    }

    /// The low `bits` bits; unknown above.
    #[must_use]
    pub const fn forget_above(self, bits: u32) -> Self {
        Self { value: self.value & mask(bits), unknown: self.unknown | !mask(bits) }
    }

    /// The low `bits` bits with the sign extended to 64.
    #[must_use]
    pub const fn sign_extend(self, bits: u32) -> Self {
        let (value, unknown) = (signed(self.value, bits) as u64, signed(self.unknown, bits) as u64);
        Self::new(value, unknown)
    }

    /// Wrapping sum.
    #[must_use]
    pub const fn add(self, other: Self) -> Self {
        let (low, high) = (self.value.wrapping_add(other.value), self.max().wrapping_add(other.max()));
        // A bit is unknown if an operand's is or if the carry into it depends on unknown bits.
        Self::new(low, (low ^ high) | self.unknown | other.unknown)
    }

    /// Wrapping difference.
    #[must_use]
    pub const fn sub(self, other: Self) -> Self {
        let low = self.value.wrapping_sub(other.max());
        let high = self.max().wrapping_sub(other.value);
        Self::new(self.value.wrapping_sub(other.value), (low ^ high) | self.unknown | other.unknown)
    }

    /// Bitwise and.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        let ones = self.value & other.value;
        Self { value: ones, unknown: self.max() & other.max() & !ones }
    }

    /// Bitwise or.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        let ones = self.value | other.value;
        Self { value: ones, unknown: (self.unknown | other.unknown) & !ones }
    }

    /// Bitwise exclusive or.
    #[must_use]
    pub const fn xor(self, other: Self) -> Self {
        Self::new(self.value ^ other.value, self.unknown | other.unknown)
    }

    /// Wrapping product: long multiplication, with the known product apart from what the unknown bits add.
    #[must_use]
    pub const fn mul(self, other: Self) -> Self {
        let known = self.value.wrapping_mul(other.value);
        let mut rest = Self::constant(0);
        let mut bits = self.max();
        while bits != 0 {
            let i = bits.trailing_zeros();
            let row = if self.unknown >> i & 1 != 0 { other.max() } else { other.unknown };
            rest = rest.add(Self { value: 0, unknown: row << i });
            bits &= bits - 1;
        }
        Self::constant(known).add(rest)
    }

    /// Left shift by less than 64.
    #[must_use]
    pub const fn shl(self, by: u32) -> Self {
        Self { value: self.value << by, unknown: self.unknown << by }
    }

    /// Logical right shift by less than 64.
    #[must_use]
    pub const fn shr(self, by: u32) -> Self {
        Self { value: self.value >> by, unknown: self.unknown >> by }
    }

    /// The bytes in reverse order.
    #[must_use]
    pub const fn swap_bytes(self) -> Self {
        Self { value: self.value.swap_bytes(), unknown: self.unknown.swap_bytes() }
    }
}

impl fmt::Display for Tnum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_constant() {
            write!(f, "{:#x}", self.value)
        } else {
            write!(f, "({:#x}; {:#x})", self.value, self.unknown)
        }
    }
}

impl fmt::Debug for Tnum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
