//! Sums, products, quotients.

use crate::solver::bits::ones;
use crate::solver::node::{Node, Term};
use crate::solver::terms::Terms;

impl Terms {
    /// `a + b`
    pub fn add(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.commuted(a, b);
        let width = self.width(a);
        self.simplified(width, Node::Add(a, b), |terms| terms.sum_of(width, a, b))
    }

    fn sum_of(&mut self, width: u32, a: Term, b: Term) -> Term {
        if let Some(constant) = self.value(b) {
            if constant == 0 {
                return a;
            }
            match self.node(a) {
                Node::Const(other) => return self.constant(width, other.wrapping_add(constant)),
                Node::Add(inner, other) if let Some(before) = self.value(other) => {
                    let both = self.constant(width, before.wrapping_add(constant));
                    return self.add(inner, both);
                }
                Node::Sub(other, inner) if let Some(before) = self.value(other) => {
                    let both = self.constant(width, before.wrapping_add(constant));
                    return self.sub(both, inner);
                }
                _ => {}
            }
        } else {
            // Constants go outwards, where they meet others.
            for (x, y) in [(a, b), (b, a)] {
                if let Node::Add(inner, constant) = self.node(x)
                    && self.value(constant).is_some()
                {
                    let sum = self.add(inner, y);
                    return self.add(sum, constant);
                }
                if let Node::Sub(left, right) = self.node(x)
                    && right == y
                {
                    return left;
                }
            }
        }
        if let Some(joined) = self.disjoint(a, b) {
            return joined;
        }
        self.intern(width, Node::Add(a, b))
    }

    /// `a - b`
    pub fn sub(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        self.simplified(width, Node::Sub(a, b), |terms| terms.difference_of(width, a, b))
    }

    fn difference_of(&mut self, width: u32, a: Term, b: Term) -> Term {
        if a == b {
            return self.constant(width, 0);
        }
        if let Some(constant) = self.value(b) {
            let negative = self.constant(width, constant.wrapping_neg());
            return self.add(a, negative);
        }
        if let Node::Mul(x, y) = self.node(b) {
            for (quotient, divisor) in [(x, y), (y, x)] {
                if self.is_quotient(quotient, a, divisor) {
                    return self.urem(a, divisor);
                }
            }
        }
        if let (Node::Add(x, y), Node::Add(z, w)) = (self.node(a), self.node(b)) {
            let rest = [(x, y, z, w), (x, y, w, z), (y, x, z, w), (y, x, w, z)];
            if let Some(&(_, left, _, right)) = rest.iter().find(|(x, _, z, _)| x == z) {
                return self.sub(left, right);
            }
        }
        if let Node::Add(inner, other) = self.node(a) {
            if inner == b {
                return other;
            }
            if other == b {
                return inner;
            }
            if self.value(other).is_some() {
                let difference = self.sub(inner, b);
                return self.add(difference, other);
            }
        }
        if let Node::Add(inner, other) = self.node(b) {
            if let Some(constant) = self.value(other) {
                let difference = self.sub(a, inner);
                let negative = self.constant(width, constant.wrapping_neg());
                return self.add(difference, negative);
            }
            if inner == a || other == a {
                let rest = if inner == a { other } else { inner };
                return self.neg(rest);
            }
        }
        self.intern(width, Node::Sub(a, b))
    }

    /// Whether a term is `a / b`, or 0 in its place where `b` is zero: `a` without so many times `b` is the remainder.
    fn is_quotient(&mut self, term: Term, a: Term, b: Term) -> bool {
        match self.node(term) {
            Node::Udiv(x, y) => (x, y) == (a, b),
            Node::Ite(is_zero, none, quotient) => {
                let width = self.width(b);
                let zero = self.constant(width, 0);
                let is_for_zero = self.value(none) == Some(0) && self.eq(b, zero) == is_zero;
                is_for_zero && self.is_quotient(quotient, a, b)
            }
            _ => false,
        }
    }

    /// `-a`
    pub fn neg(&mut self, a: Term) -> Term {
        let width = self.width(a);
        match self.node(a) {
            Node::Const(value) => self.constant(width, value.wrapping_neg()),
            Node::Sub(x, y) => self.sub(y, x),
            _ => {
                let zero = self.constant(width, 0);
                self.intern(width, Node::Sub(zero, a))
            }
        }
    }

