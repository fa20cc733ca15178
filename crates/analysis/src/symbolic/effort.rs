//! How much is spent on one question. Hard ones wait until the others are answered, and are asked again with more, until the time is over.

use crate::solver::Term;

use crate::symbolic::explorer::{Explorer, PATIENCE};
use crate::symbolic::flow::FAR;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::state::State;

/// Factor by which the effort grows.
const GROWTH: u64 = 4;

impl Explorer<'_> {
    /// Most conflicts of a question now.
    pub(crate) fn conflicts(&self) -> u64 {
        self.options.conflicts.saturating_mul(self.effort)
    }

    /// Keeps a path at an instruction where the solver gave up, until the others are followed.
    pub(crate) fn put_off(&mut self, state: &State) {
        if self.hard.len() >= self.options.paths {
            return self.give_up(state, GiveUp::Paths);
        }
        let mut state = state.clone();
        state.assignment.forget();
        self.hard.push(state);
    }

    /// The same for a path whose last condition was not checked.
    pub(crate) fn put_off_unchecked(&mut self, state: &State, condition: Term) {
        let mut state = state.clone();
        state.path.push(condition);
        state.pending = true;
        self.put_off(&state);
    }

    /// Gives questions more from now on.
    pub(crate) fn raise_effort(&mut self) {
        self.effort = self.effort.saturating_mul(GROWTH);
        let factor = u32::try_from(self.effort).unwrap_or(u32::MAX);
        self.solver.set_limits(Some(self.conflicts()), Some(PATIENCE.saturating_mul(factor)));
    }

    /// Takes up the paths that wait for a greater effort.
    pub(crate) fn take_up_hard(&mut self) {
        self.raise_effort();
        for state in std::mem::take(&mut self.hard) {
            if self.twin.is_some() {
                self.wait(state);
            } else if self.distance(&state) != FAR {
                self.queue.push(state);
            }
        }
    }
}
