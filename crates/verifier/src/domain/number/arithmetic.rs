//! Transfer functions of arithmetic operations on abstract numbers.
//!
//! The results hold for [`paceline_isa::eval`]. They are as precise as those of the kernel's
//! `adjust_scalar_min_max_vals`, or more so where that costs nothing.

use paceline_isa::{AluOp, Size, SwapOrder, Width};

use super::bounds::Bounds;
use super::scalar::Scalar;
use super::tnum::Tnum;
use super::width::{mask, signed};

impl Bounds {
    fn add(&self, other: &Self, bits: u32) -> Option<Self> {
        let mut sum = Self::full(bits);
        for (a, b) in [(self.arc(), other.arc()), (self.signed_arc(), other.signed_arc())] {
            if fits(a, b, bits) {
                sum = sum.meet_arc(a.0.wrapping_add(b.0), a.1.wrapping_add(b.1), bits)?;
            }
        }
        Some(sum)
    }

    fn sub(&self, other: &Self, bits: u32) -> Option<Self> {
        let mut difference = Self::full(bits);
        for (a, b) in [(self.arc(), other.arc()), (self.signed_arc(), other.signed_arc())] {
            if fits(a, b, bits) {
                difference = difference.meet_arc(a.0.wrapping_sub(b.1), a.1.wrapping_sub(b.0), bits)?;
            }
        }
        Some(difference)
    }

    fn mul(&self, other: &Self, bits: u32) -> Option<Self> {
        let mut product = Self::full(bits);
        let max = self.umax.checked_mul(other.umax).filter(|&max| max <= mask(bits));
        if let Some(max) = max {
            product = product.meet_arc(self.umin * other.umin, max, bits)?;
        }
        let corners = [
            self.smin.checked_mul(other.smin),
            self.smin.checked_mul(other.smax),
            self.smax.checked_mul(other.smin),
            self.smax.checked_mul(other.smax),
        ];
        let fits = |c: &Option<i64>| c.filter(|&c| signed(c as u64, bits) == c);
        if let [Some(a), Some(b), Some(c), Some(d)] = corners.each_ref().map(fits) {
            let (min, max) = (a.min(b).min(c).min(d), a.max(b).max(c).max(d));
            product = product.meet_arc(min as u64, max as u64, bits)?;
        }
        Some(product)
    }

    fn and(&self, other: &Self, bits: u32) -> Self {
        let unsigned = Self { umax: self.umax.min(other.umax), ..Self::full(bits) };
        unsigned.agree(bits).unwrap_or(unsigned)
    }

    fn or(&self, other: &Self, bits: u32) -> Self {
        let unsigned = Self { umin: self.umin.max(other.umin), ..Self::full(bits) };
        unsigned.agree(bits).unwrap_or(unsigned)
    }

    /// Left shift by less than the width.
    fn shl(&self, by: u32, bits: u32) -> Option<Self> {
        let mut shifted = Self::full(bits);
        if self.umax <= mask(bits) >> by {
            shifted = shifted.meet_arc(self.umin << by, self.umax << by, bits)?;
        }
        let fits = |s: i64| signed((s as u64) << by, bits) >> by == s;
        if fits(self.smin) && fits(self.smax) {
            shifted = shifted.meet_arc((self.smin as u64) << by, (self.smax as u64) << by, bits)?;
        }
        Some(shifted)
    }

    /// Logical right shift by less than the width.
    fn shr(&self, by: u32, bits: u32) -> Option<Self> {
        Self::full(bits).meet_arc(self.umin >> by, self.umax >> by, bits)
    }

    /// Arithmetic right shift by less than the width.
    fn sar(&self, by: u32, bits: u32) -> Option<Self> {
        Self::full(bits).meet_arc((self.smin >> by) as u64, (self.smax >> by) as u64, bits)
    }

    fn arc(&self) -> (u64, u64) {
        (self.umin, self.umax)
    }

    fn signed_arc(&self) -> (u64, u64) {
        (self.smin as u64, self.smax as u64)
    }
}

/// Whether the sums (or differences) of two arcs form an arc that does not overlap itself.
fn fits(a: (u64, u64), b: (u64, u64), bits: u32) -> bool {
    let length = |(from, to): (u64, u64)| to.wrapping_sub(from);
    length(a).checked_add(length(b)).is_some_and(|sum| sum <= mask(bits))
}

impl<const BITS: u32> Scalar<BITS> {
    /// `self op other`, as [`paceline_isa::eval::alu`] computes it; [`Width::W32`] stands for the low half.
    #[must_use]
    pub fn alu(&self, width: Width, op: AluOp, other: &Self) -> Self {
        match width {
            Width::W64 => self.alu_whole(op, other),
            Width::W32 => self.alu_low(op, other),
        }
    }

    fn alu_whole(&self, op: AluOp, other: &Self) -> Self {
        let result = match op {
            AluOp::Mov => return *other,
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => return self.shift_whole(op, other),
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => return Self::UNKNOWN,
            AluOp::Add => self.join_parts(op, other, Bounds::add),
            AluOp::Sub => self.join_parts(op, other, Bounds::sub),
            AluOp::Mul => self.join_parts(op, other, Bounds::mul),
            AluOp::And => self.join_parts(op, other, |a, b, bits| Some(a.and(b, bits))),
            AluOp::Or => self.join_parts(op, other, |a, b, bits| Some(a.or(b, bits))),
            AluOp::Xor => self.join_parts(op, other, |_, _, bits| Some(Bounds::full(bits))),
        };
        result.unwrap_or(Self::UNKNOWN)
    }

