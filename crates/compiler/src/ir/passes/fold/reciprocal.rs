//! Division by a constant as a multiplication: `x / d` is `x * m / 2^n` rounded down, where `m` is `2^n / d` rounded up and `n` is
//! large enough that the error cannot reach the next quotient (Granlund and Montgomery, "Division by Invariant Integers using
//! Multiplication", theorem 4.2).

/// A multiplier and the following shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reciprocal {
    /// The low bits of the multiplier, as many as the width has.
    pub(super) multiplier: u64,
    /// Whether the multiplier has one bit more, in which case the dividend is added to the upper half of the product. Then the shift
    /// is 1 or more, but for a divisor of 1.
    pub(super) adds: bool,
    /// Right shift of the upper half of the product, in bits.
    pub(super) shift: u8,
}

impl Reciprocal {
    /// The reciprocal at a width (32 or 64) for dividends of so many bits, at most as many as the width has; `None` for a divisor of 0.
    /// Divisors above half of the numbers of the width may have none.
    pub(super) fn of(width: u8, bits: u8, divisor: u64) -> Option<Self> {
        let divisor = u128::from(divisor);
        (0..width).find_map(|shift| {
            let power = 1_u128 << (width + shift);
            let multiplier = power.div_ceil(divisor.max(1));
            // Rounding error of the multiplier, times the divisor.
            let excess = (multiplier * divisor).checked_sub(power)?;
            (divisor != 0 && excess <= power >> bits).then_some(Self {
                multiplier: multiplier as u64 & (u64::MAX >> (64 - width)),
                adds: multiplier >> width != 0,
                shift,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotient(width: u8, reciprocal: Reciprocal, x: u64) -> u64 {
        let high = (u128::from(x) * u128::from(reciprocal.multiplier)) >> width;
        let sum = high + if reciprocal.adds { u128::from(x) } else { 0 };
        (sum >> reciprocal.shift) as u64
    }

    /// Dividends up to a number next to a change of the quotient, low and high.
    fn dividends(d: u64, most: u64) -> impl Iterator<Item = u64> {
        let highest = most / d * d;
        let low = [0, 1, d - 1, d, d.saturating_add(1), (d - 1).saturating_add(d)];
        let high = [most / 2, most / 2 + 1, highest.saturating_sub(1), highest, most - 1, most];
        low.into_iter().chain(high).filter(move |x| *x <= most)
    }

    #[test]
    fn quotients_are_exact() {
        let small = 1..2000_u64;
        let large = (0..64).flat_map(|i| [1_u64 << i, (1_u64 << i).wrapping_sub(1), (1_u64 << i) + 1]);
        let spread = (1..2000_u64).flat_map(|i| {
            let number = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            [number >> 32, number >> 1]
        });
        for divisor in small.chain(large).chain(spread).filter(|&d| d != 0) {
            for (width, bits) in [(32, 20), (32, 31), (32, 32), (64, 33), (64, 60), (64, 63), (64, 64)] {
                if divisor > 1 << (width - 1) {
                    continue;
                }
                let reciprocal = Reciprocal::of(width, bits, divisor).expect("there is one");
                let has_one_more = reciprocal.adds && divisor > 1;
                assert!(!has_one_more || bits == width && reciprocal.shift > 0, "{reciprocal:?}");
                for x in dividends(divisor, u64::MAX >> (64 - bits)) {
                    let found = quotient(width, reciprocal, x);
                    assert_eq!(found, x / divisor, "{x} / {divisor} of {bits} bits in {width}");
                }
            }
        }
        assert_eq!(Reciprocal::of(32, 32, 0), None);
    }
}
