//! Bitwise operations and choices; conditions are bits.

use super::slices::runs;
use crate::solver::bits::ones;
use crate::solver::node::{Node, Term};
use crate::solver::terms::Terms;

impl Terms {
    /// `!a`
    pub fn not(&mut self, a: Term) -> Term {
        let width = self.width(a);
        self.simplified(width, Node::Not(a), |terms| terms.complement_of(width, a))
    }

    fn complement_of(&mut self, width: u32, a: Term) -> Term {
        match self.node(a) {
            Node::Const(value) => self.constant(width, !value),
            Node::Not(a) => a,
            Node::Concat(high, low) => {
                let (high, low) = (self.not(high), self.not(low));
                self.concat(high, low)
            }
            Node::Ite(condition, x, y) if self.value(x).is_some() || self.value(y).is_some() => {
                let (x, y) = (self.not(x), self.not(y));
                self.ite(condition, x, y)
            }
            _ => self.intern(width, Node::Not(a)),
        }
    }

    /// Constants on the right; otherwise the older term on the left.
    fn ordered(&self, a: Term, b: Term) -> (Term, Term) {
        let swap = match (self.value(a), self.value(b)) {
            (Some(_), None) => true,
            (None, Some(_)) => false,
            _ => a > b,
        };
        if swap { (b, a) } else { (a, b) }
    }

    /// Operands of a commutative operation in the order that is kept.
    pub(super) fn commuted(&self, a: Term, b: Term) -> (Term, Term) {
        self.ordered(a, b)
    }

    fn is_complement(&self, a: Term, b: Term) -> bool {
        self.node(a) == Node::Not(b) || self.node(b) == Node::Not(a)
    }

    /// `a & b`
    pub fn and(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        let width = self.width(a);
        self.simplified(width, Node::And(a, b), |terms| terms.and_of(width, a, b))
    }

    fn and_of(&mut self, width: u32, a: Term, b: Term) -> Term {
        if a == b {
            return a;
        }
        if self.is_complement(a, b) {
            return self.constant(width, 0);
        }
        if let Some(mask) = self.value(b) {
            if mask | self.facts(a).zeros == ones(width) {
                return a;
            }
            if let Some(runs) = runs(mask, width) {
                let zero = self.constant(width, 0);
                let parts: Vec<_> = runs
                    .into_iter()
                    .map(|(low, bits, set)| (low, bits, if set { a } else { zero }))
                    .collect();
                return self.spliced(width, &parts);
            }
        }
        self.intern(width, Node::And(a, b))
    }

    /// `a | b`
    pub fn or(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        let width = self.width(a);
        self.simplified(width, Node::Or(a, b), |terms| terms.or_of(width, a, b))
    }

    fn or_of(&mut self, width: u32, a: Term, b: Term) -> Term {
        if a == b {
            return a;
        }
        if self.is_complement(a, b) {
            return self.constant(width, u64::MAX);
        }
        if let Some(joined) = self.disjoint(a, b) {
            return joined;
        }
        if let Some(mask) = self.value(b)
            && let Some(runs) = runs(mask, width)
        {
            let parts: Vec<_> =
                runs.into_iter().map(|(low, bits, set)| (low, bits, if set { b } else { a })).collect();
            return self.spliced(width, &parts);
        }
        self.intern(width, Node::Or(a, b))
    }

    /// `a ^ b`
    pub fn xor(&mut self, a: Term, b: Term) -> Term {
        let (a, b) = self.ordered(a, b);
        let width = self.width(a);
        self.simplified(width, Node::Xor(a, b), |terms| terms.xor_of(width, a, b))
    }

    fn xor_of(&mut self, width: u32, a: Term, b: Term) -> Term {
        if a == b {
            return self.constant(width, 0);
        }
        if self.is_complement(a, b) {
            return self.constant(width, u64::MAX);
        }
        if let Some(mask) = self.value(b) {
            if let Node::Xor(inner, other) = self.node(a)
                && let Some(before) = self.value(other)
            {
                let both = self.constant(width, before ^ mask);
                return self.xor(inner, both);
            }
            if let Some(runs) = runs(mask, width) {
                let inverted = if mask == 0 { a } else { self.inverted(a, width) };
                let parts: Vec<_> = runs
                    .into_iter()
                    .map(|(low, bits, set)| (low, bits, if set { inverted } else { a }))
                    .collect();
                return self.spliced(width, &parts);
            }
        }
        if let Some(joined) = self.disjoint(a, b) {
            return joined;
        }
        self.intern(width, Node::Xor(a, b))
    }

    fn inverted(&mut self, a: Term, width: u32) -> Term {
        match self.node(a) {
            // Not through `not`, which would split what is spliced anyway.
            Node::Const(value) => self.constant(width, !value),
            Node::Not(a) => a,
            _ => self.intern(width, Node::Not(a)),
        }
    }

    /// Two terms of which one is 0 wherever the other may be 1, put together: sum, or and exclusive or are the same for them.
    pub(super) fn disjoint(&mut self, a: Term, b: Term) -> Option<Term> {
        let width = self.width(a);
        let (of_a, of_b) = (self.facts(a), self.facts(b));
        if of_a.zeros | of_b.zeros != ones(width) {
            return None;
        }
        if of_b.zeros == ones(width) {
            return Some(a);
        }
        if of_a.zeros == ones(width) {
            return Some(b);
        }
        let parts: Vec<_> = runs(of_b.zeros, width)?
            .into_iter()
            .map(|(low, bits, is_zero)| (low, bits, if is_zero { a } else { b }))
            .collect();
        Some(self.spliced(width, &parts))
    }

    /// `a` if the condition holds, else `b`.
    pub fn ite(&mut self, condition: Term, a: Term, b: Term) -> Term {
        if a == b {
            return a;
        }
        match self.node(condition) {
            Node::Const(1) => return a,
            Node::Const(_) => return b,
            Node::Not(inner) => return self.ite(inner, b, a),
            _ => {}
        }
        let width = self.width(a);
        self.simplified(width, Node::Ite(condition, a, b), |terms| terms.choice_of(width, condition, a, b))
    }

    fn choice_of(&mut self, width: u32, condition: Term, a: Term, b: Term) -> Term {
        if width == 1 {
            match (self.value(a), self.value(b)) {
                (Some(1), _) => return self.or(condition, b),
                (Some(_), _) => {
                    let not = self.not(condition);
                    return self.and(not, b);
                }
                (_, Some(1)) => {
                    let not = self.not(condition);
                    return self.or(not, a);
                }
                (_, Some(_)) => return self.and(condition, a),
                _ => {}
            }
        }
        self.intern(width, Node::Ite(condition, a, b))
    }

    /// Whether all of some conditions hold.
    pub fn all(&mut self, conditions: impl IntoIterator<Item = Term>) -> Term {
        let start = self.bool(true);
        conditions.into_iter().fold(start, |all, condition| self.and(all, condition))
    }
}
