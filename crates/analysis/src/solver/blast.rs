//! Terms as clauses: a literal for each bit (Tseitin's encoding). Gates are kept once.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use foldhash::fast::FixedState;

use crate::solver::node::{Node, Term, Var};
use crate::solver::sat::{Lit, Sat};
use crate::solver::terms::Terms;

/// The bits of a term, from the lowest.
type Bits = Rc<[Lit]>;

/// How often the clock is read: once in so many terms.
const TERMS: usize = 16;

/// Translates terms to clauses of a SAT solver.
#[derive(Debug)]
pub(crate) struct Blaster<S> {
    pub(crate) sat: S,
    truth: Lit,
    bits: HashMap<Term, Bits, FixedState>,
    ands: HashMap<(Lit, Lit), Lit, FixedState>,
    xors: HashMap<(Lit, Lit), Lit, FixedState>,
    variables: usize,
    vars: HashMap<Var, Bits, FixedState>,
}

impl<S: Sat> Default for Blaster<S> {
    fn default() -> Self {
        let mut sat = S::default();
        let truth = sat.variable();
        sat.clause(&[truth]);
        Self {
            sat,
            truth,
            bits: HashMap::default(),
            ands: HashMap::default(),
            xors: HashMap::default(),
            variables: 1,
            vars: HashMap::default(),
        }
    }
}

impl<S: Sat> Blaster<S> {
    /// Number of variables of the SAT solver.
    pub(crate) fn variables(&self) -> usize {
        self.variables
    }

    /// The literal of a condition; `None` if the time is over before it is translated.
    pub(crate) fn literal(&mut self, terms: &Terms, condition: Term, until: Option<Instant>) -> Option<Lit> {
        Some(self.term(terms, condition, until)?[0])
    }

    /// The number of a variable in the last model, if it is in a clause.
    pub(crate) fn value(&self, var: Var) -> Option<u64> {
        let bits = self.vars.get(&var)?;
        Some(bits.iter().rev().fold(0, |value, bit| value << 1 | u64::from(self.sat.holds(*bit))))
    }

    fn term(&mut self, terms: &Terms, term: Term, until: Option<Instant>) -> Option<Bits> {
        if let Some(bits) = self.bits.get(&term) {
            return Some(Rc::clone(bits));
        }
        let cone = terms.cone_without(&[term], |term| self.bits.contains_key(&term));
        for (term, number) in cone.into_iter().zip(1..) {
            let reads_clock = usize::is_multiple_of(number, TERMS);
            if reads_clock && until.is_some_and(|until| Instant::now() >= until) {
                return None;
            }
            let bits: Bits = self.node(terms, term).into();
            if let Node::Var(var) = terms.node(term) {
                self.vars.insert(var, Rc::clone(&bits));
            }
            self.bits.insert(term, bits);
        }
        Some(Rc::clone(&self.bits[&term]))
    }

    fn node(&mut self, terms: &Terms, term: Term) -> Vec<Lit> {
        let width = terms.width(term);
        let of = |blaster: &Self, term: Term| Rc::clone(&blaster.bits[&term]);
        match terms.node(term) {
            Node::Const(value) => (0..width).map(|bit| self.constant(value >> bit & 1 == 1)).collect(),
            Node::Var(_) => (0..width).map(|_| self.variable()).collect(),
            Node::Not(a) => of(self, a).iter().map(|bit| !*bit).collect(),
            Node::Add(a, b) => {
                let carry = self.constant(false);
                self.sum(&of(self, a), &of(self, b), carry)
            }
            Node::Sub(a, b) => self.difference(&of(self, a), &of(self, b)).0,
            Node::Mul(a, b) => self.product(&of(self, a), &of(self, b)),
            Node::Udiv(a, b) => self.division(&of(self, a), &of(self, b)).0,
            Node::Urem(a, b) => self.division(&of(self, a), &of(self, b)).1,
            Node::And(a, b) => self.zip(&of(self, a), &of(self, b), Self::and),
            Node::Or(a, b) => self.zip(&of(self, a), &of(self, b), Self::or),
            Node::Xor(a, b) => self.zip(&of(self, a), &of(self, b), Self::xor),
            Node::Shl(a, count) => {
                let (bits, count) = (of(self, a), of(self, count));
                let zero = self.constant(false);
                let reversed: Vec<_> = bits.iter().rev().copied().collect();
                let mut shifted = self.shift(&reversed, &count, zero);
                shifted.reverse();
                shifted
            }
            Node::Lshr(a, count) => {
                let zero = self.constant(false);
                self.shift(&of(self, a), &of(self, count), zero)
            }
            Node::Ashr(a, count) => {
                let bits = of(self, a);
                let sign = bits[bits.len() - 1];
                self.shift(&bits, &of(self, count), sign)
            }
            Node::Concat(high, low) => of(self, low).iter().chain(of(self, high).iter()).copied().collect(),
            Node::Extract(a, low) => {
                of(self, a).iter().skip(usize::from(low)).take(width as usize).copied().collect()
            }
            Node::Eq(a, b) => vec![self.equal(&of(self, a), &of(self, b))],
            Node::Ult(a, b) => vec![self.difference(&of(self, a), &of(self, b)).1],
            Node::Ite(condition, a, b) => {
                let condition = of(self, condition)[0];
                let (a, b) = (of(self, a), of(self, b));
                a.iter().zip(b.iter()).map(|(a, b)| self.choice(condition, *a, *b)).collect()
            }
        }
    }

    fn variable(&mut self) -> Lit {
        self.variables += 1;
        self.sat.variable()
    }

    fn constant(&self, value: bool) -> Lit {
        self.truth.negated_if(!value)
    }

