//! Checkpoints: the kept states, as a forest of the paths that lead to them.

use std::cell::Cell;

use crate::domain::state::State;
use crate::stats::Stats;

/// A path that has ended at an incomplete checkpoint.
pub(super) struct Backedge {
    pub(super) state: State,
    pub(super) slot: usize,
    /// The checkpoint that covers the state.
    pub(super) covering: usize,
    /// The last checkpoint on the path.
    pub(super) parent: Option<usize>,
    pub(super) trail: u32,
}

/// A kept state.
pub(super) struct Checkpoint {
    pub(super) slot: usize,
    /// `None` once it was dropped as useless.
    pub(super) state: Option<State>,
    /// The previous checkpoint on its path.
    pub(super) parent: Option<usize>,
    /// Number of paths from it that have not ended.
    pub(super) open_paths: u32,
    pub(super) hits: u32,
    pub(super) misses: u32,
    /// The last id in use when it was kept.
    pub(super) last_id: u32,
    /// The oldest open checkpoint at which a path from this one has ended.
    waits_for: Option<usize>,
    /// Paths that ended at checkpoints whose precise values are complete only when all paths from this one have ended.
    pub(super) backedges: Vec<Backedge>,
}

/// All checkpoints of one walk.
pub(super) struct Checkpoints {
    pub(super) all: Vec<Checkpoint>,
    /// The checkpoints to compare with, at each slot.
    pub(super) at: Vec<Vec<usize>>,
    /// The last one on the current path.
    current: Option<usize>,
    /// The first incomplete checkpoint that may cover the current path (see [`super::backedges`]).
    usable_from: usize,
    pub(super) kept: usize,
    jumps_at_last: usize,
    instructions_at_last: usize,
    jumps: usize,
    /// Number of steps of comparing and keeping states so far (`Stats::work`).
    work: Cell<usize>,
}

impl Checkpoints {
    pub(super) fn new(slots: usize) -> Self {
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
    pub(super) fn restart(&mut self) {
        for checkpoint in self.all.drain(..) {
            self.at[checkpoint.slot].clear();
        }
        (self.current, self.usable_from, self.kept) = (None, 0, 0);
        (self.jumps, self.jumps_at_last, self.instructions_at_last) = (0, 0, 0);
    }

    /// Counts a jump, call or return.
    pub(super) fn count_jump(&mut self) {
        self.jumps += 1;
    }

    /// Steps of comparing and keeping states so far.
    pub(super) fn work(&self) -> usize {
        self.work.get()
    }

    /// Adds steps of comparing and keeping states.
    pub(super) fn spend(&self, steps: usize) {
        self.work.set(self.work.get().saturating_add(steps));
    }

    /// A branch from the current path will wait; returns its checkpoint.
    pub(super) fn branch(&mut self) -> Option<usize> {
        if let Some(index) = self.current {
            self.all[index].open_paths += 1;
        }
        self.current
    }

    /// The last one on the current path.
    pub(super) fn current(&self) -> Option<usize> {
        self.current
    }

    /// The first incomplete checkpoint that may cover the current path.
    pub(super) fn usable_from(&self) -> usize {
        self.usable_from
    }

    /// Resumes a branch from its checkpoint.
    pub(super) fn resume(&mut self, checkpoint: Option<usize>, usable_from: usize) {
        (self.current, self.usable_from) = (checkpoint, usable_from);
    }

    /// An open checkpoint on the current path that keeps the precise values of this one incomplete, if there is one.
    pub(super) fn unsettled_by(&self, index: usize) -> Option<usize> {
        let mut at = Some(index);
        while let Some(index) = at {
            let checkpoint = &self.all[index];
            self.spend(1);
            if checkpoint.open_paths > 0 {
                return Some(index);
            }
            at = checkpoint.waits_for;
        }
        None
    }

    /// The current path ends at `target`, an open checkpoint: `target` and the checkpoints in between are incomplete.
    pub(super) fn wait_for(&mut self, target: usize) {
        let mut at = self.current;
        while let Some(index) = at.filter(|&index| index > target) {
            let checkpoint = &mut self.all[index];
            *self.work.get_mut() += 1;
            if checkpoint.waits_for.is_none_or(|known| known > target) {
                checkpoint.waits_for = Some(target);
            }
            at = checkpoint.parent;
        }
    }

    /// The latest kept states at a slot on the current path, without the current checkpoint if it was `just_kept`.
    pub(super) fn open_at(&self, slot: usize, just_kept: bool) -> impl Iterator<Item = &State> {
        let skip = self.current.filter(|_| just_kept);
        let list = self.at.get(slot).map_or(&[][..], Vec::as_slice);
        let open = list.iter().rev().filter(move |&&index| Some(index) != skip);
        open.filter_map(|&index| self.all.get(index))
            .inspect(|_| self.spend(1))
            .filter(|checkpoint| checkpoint.open_paths > 0)
            .filter_map(|checkpoint| checkpoint.state.as_ref())
    }

    /// Keeps a state as the last checkpoint on the current path.
    pub(super) fn add(&mut self, slot: usize, state: State, last_id: u32, stats: &mut Stats) {
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
        self.at[slot].push(index);
        self.current = Some(index);
        self.jumps_at_last = self.jumps;
        self.instructions_at_last = stats.instructions;
        stats.states += 1;
        stats.peak_states = stats.peak_states.max(self.kept);
    }

    /// Whether enough jumps and instructions were walked since the last kept state (`is_state_visited` has the same
    /// numbers).
    pub(super) fn is_far(&self, stats: &Stats, jumps: usize, instructions: usize) -> bool {
        self.jumps - self.jumps_at_last >= jumps
            && stats.instructions - self.instructions_at_last >= instructions
    }

    /// Like `is_far`, for slots that the path has visited before: states of a loop seldom cover each other.
    pub(super) fn is_far_in_loop(&self, stats: &Stats) -> bool {
        self.is_far(stats, 20, 0) || self.is_far(stats, 0, 100)
    }

    /// Reopens the checkpoints from `first`, all paths from which have ended, to the last one of a path from there.
    pub(super) fn reopen(&mut self, first: usize, last: Option<usize>) {
        let mut at = last;
        while let Some(index) = at {
            let checkpoint = &mut self.all[index];
            checkpoint.open_paths += 1;
            if checkpoint.open_paths > 1 || index == first {
                break;
            }
            at = checkpoint.parent;
        }
    }
}
