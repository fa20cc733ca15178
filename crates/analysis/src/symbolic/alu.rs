//! Operations and comparisons as terms.

use crate::solver::{Term, Terms};
use paceline_isa::{AluOp, Condition, Size, SwapOrder, Width};

pub(crate) const fn bits(width: Width) -> u32 {
    match width {
        Width::W32 => 32,
        Width::W64 => 64,
    }
}

/// `a op b` of 64-bit terms, as [`paceline_isa::eval::alu`] defines it.
pub(crate) fn alu(terms: &mut Terms, width: Width, op: AluOp, a: Term, b: Term) -> Term {
    let bits = bits(width);
    let (a, b) = (terms.extract(a, 0, bits), terms.extract(b, 0, bits));
    let result = match op {
        AluOp::Add => terms.add(a, b),
        AluOp::Sub => terms.sub(a, b),
        AluOp::Mul => terms.mul(a, b),
        AluOp::Div => {
            let quotient = terms.udiv(a, b);
            unless_zero(terms, b, quotient)
        }
        AluOp::SDiv => {
            let quotient = terms.sdiv(a, b);
            unless_zero(terms, b, quotient)
        }
        AluOp::Mod => terms.urem(a, b),
        AluOp::SMod => terms.srem(a, b),
        AluOp::Or => terms.or(a, b),
        AluOp::And => terms.and(a, b),
        AluOp::Xor => terms.xor(a, b),
        AluOp::Mov => b,
        AluOp::Lsh | AluOp::Rsh | AluOp::Arsh => {
            let mask = terms.constant(bits, u64::from(bits) - 1);
            let count = terms.and(b, mask);
            match op {
                AluOp::Lsh => terms.shl(a, count),
                AluOp::Rsh => terms.lshr(a, count),
                _ => terms.ashr(a, count),
            }
        }
    };
    terms.resize(result, 64)
}

/// BPF's quotient by zero is zero.
fn unless_zero(terms: &mut Terms, divisor: Term, quotient: Term) -> Term {
    let zero = terms.constant(terms.width(divisor), 0);
    let is_zero = terms.eq(divisor, zero);
    terms.ite(is_zero, zero, quotient)
}

/// `-a`
pub(crate) fn neg(terms: &mut Terms, width: Width, a: Term) -> Term {
    let a = terms.extract(a, 0, bits(width));
    let result = terms.neg(a);
    terms.resize(result, 64)
}

/// The low bytes, sign-extended to a width and zero-extended from there.
pub(crate) fn sign_extend(terms: &mut Terms, size: Size, width: Width, a: Term) -> Term {
    let low = terms.extract(a, 0, size.bytes() as u32 * 8);
    let extended = terms.sign_extend(low, bits(width));
    terms.resize(extended, 64)
}

/// The low bytes in another order, as [`paceline_isa::eval::swap`] defines it.
pub(crate) fn swap(terms: &mut Terms, order: SwapOrder, size: Size, a: Term) -> Term {
    let low = terms.extract(a, 0, size.bytes() as u32 * 8);
    let reverse = match order {
        SwapOrder::Always => true,
        SwapOrder::ToBe => cfg!(target_endian = "little"),
        SwapOrder::ToLe => cfg!(target_endian = "big"),
    };
    let swapped = if reverse { terms.swap_bytes(low) } else { low };
    terms.resize(swapped, 64)
}

/// Whether `a condition b` holds.
pub(crate) fn compare(terms: &mut Terms, width: Width, condition: Condition, a: Term, b: Term) -> Term {
    let (a, b) = (terms.extract(a, 0, bits(width)), terms.extract(b, 0, bits(width)));
    match condition {
        Condition::Eq => terms.eq(a, b),
        Condition::Ne => {
            let equal = terms.eq(a, b);
            terms.not(equal)
        }
        Condition::Gt => terms.ult(b, a),
        Condition::Ge => terms.ule(b, a),
        Condition::Lt => terms.ult(a, b),
        Condition::Le => terms.ule(a, b),
        Condition::Set => {
            let both = terms.and(a, b);
            let zero = terms.constant(bits(width), 0);
            let none = terms.eq(both, zero);
            terms.not(none)
        }
        Condition::SGt => terms.slt(b, a),
        Condition::SGe => terms.sle(b, a),
        Condition::SLt => terms.slt(a, b),
        Condition::SLe => terms.sle(a, b),
    }
}

/// A number from its bytes as they lie in memory.
pub(crate) fn word(terms: &mut Terms, bytes: &[Term]) -> Term {
    let lowest_first = bytes.iter().copied();
    let joined = if cfg!(target_endian = "little") {
        lowest_first.reduce(|low, high| terms.concat(high, low))
    } else {
        lowest_first.reduce(|high, low| terms.concat(high, low))
    };
    joined.unwrap_or_else(|| terms.constant(8, 0))
}

/// The bytes of the low `size` bytes of a number as they lie in memory.
pub(crate) fn bytes(terms: &mut Terms, number: Term, size: usize) -> Vec<Term> {
    let of = |index: usize| if cfg!(target_endian = "little") { index } else { size - 1 - index };
    (0..size).map(|index| terms.extract(number, of(index) as u32 * 8, 8)).collect()
}

#[cfg(test)]
mod tests {
    use crate::solver::Model;
    use paceline_isa::eval;

    use super::*;

    /// Terms of variables, and of constants in the place of one of them, under assignments to the variables.
    #[test]
    fn terms_compute_what_the_instructions_do() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut number = || match random.u8(0..4) {
            0 => random.u64(0..3),
            1 => u64::MAX - random.u64(0..3),
            2 => 1 << random.u32(0..64),
            _ => random.u64(..),
        };
        for _ in 0..300 {
            let (x, y) = (number(), number());
            let mut terms = Terms::new();
            let (a, b) = (terms.var(64), terms.var(64));
            let constant = terms.constant(64, y);
            let mut model = Model::default();
            for (term, value) in [(a, x), (b, y)] {
                model.set(terms.support(term)[0], value);
            }
            for width in [Width::W32, Width::W64] {
                for right in [b, constant] {
                    for op in AluOp::ALL {
                        let term = alu(&mut terms, width, op, a, right);
                        assert_eq!(
                            terms.evaluate(&model, term),
                            eval::alu(width, op, x, y),
                            "{width:?} {op:?} {x} {y}"
                        );
                    }
                    for condition in Condition::ALL {
                        let term = compare(&mut terms, width, condition, a, right);
                        let expected = eval::compare(width, condition, x, y);
                        assert_eq!(
                            terms.evaluate(&model, term) == 1,
                            expected,
                            "{width:?} {condition:?} {x} {y}"
                        );
                    }
                }
                let negative = neg(&mut terms, width, a);
                assert_eq!(terms.evaluate(&model, negative), eval::neg(width, x));
            }
            for size in [Size::H, Size::W, Size::Dw] {
                for order in [SwapOrder::ToLe, SwapOrder::ToBe, SwapOrder::Always] {
                    let term = swap(&mut terms, order, size, a);
                    assert_eq!(terms.evaluate(&model, term), eval::swap(order, size, x));
                }
                let extended = sign_extend(&mut terms, size, Width::W64, a);
                assert_eq!(terms.evaluate(&model, extended), eval::sign_extend(size, x));
            }
            let parts = bytes(&mut terms, a, 8);
            assert_eq!(word(&mut terms, &parts), a);
        }
    }
}
