//! Checkpoints: kept states, and state pruning.
//!
//! A state is covered if an earlier state covers it in all live registers, in stack bytes that were read and in precise
//! numbers (see [`crate::precision`]). These are complete only when all paths from the checkpoint have ended. A checkpoint
//! with open paths is on the current path itself; meeting it again without any change is an infinite loop. Loops that are
//! bounded otherwise end earlier: see [`crate::converge`].
//!
//! Checkpoints are at conditional jumps, jump targets, calls of functions and the instructions after calls, at the kernel's minimum
//! distances, and are dropped when they do not prune (`is_state_visited`). Other choices made some programs several times as
//! expensive to verify.

use std::cell::Cell;

use crate::cfg::PrunePoint;
use crate::compare::Rigor;
use crate::converge::{imply_zeroed, mark_precise, progress_between};
use crate::domain::precision::Precision;
use crate::domain::state::{Frame, State, Value};
use crate::error::{Cause, Check, Hint};
use crate::retry::Backedge;
use crate::walk::Walk;

/// A kept state.
pub(crate) struct Checkpoint {
    slot: usize,
    /// `None` once it was dropped as useless.
    pub(crate) state: Option<State>,
    /// The previous checkpoint on its path.
    pub(crate) parent: Option<usize>,
    /// Number of paths from it that have not ended.
    pub(crate) open_paths: u32,
    hits: u32,
    misses: u32,
    /// The last id in use when it was kept.
    last_id: u32,
    /// The oldest open checkpoint at which a path from this one has ended.
    waits_for: Option<usize>,
    /// Paths that ended at checkpoints whose precise values are complete only when all paths from this one have ended.
    pub(crate) backedges: Vec<Backedge>,
}

/// All checkpoints of one walk.
pub(crate) struct Checkpoints {
    pub(crate) all: Vec<Checkpoint>,
    /// The checkpoints to compare with, at each slot.
    at: Vec<Vec<usize>>,
    /// The last one on the current path.
    current: Option<usize>,
    /// The first incomplete checkpoint that may cover the current path (see [`crate::retry`]).
    usable_from: usize,
    kept: usize,
    jumps_at_last: usize,
    instructions_at_last: usize,
    jumps: usize,
    /// Number of steps of comparing and keeping states so far (`Stats::work`).
    work: Cell<usize>,
}

impl Checkpoints {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            all: Vec::new(),
            at: vec![Vec::new(); slots],
            current: None,
            usable_from: 0,
            kept: 0,
            jumps_at_last: 0,
            instructions_at_last: 0,
            jumps: 0,
            work: Cell::new(0),
        }
    }

    /// Drops all checkpoints, for a walk from another root.
    pub(crate) fn restart(&mut self) {
        for checkpoint in self.all.drain(..) {
            if let Some(list) = self.at.get_mut(checkpoint.slot) {
                list.clear();
            }
        }
        (self.current, self.usable_from, self.kept) = (None, 0, 0);
        (self.jumps, self.jumps_at_last, self.instructions_at_last) = (0, 0, 0);
    }

    /// Counts a jump, call or return.
    pub(crate) fn count_jump(&mut self) {
        self.jumps += 1;
    }

    /// Steps of comparing and keeping states so far.
    pub(crate) fn work(&self) -> usize {
        self.work.get()
    }

    /// Adds steps of comparing and keeping states.
    pub(crate) fn spend(&self, steps: usize) {
        self.work.set(self.work.get().saturating_add(steps));
    }

    /// A branch from the current path will wait; returns its checkpoint.
    pub(crate) fn branch(&mut self) -> Option<usize> {
        if let Some(checkpoint) = self.current.and_then(|index| self.all.get_mut(index)) {
            checkpoint.open_paths += 1;
        }
        self.current
    }

    /// The last one on the current path.
    pub(crate) fn current(&self) -> Option<usize> {
        self.current
    }

    /// The first incomplete checkpoint that may cover the current path.
    pub(crate) fn usable_from(&self) -> usize {
        self.usable_from
    }

    /// Resumes a branch from its checkpoint.
    pub(crate) fn resume(&mut self, checkpoint: Option<usize>, usable_from: usize) {
        (self.current, self.usable_from) = (checkpoint, usable_from);
    }

    /// An open checkpoint on the current path that keeps the precise values of this one incomplete, if there is one.
    pub(crate) fn unsettled_by(&self, index: usize) -> Option<usize> {
        let mut at = Some(index);
        while let Some((index, checkpoint)) = at.and_then(|index| Some((index, self.all.get(index)?))) {
            self.spend(1);
            if checkpoint.open_paths > 0 {
                return Some(index);
            }
            at = checkpoint.waits_for;
        }
        None
    }

    /// The current path ends at `target`, an open checkpoint: `target` and the checkpoints in between are incomplete.
    fn wait_for(&mut self, target: usize) {
        let mut at = self.current;
        while let Some(index) = at.filter(|&index| index > target)
            && let Some(checkpoint) = self.all.get_mut(index)
        {
            *self.work.get_mut() += 1;
            if checkpoint.waits_for.is_none_or(|known| known > target) {
                checkpoint.waits_for = Some(target);
            }
            at = checkpoint.parent;
        }
    }

    /// The latest kept states at a slot on the current path, without the current checkpoint if it was `just_kept`.
    pub(crate) fn open_at(&self, slot: usize, just_kept: bool) -> impl Iterator<Item = &State> {
        let skip = self.current.filter(|_| just_kept);
        let list = self.at.get(slot).map_or(&[][..], Vec::as_slice);
        let open = list.iter().rev().filter(move |&&index| Some(index) != skip);
        open.filter_map(|&index| self.all.get(index))
            .inspect(|_| self.spend(1))
            .filter(|checkpoint| checkpoint.open_paths > 0)
            .filter_map(|checkpoint| checkpoint.state.as_ref())
    }

    fn add(&mut self, slot: usize, state: State, last_id: u32) {
        let checkpoint = Checkpoint {
            slot,
            state: Some(state),
            parent: self.current,
            open_paths: 1,
            hits: 0,
            misses: 0,
            last_id,
            waits_for: None,
            backedges: Vec::new(),
        };
        let index = self.all.len();
        self.all.push(checkpoint);
        self.kept += 1;
        if let Some(list) = self.at.get_mut(slot) {
            list.push(index);
        }
        self.current = Some(index);
    }
}

