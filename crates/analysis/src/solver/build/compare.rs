//! Comparisons.

use crate::solver::bits::ones;
use crate::solver::node::{Node, Term};
use crate::solver::terms::Terms;

impl Terms {
    /// `a == b`
    pub fn eq(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.commuted(a, b);
        debug_assert_eq!(self.width(a), self.width(b));
        self.simplified(1, Node::Eq(a, b), |terms| terms.equality_of(a, b))
    }

    fn equality_of(&mut self, a: Term, b: Term) -> Term {
        if a == b {
            return self.bool(true);
        }
        let (of_a, of_b) = (self.facts(a), self.facts(b));
        let apart = of_a.max < of_b.min || of_b.max < of_a.min;
        if apart || of_a.ones & of_b.zeros != 0 || of_a.zeros & of_b.ones != 0 {
            return self.bool(false);
        }
        if self.width(a) == 1 {
            return match self.value(b) {
                Some(1) => a,
                Some(_) => self.not(a),
                None => {
                    let differ = self.xor(a, b);
                    self.not(differ)
                }
            };
        }
        match self.value(b) {
            Some(value) => self.eq_constant(a, b, value),
            None => self.eq_terms(a, b),
        }
    }

    fn eq_constant(&mut self, a: Term, b: Term, value: u64) -> Term {
        let width = self.width(a);
        match self.node(a) {
            Node::Concat(high, low) => {
                let split = self.width(low);
                let (top, bottom) =
                    (self.constant(width - split, value >> split), self.constant(split, value));
                let (high, low) = (self.eq(high, top), self.eq(low, bottom));
                self.and(high, low)
            }
            Node::Add(x, y) if let Some(other) = self.value(y) => {
                let rest = self.constant(width, value.wrapping_sub(other));
                self.eq(x, rest)
            }
            Node::Sub(x, y) if let Some(other) = self.value(x) => {
                let rest = self.constant(width, other.wrapping_sub(value));
                self.eq(y, rest)
            }
            Node::Sub(x, y) | Node::Xor(x, y) if value == 0 => self.eq(x, y),
            Node::Xor(x, y) if let Some(other) = self.value(y) => {
                let rest = self.constant(width, value ^ other);
                self.eq(x, rest)
            }
            Node::Not(x) => {
                let rest = self.constant(width, !value);
                self.eq(x, rest)
            }
            Node::Ite(condition, x, y) if self.value(x).is_some() || self.value(y).is_some() => {
                let (x, y) = (self.eq(x, b), self.eq(y, b));
                self.ite(condition, x, y)
            }
            _ => self.intern(1, Node::Eq(a, b)),
        }
    }

    fn eq_terms(&mut self, a: Term, b: Term) -> Term {
        match (self.node(a), self.node(b)) {
            (Node::Concat(high, low), Node::Concat(other, rest)) if self.width(low) == self.width(rest) => {
                let (high, low) = (self.eq(high, other), self.eq(low, rest));
                self.and(high, low)
            }
            (Node::Not(x), Node::Not(y)) => self.eq(x, y),
            // Sums of one number and constants, or with a part in common.
            (Node::Add(..), _) | (_, Node::Add(..)) => {
                let difference = self.sub(a, b);
                match (self.node(difference), self.value(difference)) {
                    (_, Some(value)) => self.bool(value == 0),
                    (Node::Sub(x, y), _) if (x, y) != (a, b) && (x, y) != (b, a) => self.eq(x, y),
                    _ => self.intern(1, Node::Eq(a, b)),
                }
            }
            _ => self.intern(1, Node::Eq(a, b)),
        }
    }

    /// `a < b` without sign.
    pub fn ult(&mut self, a: Term, b: Term) -> Term {
        let width = self.width(a);
        debug_assert_eq!(width, self.width(b));
        self.simplified(1, Node::Ult(a, b), |terms| terms.order_of(width, a, b))
    }

    fn order_of(&mut self, width: u32, a: Term, b: Term) -> Term {
        let (of_a, of_b) = (self.facts(a), self.facts(b));
        if of_a.max < of_b.min {
            return self.bool(true);
        }
        if a == b || of_a.min >= of_b.max {
            return self.bool(false);
        }
        if width == 1 {
            let not = self.not(a);
            return self.and(not, b);
        }
        let needed = 64 - of_a.max.max(of_b.max).leading_zeros();
        if needed < width {
            let (a, b) = (self.extract(a, 0, needed), self.extract(b, 0, needed));
            return self.ult(a, b);
        }
        if let Some(simpler) = self.ult_at_end(a, b) {
            return simpler;
        }
        if let Some(simpler) = self.ult_of_parts(a, b) {
            return simpler;
        }
        self.intern(1, Node::Ult(a, b))
    }

    /// A comparison with the least or greatest number, or the one beside it.
    fn ult_at_end(&mut self, a: Term, b: Term) -> Option<Term> {
        let greatest = self.greatest(a);
        let is_not = |terms: &mut Self, term: Term, value: u64| {
            let value = terms.constant(terms.width(term), value);
            let equal = terms.eq(term, value);
            terms.not(equal)
        };
        match (self.value(a), self.value(b)) {
            (_, Some(1)) => {
                let zero = self.constant(self.width(a), 0);
                Some(self.eq(a, zero))
            }
            (_, Some(value)) if value == greatest => Some(is_not(self, a, greatest)),
            (Some(0), _) => Some(is_not(self, b, 0)),
            (Some(value), _) if value == greatest - 1 => {
                let greatest = self.constant(self.width(b), greatest);
                Some(self.eq(b, greatest))
            }
            _ => None,
        }
    }

    /// A comparison of concatenations whose low parts do not matter.
    fn ult_of_parts(&mut self, a: Term, b: Term) -> Option<Term> {
        match (self.node(a), self.node(b)) {
            (Node::Concat(high, low), Node::Const(bound)) => {
                let split = self.width(low);
                // The low part decides nothing if the bound's is zero, or if it is a number itself.
                let part = bound & ones(split);
                let above = match self.value(low) {
                    _ if part == 0 => bound >> split,
                    Some(low) => (bound >> split) + u64::from(low < part),
                    None => return None,
                };
                let width = self.width(high);
                if above > ones(width) {
                    return Some(self.bool(true));
                }
                let above = self.constant(width, above);
                Some(self.ult(high, above))
            }
            (Node::Concat(high, low), Node::Concat(other, rest)) if low == rest => {
                Some(self.ult(high, other))
            }
            _ => None,
        }
    }

    /// `a <= b` without sign.
    pub fn ule(&mut self, a: Term, b: Term) -> Term {
        let greater = self.ult(b, a);
        self.not(greater)
    }

    /// The number with its highest bit inverted: the order of numbers with sign is that of these without.
    fn biased(&mut self, a: Term) -> Term {
        let width = self.width(a);
        let sign = self.constant(width, 1 << (width - 1));
        self.xor(a, sign)
    }

    /// `a < b` with sign.
    pub fn slt(&mut self, a: Term, b: Term) -> Term {
        let sign = 1 << (self.width(a) - 1);
        if self.facts(a).zeros & self.facts(b).zeros & sign != 0 {
            return self.ult(a, b);
        }
        let (a, b) = (self.biased(a), self.biased(b));
        self.ult(a, b)
    }

    /// `a <= b` with sign.
    pub fn sle(&mut self, a: Term, b: Term) -> Term {
        let greater = self.slt(b, a);
        self.not(greater)
    }
}