    /// Bits that both numbers fit into.
    fn bits(&self, a: Term, b: Term) -> (u32, u32) {
        let bits = |term: Term| (64 - self.facts(term).max.leading_zeros()).max(1);
        (bits(a), bits(b))
    }

    /// `a * b`
    pub fn mul(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.commuted(a, b);
        let width = self.width(a);
        self.simplified(width, Node::Mul(a, b), |terms| terms.product_of(width, a, b))
    }

    fn product_of(&mut self, width: u32, a: Term, b: Term) -> Term {
        if let Some(constant) = self.value(b) {
            match (self.node(a), constant) {
                (_, 0) => return b,
                (_, 1) => return a,
                (Node::Const(other), _) => return self.constant(width, other.wrapping_mul(constant)),
                (Node::Mul(inner, other), _) if let Some(before) = self.value(other) => {
                    let both = self.constant(width, before.wrapping_mul(constant));
                    return self.mul(inner, both);
                }
                _ if constant.is_power_of_two() => {
                    let count = self.constant(width, u64::from(constant.trailing_zeros()));
                    return self.shl(a, count);
                }
                _ => {}
            }
        }
        let (of_a, of_b) = self.bits(a, b);
        if of_a + of_b < width {
            return self.narrowed(a, b, of_a + of_b, Self::mul);
        }
        self.intern(width, Node::Mul(a, b))
    }

    /// An operation on fewer bits, whose result has zeros above.
    fn narrowed(&mut self, a: Term, b: Term, bits: u32, by: fn(&mut Self, Term, Term) -> Term) -> Term {
        let width = self.width(a);
        let (a, b) = (self.extract(a, 0, bits), self.extract(b, 0, bits));
        let result = by(self, a, b);
        self.resize(result, width)
    }

    /// `a / b` without sign; all ones if `b` is zero.
    pub fn udiv(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if let Some(constant) = self.value(b) {
            if let Some(value) = self.value(a) {
                return self.constant(width, value.checked_div(constant).unwrap_or(u64::MAX));
            }
            if constant.is_power_of_two() {
                let count = self.constant(width, u64::from(constant.trailing_zeros()));
                return self.lshr(a, count);
            }
        }
        let (of_a, of_b) = self.bits(a, b);
        if of_a.max(of_b) < width && self.facts(b).min > 0 {
            return self.narrowed(a, b, of_a.max(of_b), Self::udiv);
        }
        self.intern(width, Node::Udiv(a, b))
    }

    /// `a % b` without sign; `a` if `b` is zero.
    pub fn urem(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        if let Some(constant) = self.value(b) {
            if let Some(value) = self.value(a) {
                return self.constant(width, value.checked_rem(constant).unwrap_or(value));
            }
            if constant.is_power_of_two() {
                let mask = self.constant(width, constant - 1);
                return self.and(a, mask);
            }
        }
        let (of_a, of_b) = self.bits(a, b);
        if of_a.max(of_b) < width && self.facts(b).min > 0 {
            return self.narrowed(a, b, of_a.max(of_b), Self::urem);
        }
        self.intern(width, Node::Urem(a, b))
    }

    /// Sign and magnitude.
    fn magnitude(&mut self, a: Term) -> (Term, Term) {
        let sign = self.extract(a, self.width(a) - 1, 1);
        let negative = self.neg(a);
        (sign, self.ite(sign, negative, a))
    }

    /// `a / b` with sign, rounded towards zero; 1 or -1 if `b` is zero, by the sign of `a` inverted, as SMT-LIB has it.
    pub fn sdiv(&mut self, a: Term, b: Term) -> Term {
        let ((sign_a, a), (sign_b, b)) = (self.magnitude(a), self.magnitude(b));
        let quotient = self.udiv(a, b);
        let negative = self.neg(quotient);
        let differ = self.xor(sign_a, sign_b);
        self.ite(differ, negative, quotient)
    }

    /// `a % b` with the sign of `a`; `a` if `b` is zero.
    pub fn srem(&mut self, a: Term, b: Term) -> Term {
        let ((sign, a), (_, b)) = (self.magnitude(a), self.magnitude(b));
        let remainder = self.urem(a, b);
        let negative = self.neg(remainder);
        self.ite(sign, negative, remainder)
    }

    /// The greatest number of a width.
    pub(super) fn greatest(&self, of: Term) -> u64 {
        ones(self.width(of))
    }
}