    fn zip(&mut self, a: &[Lit], b: &[Lit], gate: fn(&mut Self, Lit, Lit) -> Lit) -> Vec<Lit> {
        a.iter().zip(b).map(|(a, b)| gate(self, *a, *b)).collect()
    }

    fn and(&mut self, a: Lit, b: Lit) -> Lit {
        let (a, b) = (a.min(b), a.max(b));
        let (yes, no) = (self.truth, !self.truth);
        if a == no || b == no || a == !b {
            return no;
        }
        if a == yes || a == b {
            return b;
        }
        if b == yes {
            return a;
        }
        if let Some(&gate) = self.ands.get(&(a, b)) {
            return gate;
        }
        let gate = self.variable();
        self.sat.clause(&[!gate, a]);
        self.sat.clause(&[!gate, b]);
        self.sat.clause(&[gate, !a, !b]);
        self.ands.insert((a, b), gate);
        gate
    }

    fn or(&mut self, a: Lit, b: Lit) -> Lit {
        !self.and(!a, !b)
    }

    fn xor(&mut self, a: Lit, b: Lit) -> Lit {
        let (yes, no) = (self.truth, !self.truth);
        // Signs go outside.
        let negate = a.is_negative() != b.is_negative();
        let (a, b) = (a.negated_if(a.is_negative()), b.negated_if(b.is_negative()));
        let (a, b) = (a.min(b), a.max(b));
        let inner = if a == b {
            no
        } else if a == yes {
            !b
        } else if b == yes {
            !a
        } else if let Some(&gate) = self.xors.get(&(a, b)) {
            gate
        } else {
            let gate = self.variable();
            self.sat.clause(&[!gate, a, b]);
            self.sat.clause(&[!gate, !a, !b]);
            self.sat.clause(&[gate, !a, b]);
            self.sat.clause(&[gate, a, !b]);
            self.xors.insert((a, b), gate);
            gate
        };
        inner.negated_if(negate)
    }

    fn choice(&mut self, condition: Lit, a: Lit, b: Lit) -> Lit {
        if a == b {
            return a;
        }
        if a == !b {
            return !self.xor(condition, a);
        }
        let (a, b) = (self.and(condition, a), self.and(!condition, b));
        self.or(a, b)
    }

    fn majority(&mut self, a: Lit, b: Lit, c: Lit) -> Lit {
        let both = self.and(a, b);
        let one = self.or(a, b);
        let with = self.and(one, c);
        self.or(both, with)
    }

    fn sum(&mut self, a: &[Lit], b: &[Lit], mut carry: Lit) -> Vec<Lit> {
        let mut sum = Vec::with_capacity(a.len());
        for (&a, &b) in a.iter().zip(b) {
            let half = self.xor(a, b);
            sum.push(self.xor(half, carry));
            carry = self.majority(a, b, carry);
        }
        sum
    }

    /// The difference, and whether it borrows: whether `a` is less than `b`.
    fn difference(&mut self, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Lit) {
        let mut borrow = self.constant(false);
        let mut difference = Vec::with_capacity(a.len());
        for (&a, &b) in a.iter().zip(b) {
            let half = self.xor(a, b);
            difference.push(self.xor(half, borrow));
            borrow = self.majority(!a, b, borrow);
        }
        (difference, borrow)
    }

    fn product(&mut self, a: &[Lit], b: &[Lit]) -> Vec<Lit> {
        let zero = self.constant(false);
        let mut product = vec![zero; a.len()];
        for (shift, &bit) in b.iter().enumerate() {
            if bit == zero {
                continue;
            }
            let part: Vec<_> = a[..a.len() - shift].iter().map(|a| self.and(*a, bit)).collect();
            let sum = self.sum(&product[shift..], &part, zero);
            product[shift..].copy_from_slice(&sum);
        }
        product
    }

    /// Quotient and remainder, as by hand: a divisor of zero gives all ones and the dividend.
    fn division(&mut self, a: &[Lit], b: &[Lit]) -> (Vec<Lit>, Vec<Lit>) {
        let zero = self.constant(false);
        let width = a.len();
        let mut remainder = vec![zero; width + 1];
        let mut divisor = b.to_vec();
        divisor.push(zero);
        let mut quotient = vec![zero; width];
        for bit in (0..width).rev() {
            remainder.insert(0, a[bit]);
            remainder.pop();
            let (difference, is_less) = self.difference(&remainder, &divisor);
            quotient[bit] = !is_less;
            remainder =
                remainder.iter().zip(&difference).map(|(r, d)| self.choice(is_less, *r, *d)).collect();
        }
        remainder.pop();
        (quotient, remainder)
    }

    /// A right shift by stages; `fill` comes in from above.
    fn shift(&mut self, bits: &[Lit], count: &[Lit], fill: Lit) -> Vec<Lit> {
        let width = bits.len();
        let mut shifted = bits.to_vec();
        let mut too_far = self.constant(false);
        for (stage, &bit) in count.iter().enumerate() {
            let distance = 1_usize.checked_shl(stage as u32).filter(|distance| *distance < width);
            let Some(distance) = distance else {
                too_far = self.or(too_far, bit);
                continue;
            };
            shifted = (0..width)
                .map(|index| {
                    let from = shifted.get(index + distance).copied().unwrap_or(fill);
                    self.choice(bit, from, shifted[index])
                })
                .collect();
        }
        shifted.into_iter().map(|bit| self.choice(too_far, fill, bit)).collect()
    }

    fn equal(&mut self, a: &[Lit], b: &[Lit]) -> Lit {
        let start = self.constant(true);
        a.iter().zip(b).fold(start, |all, (a, b)| {
            let differ = self.xor(*a, *b);
            self.and(all, !differ)
        })
    }
}
