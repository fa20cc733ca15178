//! Division by a constant as a multiplication: `x / d` is `x * m / 2^n` rounded down, where `m` is `2^n / d` rounded up and `n` is
//! large enough that the error cannot reach the next quotient (Granlund and Montgomery, "Division by Invariant Integers using
//! Multiplication", theorem 4.2).

/// A multiplier and the following shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reciprocal {
    /// The low bits of the multiplier, as many as the dividend has.
    pub(super) multiplier: u64,
    /// Whether the multiplier has one bit more, in which case the dividend is added to the upper half of the product.
    pub(super) adds: bool,
    /// Right shift of the upper half of the product, in bits.
    pub(super) shift: u8,
}

impl Reciprocal {
    /// The reciprocal for dividends of `bits` bits (32 or 64); `None` for a divisor of 0.
    pub(super) fn of(bits: u8, divisor: u32) -> Option<Self> {
        let divisor = u128::from(divisor);
        (0..=32_u8).find_map(|shift| {
            let power = 1_u128 << (bits + shift);
            let multiplier = power.div_ceil(divisor.max(1));
            // Rounding error of the multiplier, times the divisor.
            let excess = (multiplier * divisor).checked_sub(power)?;
            (divisor != 0 && excess <= 1 << shift).then_some(Self {
                multiplier: multiplier as u64 & (u64::MAX >> (64 - bits)),
                adds: multiplier >> bits != 0,
                shift,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quotient(bits: u8, reciprocal: Reciprocal, x: u64) -> u64 {
        let high = (u128::from(x) * u128::from(reciprocal.multiplier)) >> bits;
        let sum = high + if reciprocal.adds { u128::from(x) } else { 0 };
        (sum >> reciprocal.shift) as u64
    }

    #[test]
    fn quotients_are_exact() {
        let small = 1..2000_u32;
        let large = (0..32).flat_map(|i| [1_u32 << i, (1_u32 << i).wrapping_sub(1), (1_u32 << i) + 1]);
        let spread = (1..2000_u32).map(|i| i.wrapping_mul(2_654_435_761));
        for divisor in small.chain(large).chain(spread).filter(|&d| d != 0) {
            for bits in [32, 64] {
                let most = u64::MAX >> (64 - bits);
                let reciprocal = Reciprocal::of(bits, divisor).expect("there is one");
                let d = u64::from(divisor);
                // Dividends next to a change of the quotient, low and high.
                let highest = most / d * d;
                let xs = [
                    0,
                    1,
                    d - 1,
                    d,
                    d + 1,
                    2 * d - 1,
                    most / 2,
                    most / 2 + 1,
                    highest - 1,
                    highest,
                    most - 1,
                    most,
                ];
                for x in xs.into_iter().filter(|&x| x <= most) {
                    assert_eq!(quotient(bits, reciprocal, x), x / d, "{x} / {d} in {bits} bits");
                }
            }
        }
        assert_eq!(Reciprocal::of(32, 0), None);
    }
}
