//! Refinement of the compared numbers at a branch.

use paceline_isa::{Condition, Width};

use super::bounds::Bounds;
use super::scalar::Scalar;
use super::tnum::Tnum;
use super::width;

/// One width of two numbers that are compared: bounds and known bits of each.
struct Pair {
    a: (Bounds, Tnum),
    b: (Bounds, Tnum),
    bits: u32,
}

impl<const BITS: u32> Scalar<BITS> {
    /// Both numbers, refined by the outcome `holds` of `a condition b`; `None` if that outcome is impossible.
    #[must_use]
    pub fn refine(
        a: &Self,
        b: &Self,
        width: Width,
        condition: Condition,
        holds: bool,
    ) -> Option<(Self, Self)> {
        let bits = if width == Width::W64 { BITS } else { Self::HALF };
        let part = |s: &Self| match width {
            Width::W64 => (s.whole, s.bits),
            Width::W32 => (s.low, s.bits.truncate(bits)),
        };
        let (part_a, part_b) = (part(a), part(b));
        let pair = Pair { a: part_a, b: part_b, bits };
        let refined = match (holds, condition.opposite()) {
            (true, _) => pair.holds(condition)?,
            (false, Some(other)) => pair.holds(other)?,
            (false, None) => pair.no_common_bit()?,
        };
        // Often one of them is what it was.
        let with = |number: &Self, before, part| match before == part {
            true => Some(*number),
            false => number.with_part(width, part),
        };
        Some((with(a, part_a, refined.a)?, with(b, part_b, refined.b)?))
    }

    fn with_part(&self, width: Width, (bounds, tnum): (Bounds, Tnum)) -> Option<Self> {
        match width {
            Width::W64 => Self::from_parts(tnum, bounds, self.low),
            Width::W32 => {
                let tnum = tnum.forget_above(Self::HALF).meet(self.bits)?;
                Self::from_parts(tnum, self.whole, bounds)
            }
        }
    }
}

impl Pair {
    fn holds(self, condition: Condition) -> Option<Self> {
        match condition {
            Condition::Eq => self.equal(),
            Condition::Ne => self.different(),
            Condition::Set => self.common_bit(),
            Condition::Gt => self.unsigned_order(true, true),
            Condition::Ge => self.unsigned_order(true, false),
            Condition::Lt => self.unsigned_order(false, true),
            Condition::Le => self.unsigned_order(false, false),
            Condition::SGt => self.signed_order(true, true),
            Condition::SGe => self.signed_order(true, false),
            Condition::SLt => self.signed_order(false, true),
            Condition::SLe => self.signed_order(false, false),
        }
    }

    fn equal(self) -> Option<Self> {
        let both = (self.a.0.meet(self.b.0)?, self.a.1.meet(self.b.1)?);
        Some(Self { a: both, b: both, ..self })
    }

    fn different(mut self) -> Option<Self> {
        let constant = |(bounds, tnum): &(Bounds, Tnum)| {
            (bounds.umin == bounds.umax)
                .then_some(bounds.umin)
                .or_else(|| tnum.is_constant().then_some(tnum.value()))
        };
        if let Some(value) = constant(&self.b) {
            self.a.0 = self.a.0.without(value, self.bits)?;
        }
        if let Some(value) = constant(&self.a) {
            self.b.0 = self.b.0.without(value, self.bits)?;
        }
        Some(self)
    }

    fn common_bit(mut self) -> Option<Self> {
        let possible = self.a.1.max() & self.b.1.max();
        if possible == 0 {
            return None;
        }
        if possible.is_power_of_two() {
            // The only bit that both can have set is set in both.
            let set = |t: Tnum| Tnum::new(t.value() | possible, t.unknown() & !possible);
            (self.a.1, self.b.1) = (set(self.a.1), set(self.b.1));
        }
        Some(self)
    }

    fn no_common_bit(mut self) -> Option<Self> {
        if self.a.1.value() & self.b.1.value() != 0 {
            return None;
        }
        // A bit that is set in one is clear in the other.
        let clear = |t: Tnum, ones: u64| Tnum::new(t.value(), t.unknown() & !ones);
        let (a, b) = (clear(self.a.1, self.b.1.value()), clear(self.b.1, self.a.1.value()));
        (self.a.1, self.b.1) = (a, b);
        Some(self)
    }

    fn unsigned_order(mut self, greater: bool, strict: bool) -> Option<Self> {
        let step = u64::from(strict);
        let (high, low) =
            if greater { (&mut self.a.0, &mut self.b.0) } else { (&mut self.b.0, &mut self.a.0) };
        let min = high.umin.max(low.umin.checked_add(step)?);
        let max = low.umax.min(high.umax.checked_sub(step)?);
        (high.umin, low.umax) = (min, max);
        (high.umin <= high.umax && low.umin <= low.umax).then_some(self)
    }

    fn signed_order(mut self, greater: bool, strict: bool) -> Option<Self> {
        let step = i64::from(strict);
        let (high, low) =
            if greater { (&mut self.a.0, &mut self.b.0) } else { (&mut self.b.0, &mut self.a.0) };
        let min = high.smin.max(low.smin.checked_add(step)?);
        let max = low.smax.min(high.smax.checked_sub(step)?);
        (high.smin, low.smax) = (min, max);
        (high.smin <= high.smax && low.smin <= low.smax).then_some(self)
    }
}

impl Bounds {
    /// Without one value, if that is an end of the bounds.
    fn without(mut self, value: u64, bits: u32) -> Option<Self> {
        if self.umin == self.umax && self.umin == value {
            return None;
        }
        let signed = width::signed(value, bits);
        if self.umin == value {
            self.umin += 1;
        } else if self.umax == value {
            self.umax -= 1;
        }
        if self.smin == signed && self.smax == signed {
            return None;
        }
        if self.smin == signed {
            self.smin += 1;
        } else if self.smax == signed {
            self.smax -= 1;
        }
        Some(self)
    }
}
