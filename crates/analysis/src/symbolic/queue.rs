//! Paths that wait: which comes next, and those that are given up.

use crate::solver::Answer;
use crate::solver::Term;

use crate::symbolic::explorer::Explorer;
use crate::symbolic::flow::FAR;
use crate::symbolic::give_up::{GiveUp, Place};
use crate::symbolic::order::Order;
use crate::symbolic::state::{Assignment, State};
use crate::symbolic::waiting::turn;

/// Paths that are taken up from many places before others are followed one after the other, where all are followed.
const TRIED_BROADLY: u64 = 1000;

impl Explorer<'_> {
    /// The next path to follow: by turns the nearest to a goal, and the one whose place was visited least. Where all are followed, after some
    /// the newest first, so that few wait.
    pub(crate) fn pick(&mut self) -> Option<State> {
        if self.twin.is_some() {
            return self.next_in_order();
        }
        self.picks += 1;
        if self.follows_all() && self.picks > TRIED_BROADLY {
            return self.queue.pop();
        }
        let mut queue = std::mem::take(&mut self.queue);
        queue.retain(|state| self.distance(state) != FAR);
        self.queue = queue;
        let by_distance = !self.picks.is_multiple_of(4);
        let visits = |state: &State| self.taken_up.get(&state.slot).copied().unwrap_or(0);
        let rank = |(_, state): &(usize, &State)| match by_distance {
            true => {
                let distance = u64::from(self.distance(state));
                distance + u64::from(state.cost) * 4 + u64::from(visits(state)) * 2
            }
            false => u64::from(visits(state)) + u64::from(state.cost),
        };
        let (index, _) = self.queue.iter().enumerate().min_by_key(rank)?;
        let state = self.queue.swap_remove(index);
        *self.taken_up.entry(state.slot).or_default() += 1;
        Some(state)
    }

    /// Checks the condition of a path that was not checked yet.
    pub(crate) fn is_possible(&mut self, state: &mut State) -> bool {
        if !std::mem::take(&mut state.pending) {
            return true;
        }
        self.solver.tidy();
        let Some((&condition, others)) = state.path.split_last() else { return true };
        match self.ask(others, &state.assignment.model, condition) {
            Answer::Sat(model) => {
                state.assignment = Assignment::new(model);
                true
            }
            Answer::Unsat => false,
            Answer::Unknown(_) => {
                state.pending = true;
                self.put_off(state);
                false
            }
        }
    }

    /// Notes that nothing is known of what comes after a state. What is only hard to answer is asked again later.
    pub(crate) fn leave(&mut self, state: &State, why: GiveUp) {
        match why {
            GiveUp::Solver(_) if self.limit().is_none() => self.put_off(state),
            why => self.give_up(state, why),
        }
    }

    /// Notes that nothing becomes known of what comes after a state.
    pub(crate) fn give_up(&mut self, state: &State, why: GiveUp) {
        let place = Place { slot: state.slot, why };
        if let Some(twin) = &self.twin {
            let left = (state.first.is_some(), place);
            // A path may be one that no packet takes, if bytes at unknown places decide it.
            if !twin.left.contains(&left) && self.may_be_taken(state) {
                self.twin_mut(|twin| twin.left.push(left));
            }
            return;
        }
        if let Some(claim) = &mut self.claim {
            if !claim.left.contains(&place) {
                claim.left.push(place);
            }
            return;
        }
        self.leave_at(Self::position(state).collect(), place);
    }

    /// Notes that what comes after a state may be otherwise than on the path, which goes on.
    pub(crate) fn guess(&mut self, state: &mut State, why: GiveUp) {
        self.leave(state, why);
        state.guess.get_or_insert(Place { slot: state.slot, why });
    }

    /// Notes that nothing is known of what comes after the functions that a state is in return to their callers.
    pub(crate) fn leave_callers(&mut self, state: &State, why: GiveUp) {
        if self.follows_all() {
            return self.leave(state, why);
        }
        self.leave_at(Self::position(state).skip(1).collect(), Place { slot: state.slot, why });
    }

    fn leave_at(&mut self, position: Vec<usize>, place: Place) {
        if self.flow.from(position.iter().copied()) == FAR {
            return;
        }
        let left = (position, place);
        if self.known_left.insert(left.clone()) {
            self.left.push(left);
        }
    }

    /// Keeps another path for later, in which a condition holds that was not checked.
    pub(crate) fn fork(&mut self, state: &State, condition: Term, cost: u32) {
        let mut other = state.clone();
        other.path.push(condition);
        other.pending = true;
        other.cost += cost;
        self.keep(other);
    }

    /// Keeps a path for later, if it may lead to a goal.
    pub(crate) fn keep(&mut self, mut state: State) {
        if self.distance(&state) == FAR {
            return;
        }
        if self.queue.len() + self.waiting.len() >= self.options.paths {
            return self.leave(&state, GiveUp::Paths);
        }
        state.assignment.forget();
        if self.twin.is_some() {
            return self.wait(state);
        }
        self.queue.push(state);
    }

    /// Keeps a path until its turn comes, where two programs are compared.
    pub(crate) fn wait(&mut self, mut state: State) {
        if let Some(order) = self.order_of(&state) {
            order.settle(&mut state);
            self.waiting.put(turn(order, &state), state);
        }
    }

    /// Whether a path should wait for others that come to the same place.
    pub(crate) fn should_wait(&self, state: &mut State) -> bool {
        let Some(order) = self.order_of(state) else { return false };
        order.settle(state);
        let meets = state.frames.last().is_none_or(|frame| order.meets(frame.at));
        meets && (!self.ready.is_empty() || self.waiting.has_before(&turn(order, state)))
    }

    /// The order of the program that runs, where two are compared.
    pub(crate) fn order_of(&self, state: &State) -> Option<&Order> {
        Some(&self.twin.as_ref()?.orders[usize::from(state.first.is_some())])
    }

    /// The next path where two programs are compared: of those that are first in the order of their program, joined with others at the same
    /// place. Second programs come before the first one goes on, and now and then one begins before the first program was followed to all its ends.
    fn next_in_order(&mut self) -> Option<State> {
        const BETWEEN_ENDS: u64 = 256;
        while self.ready.is_empty() {
            let early = self.picks.is_multiple_of(BETWEEN_ENDS).then(|| self.waiting.ended()).flatten();
            let mut group = match early {
                Some(group) => group,
                None => self.waiting.first()?,
            };
            self.picks += 1;
            // By their conditions, so that both programs join in mostly the same order.
            group.sort_by(|a, b| a.path.cmp(&b.path));
            for mut state in group {
                if !self.is_possible(&mut state) {
                    continue;
                }
                self.forget_dead(&mut state);
                let mut ready = std::mem::take(&mut self.ready);
                if !ready.iter_mut().any(|other| self.join(other, &state)) {
                    ready.push(state);
                }
                self.ready = ready;
            }
            let ready = std::mem::take(&mut self.ready);
            self.ready = self.choose(ready);
        }
        self.ready.pop()
    }
}
