//! The pool of terms: each is kept once.

use std::collections::HashMap;
use std::rc::Rc;

use foldhash::fast::FixedState;

use crate::solver::bits::ones;
use crate::solver::facts::Facts;
use crate::solver::node::{Node, Term, Var};

/// Most simplifications within each other: what is deeper stays as it is, so that long chains of operations need no deep stack.
const DEEPEST: u32 = 100;

/// Most simplifications for one operation, since a part of a term may be a part of all that the term is made of.
const MOST_STEPS: u32 = 1000;

/// Most variables in the supports that are kept: some dozens of megabytes. Then all of them are forgotten.
const MOST_SUPPORTS: usize = 8_000_000;

#[derive(Clone, Debug)]
struct Entry {
    node: Node,
    width: u8,
    facts: Facts,
}

/// A pool of terms. Operands come before the terms that they are in.
#[derive(Clone, Debug, Default)]
pub struct Terms {
    entries: Vec<Entry>,
    /// The terms of nodes, also of those that were simplified to others.
    index: HashMap<(u8, Node), Term, FixedState>,
    /// Simplifications that are under way.
    depth: u32,
    /// Simplifications since the outermost one began.
    steps: u32,
    vars: Vec<Term>,
    supports: HashMap<Term, Rc<[Var]>, FixedState>,
    /// Variables in `supports`.
    size_of_supports: usize,
}

impl Terms {
    /// An empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of terms.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// What a term is made of.
    #[must_use]
    pub fn node(&self, term: Term) -> Node {
        self.entries[term.0 as usize].node
    }

    /// Bits of a term, 1 to 64.
    #[must_use]
    pub fn width(&self, term: Term) -> u32 {
        u32::from(self.entries[term.0 as usize].width)
    }

    /// The number that a term is, if it is a constant.
    #[must_use]
    pub fn value(&self, term: Term) -> Option<u64> {
        match self.node(term) {
            Node::Const(value) => Some(value),
            _ => None,
        }
    }

    /// Least and greatest number that a term can be, as far as its form tells.
    #[must_use]
    pub fn range(&self, term: Term) -> (u64, u64) {
        let facts = self.facts(term);
        (facts.min, facts.max)
    }

    pub(crate) fn facts(&self, term: Term) -> Facts {
        self.entries[term.0 as usize].facts
    }

    /// A new variable of 1 to 64 bits.
    pub fn var(&mut self, width: u32) -> Term {
        let var = Var(self.vars.len() as u32);
        let term = self.intern(width, Node::Var(var));
        self.vars.push(term);
        term
    }

    /// The term of a variable.
    #[must_use]
    pub fn of_var(&self, var: Var) -> Term {
        self.vars[var.number()]
    }

    /// A number; bits above the width are dropped.
    pub fn constant(&mut self, width: u32, value: u64) -> Term {
        self.intern(width, Node::Const(value & ones(width)))
    }

    /// The condition that always holds, or never.
    pub fn bool(&mut self, value: bool) -> Term {
        self.constant(1, u64::from(value))
    }

    /// The term of a node, which is new if there is none; a constant if its facts leave only one number.
    pub(crate) fn intern(&mut self, width: u32, node: Node) -> Term {
        debug_assert!((1..=64).contains(&width));
        let key = (width as u8, node);
        if let Some(&term) = self.index.get(&key) {
            return term;
        }
        let facts = Facts::of(width, node, |term| (self.facts(term), self.width(term)));
        if facts.min == facts.max && !matches!(node, Node::Const(_)) {
            let term = self.constant(width, facts.min);
            self.index.insert(key, term);
            return term;
        }
        let term = Term(self.entries.len() as u32);
        self.entries.push(Entry { node, width: width as u8, facts });
        self.index.insert(key, term);
        term
    }

    /// The term of a node that `simplify` makes, once for each node: operands are shared, and would be simplified again and again.
    pub(crate) fn simplified(
        &mut self,
        width: u32,
        node: Node,
        simplify: impl FnOnce(&mut Self) -> Term,
    ) -> Term {
        if let Some(&term) = self.index.get(&(width as u8, node)) {
            return term;
        }
        if self.depth == 0 {
            self.steps = 0;
        }
        if self.depth == DEEPEST || self.steps == MOST_STEPS {
            return self.intern(width, node);
        }
        self.steps += 1;
        self.depth += 1;
        let term = simplify(self);
        self.depth -= 1;
        self.index.insert((width as u8, node), term);
        term
    }

    /// The variables in a term, by rising number.
    pub fn support(&mut self, term: Term) -> Rc<[Var]> {
        if let Some(known) = self.supports.get(&term) {
            return Rc::clone(known);
        }
        let mut vars: Vec<_> = self.cone(&[term]).into_iter().filter_map(|term| self.as_var(term)).collect();
        vars.sort_unstable();
        let vars: Rc<[Var]> = vars.into();
        self.size_of_supports += vars.len();
        if self.size_of_supports > MOST_SUPPORTS {
            self.supports = HashMap::default();
            self.size_of_supports = vars.len();
        }
        self.supports.insert(term, Rc::clone(&vars));
        vars
    }

    fn as_var(&self, term: Term) -> Option<Var> {
        match self.node(term) {
            Node::Var(var) => Some(var),
            _ => None,
        }
    }

    /// The terms and all that they are made of, operands first.
    pub(crate) fn cone(&self, roots: &[Term]) -> Vec<Term> {
        self.cone_without(roots, |_| false)
    }

    /// The same, without those that are known already and what they are made of.
    pub(crate) fn cone_without(&self, roots: &[Term], is_known: impl Fn(Term) -> bool) -> Vec<Term> {
        let mut seen = std::collections::HashSet::with_hasher(FixedState::default());
        let mut open: Vec<_> = roots.iter().copied().filter(|term| !is_known(*term)).collect();
        while let Some(term) = open.pop() {
            if seen.insert(term) {
                open.extend(self.node(term).operands().filter(|term| !is_known(*term)));
            }
        }
        let mut cone: Vec<_> = seen.into_iter().collect();
        cone.sort_unstable();
        cone
    }
}
