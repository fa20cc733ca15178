//! State pruning: the comparison of the current state with the kept ones.
//!
//! A state is covered if an earlier state covers it in all live registers, in stack bytes that were read and in precise
//! numbers (see [`crate::domain::precision`]). These are complete only when all paths from the checkpoint have ended. A
//! checkpoint with open paths is on the current path itself; meeting it again without any change is an infinite loop. Loops
//! that are bounded otherwise end earlier: see [`crate::domain::widening`].

use paceline_isa::RegSet;

use super::budget::Budget;
use super::checkpoints::{Backedge, Checkpoints};
use super::path::Visit;
use crate::domain::coverage::{Comparison, Exactness, has_same_calls};
use crate::domain::inheritance::{inherit, share};
use crate::domain::state::{Frame, State, Value};
use crate::domain::widening::{progress_between, widen};
use crate::env::PrunePoint;
use crate::error::{Cause, Check, Hint, invariant, reject_with};
use crate::records::Records;
use crate::transformer::{Round, start_calling_back};

/// Result of comparing a state with the checkpoints of a slot.
enum Found {
    Covered(usize),
    Loop,
    Nothing {
        /// Whether the state is to be kept.
        keeps: bool,
    },
}

impl Checkpoints {
    /// Compares the state with those met at this slot, and maybe keeps it. True if the path may end here.
    #[inline]
    pub(super) fn meet(&mut self, visit: &mut Visit<'_>) -> Check<bool> {
        let meeting = visit.env.flow.meetings.get(visit.path.slot).copied();
        let meeting = invariant(meeting, "successors are instructions")?;
        match meeting {
            PrunePoint::Never => Ok(false),
            PrunePoint::Sometimes | PrunePoint::Round => self.meet_kept(visit, meeting == PrunePoint::Round),
        }
    }

    fn meet_kept(&mut self, visit: &mut Visit<'_>, is_round: bool) -> Check<bool> {
        if is_round {
            start_calling_back(visit.env, visit.path.slot, &mut visit.path.state, visit.records);
        }
        match self.look_for_earlier(visit, is_round) {
            Found::Covered(index) => {
                self.end_at(index, visit)?;
                Ok(true)
            }
            Found::Loop => reject_with(Cause::InfiniteLoop, Hint::BoundLoop),
            Found::Nothing { keeps } => {
                if keeps {
                    self.keep(visit)?;
                }
                Ok(false)
            }
        }
    }

    /// The path ends at a checkpoint that covers it.
    fn end_at(&mut self, index: usize, visit: &mut Visit<'_>) -> Check {
        let (precision, reads) = (&mut visit.records.precision, &mut visit.records.reads);
        let earlier = invariant(self.all[index].state.as_ref(), "a checkpoint that covers a state is kept")?;
        match self.unsettled_by(index) {
            None => inherit(precision, reads, earlier, &visit.path.state),
            Some(open) => {
                share(precision, reads, earlier, &visit.path.state);
                self.wait_for(open);
                // A state that is covered in all values is covered whatever becomes precise.
                if open != index && !self.covers(index, visit, Exactness::RangeWithin) {
                    self.keep_backedge(index, open, visit)?;
                }
            }
        }
        self.spend(visit.path.state.frames().map(Frame::places).sum());
        visit.budget.stats.pruned += 1;
        Ok(())
    }

    fn look_for_earlier(&mut self, visit: &mut Visit<'_>, is_round: bool) -> Found {
        let mut list = std::mem::take(&mut self.at[visit.path.slot]);
        let mut keeps = is_round || self.is_far(&visit.budget.stats, 2, 8);
        let mut found = None;
        let mut finds_useless = false;
        // The latest states are the most similar.
        for &index in list.iter().rev() {
            let Some(state) = &self.all[index].state else { continue };
            if self.all[index].open_paths > 0 {
                found = self.loop_at(index, state, visit, is_round);
                if found.is_some() {
                    break;
                }
                keeps &= is_round || self.is_far_in_loop(&visit.budget.stats);
            } else {
                let unsettled_by = self.unsettled_by(index);
                if unsettled_by.is_some() && index < self.usable_from() {
                    continue;
                }
                let same_up_to = unsettled_by.map_or(0, |open| self.all[open].last_id);
                if self.compare(visit, state, Exactness::NotExact, same_up_to) {
                    found = Some(Found::Covered(index));
                    self.all[index].hits += 1;
                    break;
                }
            }
            // States between two kept ones say nothing about a checkpoint's worth.
            if keeps && self.misses(index, is_round, visit.budget) {
                finds_useless = true;
            }
        }
        if finds_useless {
            list.retain(|&index| self.all[index].state.is_some());
        }
        self.at[visit.path.slot] = list;
        found.unwrap_or(Found::Nothing { keeps })
    }