    /// For operations whose low half of the result depends on the low halves of the operands only.
    fn join_parts(
        &self,
        op: AluOp,
        other: &Self,
        bounds: impl Fn(&Bounds, &Bounds, u32) -> Option<Bounds>,
    ) -> Option<Self> {
        let tnum = tnum_of(op, self.bits, other.bits).truncate(BITS);
        if tnum.is_constant() {
            return Some(Self::constant(tnum.value()));
        }
        let (whole, low) =
            (bounds(&self.whole, &other.whole, BITS)?, bounds(&self.low, &other.low, Self::HALF)?);
        Self::from_parts(tnum, whole, low)
    }

    fn shift_whole(&self, op: AluOp, other: &Self) -> Self {
        let Some(by) = other.as_constant().filter(|&by| by < u64::from(BITS)) else { return Self::UNKNOWN };
        let by = by as u32;
        let full = Bounds::full(Self::HALF);
        let parts = match op {
            AluOp::Lsh => {
                let mut whole = self.whole.shl(by, BITS);
                let low = if by < Self::HALF {
                    self.low.shl(by, Self::HALF)
                } else {
                    // No bit of the high half remains: the pair `<< 32`, `s>> 32` is a sign extension.
                    whole = whole.and_then(|w| w.meet(self.low.shl(by, BITS)?));
                    Some(Bounds::constant(0, Self::HALF))
                };
                (self.bits.shl(by).truncate(BITS), whole, low)
            }
            AluOp::Rsh => (self.bits.shr(by), self.whole.shr(by, BITS), Some(full)),
            _ => (arithmetic_shift(self.bits, by, BITS), self.whole.sar(by, BITS), Some(full)),
        };
        let (tnum, Some(whole), Some(low)) = parts else { return Self::UNKNOWN };
        Self::from_parts(tnum, whole, low).unwrap_or(Self::UNKNOWN)
    }

    fn alu_low(&self, op: AluOp, other: &Self) -> Self {
        let half = Self::HALF;
        let (a, b) = (&self.low, &other.low);
        let bounds = match op {
            AluOp::Mov => return other.zero_extend(half),
            AluOp::Add => a.add(b, half),
            AluOp::Sub => a.sub(b, half),
            AluOp::Mul => a.mul(b, half),
            AluOp::And => Some(a.and(b, half)),
            AluOp::Or => Some(a.or(b, half)),
            AluOp::Xor => Some(Bounds::full(half)),
            AluOp::Div | AluOp::SDiv | AluOp::Mod | AluOp::SMod => return Self::unsigned(half),
            AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => return self.shift_low(op, other),
        };
        self.low_result(tnum_of(op, self.bits, other.bits), bounds)
    }

    fn shift_low(&self, op: AluOp, other: &Self) -> Self {
        let half = Self::HALF;
        let low = other.zero_extend(half);
        let Some(by) = low.as_constant().filter(|&by| by < u64::from(half)) else {
            return Self::unsigned(half);
        };
        let by = by as u32;
        let bits = self.bits.truncate(half);
        let (tnum, bounds) = match op {
            AluOp::Lsh => (bits.shl(by), self.low.shl(by, half)),
            AluOp::Rsh => (bits.shr(by), self.low.shr(by, half)),
            _ => (arithmetic_shift(bits, by, half), self.low.sar(by, half)),
        };
        self.low_result(tnum, bounds)
    }

    /// A low half with zeros above it.
    fn low_result(&self, tnum: Tnum, low: Option<Bounds>) -> Self {
        let half = Self::HALF;
        let low = low.unwrap_or(Bounds::full(half));
        let whole = Bounds { umax: mask(half), ..Bounds::full(BITS) };
        Self::from_parts(tnum.truncate(half), whole, low).unwrap_or_else(|| Self::unsigned(half))
    }

    /// `-self`.
    #[must_use]
    pub fn neg(&self, width: Width) -> Self {
        Self::ZERO.alu(width, AluOp::Sub, self)
    }
}

impl Scalar<64> {
    /// The low bytes in the order that the instruction asks for, zero-extended, as [`paceline_isa::eval::swap`].
    #[must_use]
    pub fn swap(&self, order: SwapOrder, size: Size) -> Self {
        let bits = size.bytes() as u32 * 8;
        let reverse = match order {
            SwapOrder::Always => true,
            SwapOrder::ToBe => cfg!(target_endian = "little"),
            SwapOrder::ToLe => cfg!(target_endian = "big"),
        };
        if !reverse {
            return self.zero_extend(bits);
        }
        let tnum = self.bits.truncate(bits).swap_bytes().shr(64 - bits);
        Self::from_parts(tnum, Bounds::full(64), Bounds::full(32)).unwrap_or(Self::UNKNOWN)
    }
}

fn tnum_of(op: AluOp, a: Tnum, b: Tnum) -> Tnum {
    match op {
        AluOp::Add => a.add(b),
        AluOp::Sub => a.sub(b),
        AluOp::Mul => a.mul(b),
        AluOp::And => a.and(b),
        AluOp::Or => a.or(b),
        AluOp::Xor => a.xor(b),
        _ => Tnum::UNKNOWN,
    }
}

/// Arithmetic right shift of a number of `bits` bits.
fn arithmetic_shift(t: Tnum, by: u32, bits: u32) -> Tnum {
    let wide = t.sign_extend(bits);
    // All copies of an unknown sign bit are unknown.
    let (value, unknown) = (wide.value() as i64 >> by, wide.unknown() as i64 >> by);
    Tnum::new(value as u64, unknown as u64).truncate(bits)
}