/// Result of comparing a state with the checkpoints of a slot.
enum Found {
    Covered(usize),
    Loop,
    Nothing {
        /// Whether the state is to be kept.
        keeps: bool,
    },
}

impl Walk<'_> {
    /// Compares the state with those met at this slot, and maybe keeps it. True if the path may end here.
    pub(crate) fn meets_earlier_state(&mut self) -> Check<bool> {
        let slot = self.slot;
        let meeting = self.flow.meetings.get(slot).copied().unwrap_or_default();
        if meeting == PrunePoint::Never {
            return Ok(false);
        }
        let is_round = meeting == PrunePoint::Round;
        if is_round {
            self.start_calling_back();
        }
        match self.look_for_earlier(slot, is_round) {
            Found::Covered(index) => {
                match self.checkpoints.unsettled_by(index) {
                    None => self.inherit_precision(index),
                    Some(open) => {
                        self.share_precision(index);
                        self.checkpoints.wait_for(open);
                        // A state that is covered in all values is covered whatever becomes precise.
                        if open != index && !self.is_covered_by(index, Rigor::All) {
                            self.keep_backedge(index, open)?;
                        }
                    }
                }
                self.checkpoints.spend(self.state.frames().map(Frame::places).sum());
                self.stats.pruned += 1;
                Ok(true)
            }
            Found::Loop => crate::error::reject_with(Cause::InfiniteLoop, Hint::BoundLoop),
            Found::Nothing { keeps } => {
                if keeps {
                    self.keep(slot)?;
                }
                Ok(false)
            }
        }
    }

    /// Whether enough jumps and instructions were walked since the last kept state (`is_state_visited` has the same
    /// numbers).
    fn is_far(&self, jumps: usize, instructions: usize) -> bool {
        let checkpoints = &self.checkpoints;
        checkpoints.jumps - checkpoints.jumps_at_last >= jumps
            && self.stats.instructions - checkpoints.instructions_at_last >= instructions
    }

    /// Like `is_far`, for slots that the path has visited before: states of a loop seldom cover each other.
    fn is_far_in_loop(&self) -> bool {
        self.is_far(20, 0) || self.is_far(0, 100)
    }

    fn look_for_earlier(&mut self, slot: usize, is_round: bool) -> Found {
        let mut list = std::mem::take(&mut self.checkpoints.at[slot]);
        let mut keeps = is_round || self.is_far(2, 8);
        let mut found = None;
        let mut finds_useless = false;
        // The latest states are the most similar.
        for &index in list.iter().rev() {
            let checkpoint = &self.checkpoints.all[index];
            let Some(state) = &checkpoint.state else { continue };
            if checkpoint.open_paths > 0 {
                let oldest = if self.flow.has_rounds { progress_between(state, &self.state) } else { None };
                let ends = match oldest {
                    None => self.compare(state, Rigor::Same, 0).then_some(Found::Loop),
                    Some(id) => (is_round && self.compare(state, self.rigor(Rigor::All), id))
                        .then_some(Found::Covered(index)),
                };
                if ends.is_some() {
                    found = ends;
                    break;
                }
                keeps &= is_round || self.is_far_in_loop();
            } else {
                let unsettled_by = self.checkpoints.unsettled_by(index);
                if unsettled_by.is_some() && index < self.checkpoints.usable_from {
                    continue;
                }
                let same_up_to = unsettled_by.map_or(0, |open| self.checkpoints.all[open].last_id);
                if self.compare(state, self.rigor(Rigor::Demanded), same_up_to) {
                    found = Some(Found::Covered(index));
                    self.checkpoints.all[index].hits += 1;
                    break;
                }
            }
            // States between two kept ones say nothing about a checkpoint's worth.
            if !keeps {
                continue;
            }
            let checkpoint = &mut self.checkpoints.all[index];
            checkpoint.misses += 1;
            let patience = if is_round && checkpoint.open_paths > 0 { 64 } else { 3 };
            if checkpoint.misses > checkpoint.hits * patience + patience {
                let state = checkpoint.state.take();
                self.held = self.held.saturating_sub(state.map_or(0, |state| state.bytes()));
                self.checkpoints.kept -= 1;
                finds_useless = true;
            }
        }
        if finds_useless {
            list.retain(|&index| self.checkpoints.all[index].state.is_some());
        }
        self.checkpoints.at[slot] = list;
        found.unwrap_or(Found::Nothing { keeps })
    }

    /// Whether a checkpoint covers the current state, progress aside.
    pub(crate) fn is_covered_by(&self, index: usize, rigor: Rigor) -> bool {
        let state = self.checkpoints.all.get(index).and_then(|checkpoint| checkpoint.state.as_ref());
        state.is_some_and(|state| self.compare(state, self.rigor(rigor), 0))
    }

    fn rigor(&self, wanted: Rigor) -> Rigor {
        if self.options.exact { Rigor::Same } else { wanted }
    }

    /// Keeps the state as a checkpoint: later precise numbers and stack reads are recorded with it.
    fn keep(&mut self, slot: usize) -> Check {
        let (precision, reads) = (&mut self.precision, &mut self.reads);
        for number in 0..=self.state.depth() {
            let Some(frame) = self.state.frame_mut(number) else { continue };
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
        self.checkpoints.spend(self.state.frames().map(Frame::places).sum());
        self.checkpoints.add(slot, self.state.clone(), self.last_id());
        self.checkpoints.jumps_at_last = self.checkpoints.jumps;
        self.checkpoints.instructions_at_last = self.stats.instructions;
        self.stats.states += 1;
        self.stats.peak_states = self.stats.peak_states.max(self.checkpoints.kept);
        self.hold(self.state.bytes())
    }

    fn share_precision(&mut self, index: usize) {
        // Moved out and back: sharing borrows the other checkpoints mutably.
        let Some(earlier) = self.checkpoints.all.get_mut(index).and_then(|c| c.state.take()) else { return };
        self.share_precision_with(&earlier);
        self.checkpoints.all[index].state = Some(earlier);
    }

    /// Values that are precise in the covering state become precise in the covered one, for the checkpoints on its path.
    fn inherit_precision(&mut self, index: usize) {
        let Some(earlier) = self.checkpoints.all.get(index).and_then(|c| c.state.as_ref()) else { return };
        let (precision, reads) = (&mut self.precision, &mut self.reads);
        for (old, new) in earlier.frames().zip(self.state.frames()) {
            imply_zeroed(reads, old, new);
            for (old, new) in old.registers().iter().zip(new.registers()) {
                inherit(precision, old, new);
            }
            for (old, new) in old.stack.slots().iter().zip(new.stack.slots()) {
                reads.inherit(old.origin, new.origin, !new.fresh);
                if reads.bytes_read(old.origin) != 0 {
                    inherit(precision, &old.value, &new.value);
                }
                if old.zeros_of_value(new) & reads.bytes_read(old.origin) != 0 {
                    mark_precise(precision, &new.value);
                }
            }
        }
    }
}

fn inherit(precision: &mut Precision, old: &Value, new: &Value) {
    if let (Value::Scalar(old), Value::Scalar(new)) = (old, new)
        && precision.is_precise(old.mark)
    {
        precision.mark_precise(new.mark);
    }
}