    /// Whether the path ends at an open checkpoint: without progress it is an infinite loop.
    fn loop_at(&self, index: usize, state: &State, visit: &Visit<'_>, is_round: bool) -> Option<Found> {
        let oldest =
            if visit.env.flow.has_rounds { progress_between(state, &visit.path.state) } else { None };
        match oldest {
            None => self.compare(visit, state, Exactness::Exact, 0).then_some(Found::Loop),
            Some(id) => (is_round && self.compare(visit, state, Exactness::RangeWithin, id))
                .then_some(Found::Covered(index)),
        }
    }

    /// Counts a state that a checkpoint does not cover. True if the checkpoint is dropped as useless.
    fn misses(&mut self, index: usize, is_round: bool, budget: &mut Budget) -> bool {
        let checkpoint = &mut self.all[index];
        checkpoint.misses += 1;
        let patience = if is_round && checkpoint.open_paths > 0 { 64 } else { 3 };
        if checkpoint.misses <= checkpoint.hits * patience + patience {
            return false;
        }
        let state = checkpoint.state.take();
        budget.release(state.map_or(0, |state| state.bytes()));
        self.kept -= 1;
        true
    }

    /// Whether a checkpoint covers the current state, progress aside.
    pub(super) fn covers(&self, index: usize, visit: &Visit<'_>, exactness: Exactness) -> bool {
        let state = self.all[index].state.as_ref();
        state.is_some_and(|state| self.compare(visit, state, exactness, 0))
    }

    /// Whether an earlier state at the same slot covers the current one. Objects with a progress count whose id is at most
    /// `same_up_to` must be identical.
    fn compare(&self, visit: &Visit<'_>, earlier: &State, exactness: Exactness, same_up_to: u32) -> bool {
        let is_exact = visit.env.options.exact;
        let exactness = if is_exact { Exactness::Exact } else { exactness };
        let mut comparison =
            Comparison::new(&visit.records.precision, &visit.records.reads, exactness, same_up_to);
        let live = |number: usize| match visit.path.state.frame(number + 1) {
            // An exact walk also compares dead registers.
            _ if is_exact => RegSet::CALLER_SAVED.union(RegSet::CALLEE_SAVED),
            Some(callee) => visit.env.live_at(callee.return_slot()),
            None => visit.env.live_at(visit.path.slot),
        };
        let is_covered = comparison.covers(earlier, &visit.path.state, live);
        self.spend(comparison.steps());
        is_covered
    }

    /// Keeps the state as a checkpoint: later precise numbers and stack reads are recorded with it.
    fn keep(&mut self, visit: &mut Visit<'_>) -> Check {
        let (precision, reads) = (&mut visit.records.precision, &mut visit.records.reads);
        for number in 0..=visit.path.state.depth() {
            let Some(frame) = visit.path.state.frame_mut(number) else { continue };
            for value in frame.values_mut() {
                if let Value::Scalar(scalar) = value {
                    scalar.mark = precision.checkpoint(scalar.mark);
                }
            }
            for slot in frame.stack.slots_mut() {
                slot.origin = reads.checkpoint(slot.origin, !slot.fresh);
                slot.fresh = 0;
            }
        }
        self.spend(visit.path.state.frames().map(Frame::places).sum());
        self.add(visit.path.slot, visit.path.state.clone(), visit.records.last_id, &mut visit.budget.stats);
        visit.hold(visit.path.state.bytes())
    }

    /// The current path ends at a checkpoint that covers it so far; `open` is the open checkpoint until whose end values
    /// may still become precise.
    fn keep_backedge(&mut self, covering: usize, open: usize, visit: &mut Visit<'_>) -> Check {
        let (state, slot, parent) = (visit.path.state.clone(), visit.path.slot, self.current());
        visit.hold(state.bytes())?;
        self.all[open].backedges.push(Backedge { state, slot, covering, parent, trail: visit.path.trail });
        Ok(())
    }

    /// Widens imprecise numbers at the start of a round that differ from those at the start of an earlier round.
    pub(super) fn widen(&self, state: &mut State, round: Round, records: &Records) {
        let mut open = self.open_at(round.head, round.just_kept);
        let is_same_call =
            |earlier: &&State| has_same_calls(earlier, state) && earlier.depth() == state.depth();
        if let Some(earlier) = open.find(is_same_call) {
            widen(&records.precision, earlier, state);
        }
    }
}
