//! The product of known bits and bounds.

use std::cmp::Ordering;
use std::fmt;

use super::bounds::Bounds;
use super::tnum::Tnum;
use super::width::{mask, signed};

/// Possible values of a number of `BITS` bits; never empty.
///
/// 64 is the width of registers ([`Number`]); other widths are for tests.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Scalar<const BITS: u32> {
    pub(super) bits: Tnum,
    pub(super) whole: Bounds,
    pub(super) low: Bounds,
}

/// Possible values of a register.
pub type Number = Scalar<64>;

impl<const BITS: u32> Scalar<BITS> {
    /// Bits of the low half, which 32-bit operations work on.
    pub const HALF: u32 = BITS / 2;

    /// Any number.
    pub const UNKNOWN: Self =
        Self { bits: Tnum::UNKNOWN.truncate(BITS), whole: Bounds::full(BITS), low: Bounds::full(Self::HALF) };

    /// The number zero.
    pub const ZERO: Self = Self::constant(0);

    /// One number.
    #[must_use]
    pub const fn constant(value: u64) -> Self {
        Self {
            bits: Tnum::constant(value & mask(BITS)),
            whole: Bounds::constant(value, BITS),
            low: Bounds::constant(value, Self::HALF),
        }
    }

    /// Any number from `min` to `max`, unsigned.
    ///
    /// # Panics
    /// In debug builds if `min` is greater than `max`.
    #[must_use]
    pub fn between(min: u64, max: u64) -> Self {
        debug_assert!(min <= max);
        let whole = Bounds { umin: min, umax: max, ..Bounds::full(BITS) };
        Self { whole, ..Self::UNKNOWN }.settle().unwrap_or(Self::UNKNOWN)
    }

    /// Any number of `bits` bits, zero-extended.
    #[must_use]
    pub const fn unsigned(bits: u32) -> Self {
        if bits >= BITS {
            return Self::UNKNOWN;
        }
        let umax = mask(bits);
        let whole = Bounds { umin: 0, umax, smin: 0, smax: umax.cast_signed() };
        let low = if bits < Self::HALF { whole } else { Bounds::full(Self::HALF) };
        Self { bits: Tnum::UNKNOWN.truncate(bits), whole, low }
    }

    /// The number with these known bits and bounds; `None` if they contradict each other.
    pub(super) fn from_parts(bits: Tnum, whole: Bounds, low: Bounds) -> Option<Self> {
        Self { bits, whole, low }.settle()
    }

    /// Lets the parts refine each other; `None` if they contradict each other.
    pub(super) fn settle(mut self) -> Option<Self> {
        if self.whole.umax.min(self.bits.max()) <= mask(Self::HALF - 1) {
            return self.settle_small();
        }
        // Each round refines every part by all others. Two rounds reach the fixed point but for rare cases, and every
        // intermediate result is sound.
        for _ in 0..2 {
            let before = self;
            if self.bits.is_constant() {
                let value = self.bits.value();
                let consistent = self.contains(value);
                return consistent.then(|| Self::constant(value));
            }
            self.whole = self.whole.meet_tnum(self.bits, BITS)?.agree(BITS)?;
            self.low = self.low.meet_tnum(self.bits, Self::HALF)?.agree(Self::HALF)?;
            self.low = self.low.meet_low_of(&self.whole, Self::HALF)?;
            if self.low != Bounds::full(Self::HALF) {
                self.whole = self.whole.meet_whole_of(&self.low, Self::HALF, BITS)?.agree(BITS)?;
            }
            let low_bits = Tnum::from_range(self.low.umin, self.low.umax).forget_above(Self::HALF);
            let range = Tnum::from_range(self.whole.umin, self.whole.umax);
            self.bits = self.bits.meet(range)?.meet(low_bits)?.truncate(BITS);
            if self == before {
                break;
            }
        }
        Some(self)
    }

    /// [`settle`](Self::settle) of numbers below the sign of the low half, such as fields of packets and lengths: all of their bounds
    /// are the same interval.
    fn settle_small(self) -> Option<Self> {
        let Self { mut bits, whole, low } = self;
        let least = whole.smin.max(low.smin).max(0).cast_unsigned();
        let greatest = u64::try_from(whole.smax.min(low.smax)).ok()?;
        let (mut min, mut max) =
            (least.max(whole.umin).max(low.umin), greatest.min(whole.umax).min(low.umax));
        for _ in 0..2 {
            (min, max) = (min.max(bits.value()), max.min(bits.max()));
            if min > max {
                return None;
            }
            bits = bits.meet(Tnum::from_range(min, max))?;
        }
        if bits.is_constant() {
            return (min..=max).contains(&bits.value()).then(|| Self::constant(bits.value()));
        }
        let bounds = Bounds { umin: min, umax: max, smin: min.cast_signed(), smax: max.cast_signed() };
        Some(Self { bits, whole: bounds, low: bounds })
    }

    /// Whether it can be `value`.
    #[must_use]
    pub fn contains(&self, value: u64) -> bool {
        let (u, s) = (value & mask(BITS), signed(value, BITS));
        let (u_low, s_low) = (value & mask(Self::HALF), signed(value, Self::HALF));
        let within = |b: &Bounds, u: u64, s: i64| b.umin <= u && u <= b.umax && b.smin <= s && s <= b.smax;
        self.bits.contains(u) && within(&self.whole, u, s) && within(&self.low, u_low, s_low)
    }

