//! Unsigned and signed bounds of a number.

use super::tnum::Tnum;
use super::width::{mask, signed, signed_max, signed_min};

/// Least and greatest value of a number of some width, read as unsigned and as signed; all inclusive.
///
/// Methods take the width in bits, 1 to 64. Unsigned values have no bits above it, signed ones are extended to 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bounds {
    /// Least unsigned value.
    pub umin: u64,
    /// Greatest unsigned value.
    pub umax: u64,
    /// Least signed value.
    pub smin: i64,
    /// Greatest signed value.
    pub smax: i64,
}

impl Bounds {
    /// Any number.
    #[must_use]
    pub const fn full(bits: u32) -> Self {
        Self { umin: 0, umax: mask(bits), smin: signed_min(bits), smax: signed_max(bits) }
    }

    /// One number.
    #[must_use]
    pub const fn constant(value: u64, bits: u32) -> Self {
        let (u, s) = (value & mask(bits), signed(value, bits));
        Self { umin: u, umax: u, smin: s, smax: s }
    }

    /// Whether every number within `other` is within these.
    #[must_use]
    pub const fn include(&self, other: &Self) -> bool {
        self.umin <= other.umin
            && self.umax >= other.umax
            && self.smin <= other.smin
            && self.smax >= other.smax
    }

    const fn non_empty(self) -> Option<Self> {
        if self.umin <= self.umax && self.smin <= self.smax { Some(self) } else { None }
    }

    /// Intersection; `None` if it is empty.
    #[must_use]
    pub fn meet(self, other: Self) -> Option<Self> {
        Self {
            umin: self.umin.max(other.umin),
            umax: self.umax.min(other.umax),
            smin: self.smin.max(other.smin),
            smax: self.smax.min(other.smax),
        }
        .non_empty()
    }

    /// The least bounds that include both.
    #[must_use]
    pub fn join(self, other: Self) -> Self {
        Self {
            umin: self.umin.min(other.umin),
            umax: self.umax.max(other.umax),
            smin: self.smin.min(other.smin),
            smax: self.smax.max(other.smax),
        }
    }

    /// With known bits as well.
    #[must_use]
    pub fn meet_tnum(self, tnum: Tnum, bits: u32) -> Option<Self> {
        let sign = 1 << (bits - 1);
        let t = tnum.truncate(bits);
        // The signed minimum has an unknown sign bit set, the signed maximum has it clear.
        let (smin, smax) = (t.value() | t.unknown() & sign, t.value() | t.unknown() & !sign);
        self.meet(Self { umin: t.value(), umax: t.max(), smin: signed(smin, bits), smax: signed(smax, bits) })
    }

    /// Intersection with an arc: the numbers from `from` up to `to`, which may wrap around.
    #[must_use]
    pub fn meet_arc(self, from: u64, to: u64, bits: u32) -> Option<Self> {
        let (from, to) = (from & mask(bits), to & mask(bits));
        let (umin, umax) = meet_arc((self.umin, self.umax), (from, to))?;
        // Signed order is unsigned order with the sign bit inverted.
        let turn = |s: i64| (s as u64 ^ 1 << (bits - 1)) & mask(bits);
        let turned = meet_arc((turn(self.smin), turn(self.smax)), (turn(from as i64), turn(to as i64)))?;
        let back = |u: u64| signed(u ^ 1 << (bits - 1), bits);
        Some(Self { umin, umax, smin: back(turned.0), smax: back(turned.1) })
    }

    /// Lets the unsigned and the signed bounds refine each other.
    #[must_use]
    #[inline]
    pub fn agree(self, bits: u32) -> Option<Self> {
        // Mostly they are the same bounds, or both unknown.
        let is_same =
            self.smin as u64 & mask(bits) == self.umin && self.smax as u64 & mask(bits) == self.umax;
        if (is_same && self.umin <= self.umax && self.smin <= self.smax) || self == Self::full(bits) {
            return Some(self);
        }
        self.meet_arc(self.umin, self.umax, bits)?.meet_arc(self.smin as u64, self.smax as u64, bits)
    }

    /// The low `bits` bits of a number within these bounds, which are of `width` bits.
    #[must_use]
    pub fn meet_low_of(self, whole: &Self, bits: u32) -> Option<Self> {
        // More than 2^bits consecutive numbers have every low part.
        let few = |from: u64, to: u64| to.wrapping_sub(from) <= mask(bits);
        let mut low = self;
        if few(whole.umin, whole.umax) {
            low = low.meet_arc(whole.umin, whole.umax, bits)?;
        }
        if few(whole.smin as u64, whole.smax as u64) {
            low = low.meet_arc(whole.smin as u64, whole.smax as u64, bits)?;
        }
        Some(low)
    }

    /// These bounds, of `width` bits, of numbers whose low `half` bits are within `low`.
    #[must_use]
    pub fn meet_whole_of(self, low: &Self, half: u32, width: u32) -> Option<Self> {
        let sign = 1 << (width - 1);
        let turn = |s: i64| (s as u64 ^ sign) & mask(width);
        let back = |u: u64| signed(u ^ sign, width);
        let mut whole = self;
        for arc in [(low.umin, low.umax), (low.smin as u64 & mask(half), low.smax as u64 & mask(half))] {
            (whole.umin, whole.umax) = within_lows((whole.umin, whole.umax), arc, half, width)?;
            let (min, max) = within_lows((turn(whole.smin), turn(whole.smax)), arc, half, width)?;
            (whole.smin, whole.smax) = (back(min), back(max));
        }
        whole.non_empty()
    }
}

/// The hull of the intersection of an interval and an arc.
fn meet_arc((min, max): (u64, u64), (from, to): (u64, u64)) -> Option<(u64, u64)> {
    if from <= to {
        let (min, max) = (min.max(from), max.min(to));
        return (min <= max).then_some((min, max));
    }
    // The arc is [from, end] and [0, to].
    let (upper, lower) = (max >= from, min <= to);
    match (lower, upper) {
        (false, false) => None,
        (true, false) => Some((min, max.min(to))),
        (false, true) => Some((min.max(from), max)),
        (true, true) => Some((min, max)),
    }
}

/// Tightens an interval of `width`-bit numbers to ends whose low `half` bits lie on an arc.
fn within_lows((min, max): (u64, u64), (from, to): (u64, u64), half: u32, width: u32) -> Option<(u64, u64)> {
    let lows = mask(half);
    let on_arc = |low: u64| if from <= to { from <= low && low <= to } else { low >= from || low <= to };
    let up = |x: u64| match x & lows {
        low if on_arc(low) => Some(x),
        low if low < from => Some(x & !lows | from),
        _ => (x | lows).checked_add(1).filter(|&next| next <= mask(width)).map(|next| next | from),
    };
    let down = |x: u64| match x & lows {
        low if on_arc(low) => Some(x),
        low if low > to => Some(x & !lows | to),
        _ => (x & !lows).checked_sub(1).map(|previous| previous & !lows | to),
    };
    let (min, max) = (up(min)?, down(max)?);
    (min <= max).then_some((min, max))
}
