//! Terms under an assignment of numbers to variables.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::solver::bits::ones;
use crate::solver::node::{Node, Term, Var};
use crate::solver::terms::Terms;

/// An assignment of numbers to variables; 0 for those that it does not name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    values: Vec<u64>,
}

impl Model {
    /// The number of a variable.
    #[must_use]
    pub fn get(&self, var: Var) -> u64 {
        self.values.get(var.number()).copied().unwrap_or(0)
    }

    /// Sets the number of a variable.
    pub fn set(&mut self, var: Var, value: u64) {
        if self.values.len() <= var.number() {
            self.values.resize(var.number() + 1, 0);
        }
        self.values[var.number()] = value;
    }
}

/// Evaluates terms under one model, and keeps what it evaluated.
#[derive(Clone, Debug, Default)]
pub struct Evaluator {
    values: HashMap<Term, u64, FixedState>,
}

impl Evaluator {
    /// The number that a term is under a model, which must be the same at each call.
    pub fn value(&mut self, terms: &Terms, model: &Model, term: Term) -> u64 {
        if let Some(&value) = self.values.get(&term) {
            return value;
        }
        for term in terms.cone_without(&[term], |term| self.values.contains_key(&term)) {
            let value = self.step(terms, model, term);
            self.values.insert(term, value);
        }
        self.of(term)
    }

    /// Whether a condition holds under a model.
    pub fn holds(&mut self, terms: &Terms, model: &Model, condition: Term) -> bool {
        self.value(terms, model, condition) == 1
    }

    fn of(&self, term: Term) -> u64 {
        self.values.get(&term).copied().unwrap_or(0)
    }

    fn step(&self, terms: &Terms, model: &Model, term: Term) -> u64 {
        let width = terms.width(term);
        if let Node::Var(var) = terms.node(term) {
            return model.get(var) & ones(width);
        }
        apply(terms.node(term), width, |term| (self.of(term), terms.width(term)))
    }
}

impl Terms {
    /// The number that a term is under a model.
    #[must_use]
    pub fn evaluate(&self, model: &Model, term: Term) -> u64 {
        Evaluator::default().value(self, model, term)
    }
}

/// The number of a node, from the numbers and widths of its operands; 0 for variables.
pub(crate) fn apply(node: Node, width: u32, of: impl Fn(Term) -> (u64, u32)) -> u64 {
    let value = |term: Term| of(term).0;
    let shift = |count: u64| u32::try_from(count).ok().filter(|count| *count < width);
    let result = match node {
        Node::Const(value) => value,
        Node::Var(_) => 0,
        Node::Not(a) => !value(a),
        Node::Add(a, b) => value(a).wrapping_add(value(b)),
        Node::Sub(a, b) => value(a).wrapping_sub(value(b)),
        Node::Mul(a, b) => value(a).wrapping_mul(value(b)),
        Node::Udiv(a, b) => value(a).checked_div(value(b)).unwrap_or(u64::MAX),
        Node::Urem(a, b) => value(a).checked_rem(value(b)).unwrap_or(value(a)),
        Node::And(a, b) => value(a) & value(b),
        Node::Or(a, b) => value(a) | value(b),
        Node::Xor(a, b) => value(a) ^ value(b),
        Node::Shl(a, b) => shift(value(b)).map_or(0, |count| value(a) << count),
        Node::Lshr(a, b) => shift(value(b)).map_or(0, |count| value(a) >> count),
        Node::Ashr(a, b) => {
            // The sign goes to the top of the word and back.
            let unused = 64 - width;
            let signed = (value(a) << unused).cast_signed() >> unused;
            (signed >> shift(value(b)).unwrap_or(63)).cast_unsigned()
        }
        Node::Concat(high, low) => {
            let (low, shift) = of(low);
            value(high) << shift | low
        }
        Node::Extract(a, low) => value(a) >> low,
        Node::Eq(a, b) => u64::from(value(a) == value(b)),
        Node::Ult(a, b) => u64::from(value(a) < value(b)),
        Node::Ite(condition, a, b) => value(if value(condition) == 1 { a } else { b }),
    };
    result & ones(width)
}
