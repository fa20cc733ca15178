//! Paths that meet goals, and their inputs.

use std::rc::Rc;

use crate::solver::{Answer, Term};
use paceline_frame::Verdict;
use paceline_isa::Reg;
use paceline_spec::Meaning;

use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::{GiveUp, Place};
use crate::symbolic::goal::{Call, CallResult, Fate, Goal, Goals, Meets};
use crate::symbolic::state::{Assignment, Called, State};
use crate::symbolic::value::Value;

impl Explorer<'_> {
    /// Notes that a path meets a goal, and makes an input of it if that was looked for.
    pub(crate) fn reach(&mut self, state: &State, goal: Goal) {
        if !self.open.contains(&goal) {
            return;
        }
        match self.input(state) {
            Ok(input) => {
                self.open.remove(&goal);
                self.fates.insert(goal, Fate::Reached(Box::new(input)));
                self.vary(state, goal);
                if !self.open.iter().any(|other| other.slot() == goal.slot()) {
                    self.aim();
                }
            }
            Err(why) => self.miss(goal, why),
        }
    }

    fn vary(&mut self, state: &State, goal: Goal) {
        if let Some(input) = self.varied_input(state) {
            self.varied.insert(goal, input);
        }
    }

    /// A path meets a goal, but has no input: others are tried, a few times. The path itself goes on.
    fn miss(&mut self, goal: Goal, why: GiveUp) {
        const TRIALS: u32 = 20;
        let (trials, place) = self.misses.entry(goal).or_insert((0, Place { slot: goal.slot(), why }));
        *trials += 1;
        if *trials == TRIALS {
            self.open.remove(&goal);
            self.fates.insert(goal, Fate::GivenUp(place.clone()));
            self.aim();
        }
    }

    /// Notes that a path has ended at its slot, and makes an input of it if paths are looked for.
    pub(crate) fn end(&mut self, state: &State) {
        let Goals::Paths(most) = self.options.goals else { return };
        let path = (state.sides(), state.calls());
        if let Some(&goal) = self.found.get(&path) {
            return self.boundary_of_path(state, goal);
        }
        if self.found.len() >= most as usize {
            return;
        }
        match self.input(state) {
            Ok(input) => {
                let goal = Goal::Path { number: self.found.len() as u32, slot: state.slot };
                self.found.insert(path, goal);
                self.fates.insert(goal, Fate::Reached(Box::new(input)));
                self.vary(state, goal);
                self.boundary_of_path(state, goal);
            }
            Err(why) => self.leave(state, why),
        }
    }

    /// Notes what a helper call at a slot leads to, if paths are looked for.
    pub(crate) fn called(&self, state: &mut State, slot: usize, result: CallResult) {
        if matches!(self.options.goals, Goals::Paths(_)) {
            let before = state.called.take();
            state.called = Some(Rc::new(Called { call: Call { slot, result }, before }));
        }
    }

    /// What a value is that a helper call returns.
    pub(crate) fn result_of(&self, value: Value) -> CallResult {
        match value {
            Value::Number(number) => self.terms.value(number).map_or(CallResult::Other, CallResult::Number),
            Value::Pointer(_) => CallResult::Address,
            _ => CallResult::Other,
        }
    }

    /// Notes what the map operation at a state's slot meets.
    pub(crate) fn met(&mut self, state: &State, meets: Meets) {
        self.reach(state, Goal::Operation { slot: state.slot, meets });
    }

    /// Looks for the verdicts that the program may return at a state's slot.
    pub(crate) fn returns(&mut self, state: &State) -> Result<(), GiveUp> {
        let wanted = |goal: &Goal| matches!(goal, Goal::Return { slot, .. } if *slot == state.slot);
        let wanted: Vec<_> = self.open.iter().copied().filter(wanted).collect();
        for goal in wanted {
            let Goal::Return { verdict, .. } = goal else { continue };
            let number = self.number(state, Reg::R0)?;
            let condition = self.stands_for(number, verdict);
            match self.ask(&state.path, &state.assignment.model, condition) {
                Answer::Sat(model) => {
                    let mut other = state.clone();
                    other.path.push(condition);
                    other.assignment = Assignment::new(model);
                    self.reach(&other, goal);
                }
                Answer::Unsat => {}
                Answer::Unknown(unknown) => self.leave(state, GiveUp::Solver(unknown)),
            }
        }
        Ok(())
    }

    /// Whether a returned number stands for a verdict. Of numbers of bytes to keep, 0 drops the packet.
    pub(crate) fn stands_for(&mut self, number: Term, verdict: Verdict) -> Term {
        let low = self.terms.extract(number, 0, 32);
        let is = |explorer: &mut Self, value: u32| {
            let value = explorer.terms.constant(32, u64::from(value));
            explorer.terms.eq(low, value)
        };
        match self.verified.program().kind.rules().meaning {
            Meaning::BytesKept => {
                let none = is(self, 0);
                match verdict {
                    Verdict::Drop => none,
                    Verdict::Pass => self.terms.not(none),
                    _ => self.terms.bool(false),
                }
            }
            Meaning::Action(actions) => {
                let mut stands = self.terms.bool(actions.other == verdict);
                for action in actions.list {
                    let this = is(self, action.value);
                    let value = self.terms.bool(action.verdict == verdict);
                    stands = self.terms.ite(this, value, stands);
                }
                stands
            }
            // Numbers that are no verdict are those of a failure.
            Meaning::Verdict if verdict == Verdict::Aborted => {
                let last = self.terms.constant(32, Verdict::Redirect as u64);
                let is_beyond = self.terms.ult(last, low);
                let zero = is(self, 0);
                self.terms.or(is_beyond, zero)
            }
            Meaning::Verdict => is(self, verdict as u32),
        }
    }
}
