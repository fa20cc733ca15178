//! Parts of terms, terms put together, extensions, shifts.

use crate::solver::bits::ones;
use crate::solver::node::{Node, Term};
use crate::solver::terms::Terms;

impl Terms {
    /// The bits of `high` above those of `low`; at most 64 together.
    pub fn concat(&mut self, high: Term, low: Term) -> Term {
        let width = self.width(high) + self.width(low);
        self.simplified(width, Node::Concat(high, low), |terms| terms.chain_of(width, high, low))
    }

    fn chain_of(&mut self, width: u32, high: Term, low: Term) -> Term {
        if let Node::Concat(top, rest) = self.node(high) {
            let low = self.concat(rest, low);
            return self.concat(top, low);
        }
        let (next, rest) = match self.node(low) {
            Node::Concat(next, rest) => (next, Some(rest)),
            _ => (low, None),
        };
        if let Some(joined) = self.joined(high, next) {
            return match rest {
                Some(rest) => self.concat(joined, rest),
                None => joined,
            };
        }
        self.intern(width, Node::Concat(high, low))
    }

    /// Two neighbors as one part: constants, and parts of one term that follow each other.
    fn joined(&mut self, high: Term, low: Term) -> Option<Term> {
        let (high_width, low_width) = (self.width(high), self.width(low));
        match (self.node(high), self.node(low)) {
            (Node::Const(a), Node::Const(b)) => {
                Some(self.constant(high_width + low_width, a << low_width | b))
            }
            (Node::Extract(of, above), Node::Extract(same, start))
                if of == same && u32::from(above) == u32::from(start) + low_width =>
            {
                Some(self.extract(of, u32::from(start), high_width + low_width))
            }
            _ => None,
        }
    }

    /// `width` bits of a term, from bit `low` on.
    pub fn extract(&mut self, of: Term, low: u32, width: u32) -> Term {
        let full = self.width(of);
        debug_assert!(low + width <= full, "bits {low} to {} of {full}", low + width);
        if width == full {
            return of;
        }
        self.simplified(width, Node::Extract(of, low as u8), |terms| terms.part_of(of, low, width))
    }

    fn part_of(&mut self, of: Term, low: u32, width: u32) -> Term {
        match self.node(of) {
            Node::Const(value) => self.constant(width, value >> low),
            Node::Extract(inner, start) => self.extract(inner, low + u32::from(start), width),
            Node::Concat(high, rest) => {
                let split = self.width(rest);
                if low >= split {
                    return self.extract(high, low - split, width);
                }
                if low + width <= split {
                    return self.extract(rest, low, width);
                }
                let high = self.extract(high, 0, low + width - split);
                let rest = self.extract(rest, low, split - low);
                self.concat(high, rest)
            }
            Node::Not(a) => {
                let a = self.extract(a, low, width);
                self.not(a)
            }
            Node::And(a, b) => self.extract_both(a, b, low, width, Self::and),
            Node::Or(a, b) => self.extract_both(a, b, low, width, Self::or),
            Node::Xor(a, b) => self.extract_both(a, b, low, width, Self::xor),
            // Low bits of these depend on low bits only.
            Node::Add(a, b) if low == 0 => self.extract_both(a, b, low, width, Self::add),
            Node::Sub(a, b) if low == 0 => self.extract_both(a, b, low, width, Self::sub),
            Node::Mul(a, b) if low == 0 => self.extract_both(a, b, low, width, Self::mul),
            Node::Ite(condition, a, b) => {
                let (a, b) = (self.extract(a, low, width), self.extract(b, low, width));
                self.ite(condition, a, b)
            }
            _ => self.intern(width, Node::Extract(of, low as u8)),
        }
    }

    fn extract_both(
        &mut self,
        a: Term,
        b: Term,
        low: u32,
        width: u32,
        join: fn(&mut Self, Term, Term) -> Term,
    ) -> Term {
        let (a, b) = (self.extract(a, low, width), self.extract(b, low, width));
        join(self, a, b)
    }