    /// Whether it can be everything that `other` can be.
    #[must_use]
    pub fn includes(&self, other: &Self) -> bool {
        self.bits.includes(other.bits) && self.whole.include(&other.whole) && self.low.include(&other.low)
    }

    /// Intersection; `None` if it is empty.
    #[must_use]
    pub fn meet(&self, other: &Self) -> Option<Self> {
        let (bits, whole) = (self.bits.meet(other.bits)?, self.whole.meet(other.whole)?);
        Self::from_parts(bits, whole, self.low.meet(other.low)?)
    }

    /// A number that is one of the two: what is known where paths meet.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let (bits, whole) = (self.bits.join(other.bits), self.whole.join(other.whole));
        Self { bits, whole, low: self.low.join(other.low) }
    }

    /// The number, if it is known.
    #[must_use]
    pub const fn as_constant(&self) -> Option<u64> {
        if self.bits.is_constant() { Some(self.bits.value()) } else { None }
    }

    /// The known bits.
    #[must_use]
    pub const fn bits(&self) -> Tnum {
        self.bits
    }

    /// Least unsigned value.
    #[must_use]
    pub const fn umin(&self) -> u64 {
        self.whole.umin
    }

    /// Greatest unsigned value.
    #[must_use]
    pub const fn umax(&self) -> u64 {
        self.whole.umax
    }

    /// Least signed value.
    #[must_use]
    pub const fn smin(&self) -> i64 {
        self.whole.smin
    }

    /// Greatest signed value.
    #[must_use]
    pub const fn smax(&self) -> i64 {
        self.whole.smax
    }

    /// Bounds of the low half.
    #[must_use]
    pub const fn low(&self) -> &Bounds {
        &self.low
    }

    /// The low `bits` bits, zero-extended.
    #[must_use]
    pub fn zero_extend(&self, bits: u32) -> Self {
        if bits >= BITS || self.whole.umax <= mask(bits) {
            return *self;
        }
        let cut = self.cut(bits);
        let tnum = self.bits.truncate(bits);
        let whole = Bounds { umin: cut.umin, umax: cut.umax, ..Bounds::full(BITS) };
        Self { bits: tnum, whole, low: self.low_of(bits, cut) }.settle().unwrap_or(Self::UNKNOWN)
    }

    /// The low `bits` bits, sign-extended.
    #[must_use]
    pub fn sign_extend(&self, bits: u32) -> Self {
        if bits >= BITS {
            return *self;
        }
        let cut = self.cut(bits);
        let tnum = self.bits.sign_extend(bits).truncate(BITS);
        let whole = Bounds { smin: cut.smin, smax: cut.smax, ..Bounds::full(BITS) };
        Self { bits: tnum, whole, low: self.low_of(bits, cut) }.settle().unwrap_or(Self::UNKNOWN)
    }

    /// Any number with the same low half.
    #[must_use]
    pub fn forget_high(&self) -> Self {
        let bits = self.bits.forget_above(Self::HALF).truncate(BITS);
        Self { bits, whole: Bounds::full(BITS), low: self.low }.settle().unwrap_or(Self::UNKNOWN)
    }

    /// Bounds of the low half of the number that the low `bits` bits, within `cut`, are extended to.
    fn low_of(&self, bits: u32, cut: Bounds) -> Bounds {
        match bits.cmp(&Self::HALF) {
            Ordering::Greater => self.low,
            Ordering::Equal => cut,
            // The bounds of the whole number suffice.
            Ordering::Less => Bounds::full(Self::HALF),
        }
    }

    /// Bounds of the low `bits` bits.
    fn cut(&self, bits: u32) -> Bounds {
        let known = Bounds::full(bits).meet_tnum(self.bits, bits);
        let from_whole = known.and_then(|b| b.meet_low_of(&self.whole, bits));
        let both = from_whole
            .and_then(|b| if bits <= Self::HALF { b.meet_low_of(&self.low, bits) } else { Some(b) });
        both.and_then(|b| b.agree(bits)).unwrap_or(Bounds::full(bits))
    }
}

impl<const BITS: u32> fmt::Display for Scalar<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(value) = self.as_constant() {
            return write!(f, "{}", signed(value, BITS));
        }
        let full = Bounds::full(BITS);
        let mut parts = Vec::new();
        let Bounds { umin, umax, smin, smax } = self.whole;
        if (umin, umax) == (smin as u64, smax as u64) {
            parts.push(format!("{umin}..={umax}"));
        } else {
            if (umin, umax) != (full.umin, full.umax) {
                parts.push(format!("unsigned {umin}..={umax}"));
            }
            if (smin, smax) != (full.smin, full.smax) {
                parts.push(format!("signed {smin}..={smax}"));
            }
        }
        let low = Bounds::full(Self::HALF);
        if self.low != low && self.whole.umax > mask(Self::HALF) {
            let Bounds { umin, umax, smin, smax } = self.low;
            if (umin, umax) != (low.umin, low.umax) {
                parts.push(format!("low half {umin}..={umax}"));
            } else {
                parts.push(format!("low half signed {smin}..={smax}"));
            }
        }
        if self.bits != Tnum::from_range(self.whole.umin, self.whole.umax) {
            parts.push(format!("bits {}", self.bits));
        }
        if parts.is_empty() { f.write_str("any number") } else { f.write_str(&parts.join(", ")) }
    }
}

impl<const BITS: u32> fmt::Debug for Scalar<BITS> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
