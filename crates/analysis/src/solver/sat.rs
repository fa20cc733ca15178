//! What the solver needs of a SAT solver.

use std::time::Instant;

/// A literal: a variable of the SAT solver, or its negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lit(u32);

impl Lit {
    /// The positive literal of a variable.
    #[must_use]
    pub const fn positive(variable: u32) -> Self {
        Self(variable << 1)
    }

    /// The number of its variable.
    #[must_use]
    pub const fn variable(self) -> u32 {
        self.0 >> 1
    }

    /// Whether it is negated.
    #[must_use]
    pub const fn is_negative(self) -> bool {
        self.0 & 1 == 1
    }

    /// The literal, negated if `negate` is set.
    #[must_use]
    pub const fn negated_if(self, negate: bool) -> Self {
        Self(self.0 ^ negate as u32)
    }
}

impl std::ops::Not for Lit {
    type Output = Self;
    fn not(self) -> Self {
        Self(self.0 ^ 1)
    }
}

/// The result of a SAT solver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// There is a model.
    Sat,
    /// There is none under the assumptions.
    Unsat,
    /// A limit was reached.
    Stopped,
}

/// An incremental SAT solver.
pub trait Sat: Default {
    /// A new variable.
    fn variable(&mut self) -> Lit;
    /// Adds a clause: one of the literals holds.
    fn clause(&mut self, literals: &[Lit]);
    /// Looks for a model in which all assumptions hold, until so many conflicts were met or the time is over.
    fn solve(&mut self, assumptions: &[Lit], conflicts: u64, until: Option<Instant>) -> Outcome;
    /// Whether a literal holds in the last model.
    fn holds(&self, literal: Lit) -> bool;
    /// Assumptions that cannot hold together, after there was no model.
    fn core(&self) -> Vec<Lit>;
}