    /// The term with zeros above, up to `width` bits; its low bits if it has more.
    pub fn resize(&mut self, of: Term, width: u32) -> Term {
        let full = self.width(of);
        if width <= full {
            return self.extract(of, 0, width);
        }
        let zeros = self.constant(width - full, 0);
        self.concat(zeros, of)
    }

    /// The term with copies of its highest bit above, up to `width` bits.
    pub fn sign_extend(&mut self, of: Term, width: u32) -> Term {
        let full = self.width(of);
        if width <= full {
            return self.extract(of, 0, width);
        }
        let copies = self.sign_bits(of, width - full);
        self.concat(copies, of)
    }

    /// `count` copies of the highest bit.
    fn sign_bits(&mut self, of: Term, count: u32) -> Term {
        let sign = self.extract(of, self.width(of) - 1, 1);
        let (set, clear) = (self.constant(count, u64::MAX), self.constant(count, 0));
        self.ite(sign, set, clear)
    }

    /// `a << count`.
    pub fn shl(&mut self, a: Term, count: Term) -> Term {
        let width = self.width(a);
        match self.value(count) {
            Some(0) => a,
            Some(count) if count >= u64::from(width) => self.constant(width, 0),
            Some(count) => {
                let kept = self.extract(a, 0, width - count as u32);
                let zeros = self.constant(count as u32, 0);
                self.concat(kept, zeros)
            }
            None => self.intern(width, Node::Shl(a, count)),
        }
    }

    /// `a >> count`, with zeros from above.
    pub fn lshr(&mut self, a: Term, count: Term) -> Term {
        let width = self.width(a);
        match self.value(count) {
            Some(0) => a,
            Some(count) if count >= u64::from(width) => self.constant(width, 0),
            Some(count) => {
                let kept = self.extract(a, count as u32, width - count as u32);
                self.resize(kept, width)
            }
            None => self.intern(width, Node::Lshr(a, count)),
        }
    }

    /// `a >> count`, with copies of the sign from above.
    pub fn ashr(&mut self, a: Term, count: Term) -> Term {
        let width = self.width(a);
        match self.value(count) {
            Some(0) => a,
            Some(count) => {
                let count = count.min(u64::from(width) - 1) as u32;
                let kept = self.extract(a, count, width - count);
                self.sign_extend(kept, width)
            }
            None => self.intern(width, Node::Ashr(a, count)),
        }
    }

    /// The bytes of a term in the opposite order; its width is a multiple of 8.
    pub fn swap_bytes(&mut self, a: Term) -> Term {
        let bytes = self.width(a) / 8;
        let mut swapped = self.extract(a, 0, 8);
        for byte in 1..bytes {
            let next = self.extract(a, byte * 8, 8);
            swapped = self.concat(swapped, next);
        }
        swapped
    }

    /// A term from its parts: for each run of bits, from the highest, a term whose bits there are taken.
    pub(crate) fn spliced(&mut self, width: u32, runs: &[(u32, u32, Term)]) -> Term {
        debug_assert_eq!(runs.iter().map(|(_, bits, _)| bits).sum::<u32>(), width);
        let mut result = None;
        for &(low, bits, of) in runs {
            let part = self.extract(of, low, bits);
            result = Some(match result {
                None => part,
                Some(high) => self.concat(high, part),
            });
        }
        result.unwrap_or_else(|| self.constant(width, 0))
    }
}

/// The runs of equal bits in the low `width` bits of a mask, from the highest: the first bit, how many, and their value. `None` if there
/// are more than a few.
pub(super) fn runs(mask: u64, width: u32) -> Option<Vec<(u32, u32, bool)>> {
    const MOST: usize = 8;
    let mut runs = Vec::new();
    let mut end = width;
    while end > 0 {
        if runs.len() == MOST {
            return None;
        }
        let set = mask >> (end - 1) & 1 == 1;
        let below = if set { mask } else { !mask } & ones(end);
        let bits = (below << (64 - end)).leading_ones().min(end);
        end -= bits;
        runs.push((end, bits, set));
    }
    Some(runs)
}
