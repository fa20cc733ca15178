//! The SAT solver batsat behind [`Sat`].

use std::cell::Cell;
use std::time::Instant;

use batsat::clause::Kind;
use batsat::{Callbacks, Lit as Literal, Solver, SolverInterface, SolverOpts, Var, lbool};

use crate::solver::sat::{Lit, Outcome, Sat};

/// How often the clock is read: once in so many decisions.
const DECISIONS: u32 = 256;

/// Ends a search at a limit. Conflicts are counted by the clauses that they teach.
#[derive(Debug, Default)]
struct Limits {
    conflicts: Cell<u64>,
    until: Cell<Option<Instant>>,
    decisions: Cell<u32>,
    is_over: Cell<bool>,
}

impl Callbacks for Limits {
    fn on_new_clause(&mut self, _: &[Literal], kind: Kind) {
        if kind == Kind::Learnt {
            self.conflicts.set(self.conflicts.get().saturating_sub(1));
        }
    }

    fn stop(&self) -> bool {
        let decisions = self.decisions.get().wrapping_add(1);
        self.decisions.set(decisions);
        if decisions.is_multiple_of(DECISIONS)
            && self.until.get().is_some_and(|until| Instant::now() >= until)
        {
            self.is_over.set(true);
        }
        self.is_over.get() || self.conflicts.get() == 0
    }
}

/// batsat, a SAT solver in Rust: MiniSat's search, the same for the same clauses.
pub struct Batsat {
    solver: Solver<Limits>,
    clause: Vec<Literal>,
    assumptions: Vec<Lit>,
}

impl Default for Batsat {
    fn default() -> Self {
        Self {
            solver: Solver::new(SolverOpts::default(), Limits::default()),
            clause: Vec::new(),
            assumptions: Vec::new(),
        }
    }
}

impl std::fmt::Debug for Batsat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batsat").field("variables", &self.solver.num_vars()).finish_non_exhaustive()
    }
}

impl Batsat {
    fn literal(&mut self, literal: Lit) -> Literal {
        let variable = self.solver.var_of_int(literal.variable());
        Literal::new(variable, !literal.is_negative())
    }
}

impl Sat for Batsat {
    fn variable(&mut self) -> Lit {
        // It is tried as 0 first, which leaves bytes zero that nothing asks for.
        let variable: Var = self.solver.new_var_default();
        Lit::positive(variable.idx())
    }

    fn clause(&mut self, literals: &[Lit]) {
        let mut clause = std::mem::take(&mut self.clause);
        clause.clear();
        for &literal in literals {
            let literal = self.literal(literal);
            clause.push(literal);
        }
        self.solver.add_clause_reuse(&mut clause);
        self.clause = clause;
    }

    fn solve(&mut self, assumptions: &[Lit], conflicts: u64, until: Option<Instant>) -> Outcome {
        let assumed: Vec<_> = assumptions.iter().map(|literal| self.literal(*literal)).collect();
        self.assumptions = assumptions.to_vec();
        let limits = self.solver.cb_mut();
        *limits = Limits { conflicts: Cell::new(conflicts), until: Cell::new(until), ..Limits::default() };
        let result = self.solver.solve_limited(&assumed);
        if result == lbool::TRUE {
            Outcome::Sat
        } else if result == lbool::FALSE {
            Outcome::Unsat
        } else {
            Outcome::Stopped
        }
    }

    fn holds(&self, literal: Lit) -> bool {
        let variable = self.solver.get_model().get(literal.variable() as usize).copied();
        (variable == Some(lbool::TRUE)) != literal.is_negative()
    }

    fn core(&self) -> Vec<Lit> {
        // By the variables: the literals are those of the clause that the core is, negated.
        let is_in = |literal: &&Lit| {
            self.solver.unsat_core().iter().any(|core| core.var().idx() == literal.variable())
        };
        self.assumptions.iter().filter(is_in).copied().collect()
    }
}
