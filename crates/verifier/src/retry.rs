//! Paths that ended at an incomplete checkpoint, and are compared again when it is complete.
//!
//! In a loop that is bounded otherwise (see [`crate::converge`]), values of a checkpoint may become precise as long as an
//! earlier checkpoint is open. A state that is covered so far ends its path, and is kept with the open checkpoint. When all
//! paths from that one have ended, the state is compared again: if it is still covered, the path stays ended, since the
//! precise values are complete now; otherwise it resumes. (The kernel keeps such states as `bpf_scc_backedge` and
//! propagates precision; it does not compare them again.)
//!
//! A path that resumes late must not end at a checkpoint of an older path that leads to it, or both would be walked for
//! ever: of the incomplete checkpoints only those kept after it resumed may cover it.

use crate::compare::Rigor;
use crate::domain::state::State;
use crate::error::Check;
use crate::prune::Checkpoints;
use crate::walk::Walk;

/// A path that has ended at an incomplete checkpoint.
pub(crate) struct Backedge {
    state: State,
    slot: usize,
    /// The checkpoint that covers the state.
    covering: usize,
    /// The last checkpoint on the path.
    parent: Option<usize>,
    trail: u32,
}

impl Checkpoints {
    /// Reopens the checkpoints from `first`, all paths from which have ended, to the last one of a path from there.
    fn reopen(&mut self, first: usize, last: Option<usize>) {
        let mut at = last;
        while let Some((index, checkpoint)) = at.and_then(|index| Some((index, self.all.get_mut(index)?))) {
            checkpoint.open_paths += 1;
            if checkpoint.open_paths > 1 || index == first {
                break;
            }
            at = checkpoint.parent;
        }
    }
}

impl Walk<'_> {
    /// The current path ends at a checkpoint that covers it so far; `open` is the open checkpoint until whose end values
    /// may still become precise.
    pub(crate) fn keep_backedge(&mut self, covering: usize, open: usize) -> Check {
        let (state, slot, parent) = (self.state.clone(), self.slot, self.checkpoints.current());
        self.hold(state.bytes())?;
        let backedge = Backedge { state, slot, covering, parent, trail: self.trail_end() };
        self.checkpoints.all[open].backedges.push(backedge);
        Ok(())
    }

    /// The current path has ended, and possibly all paths from some checkpoints. True if a path that ended at one of these
    /// resumes.
    pub(crate) fn end_path(&mut self) -> bool {
        let mut at = self.checkpoints.current();
        while let Some(index) = at {
            let Some(checkpoint) = self.checkpoints.all.get_mut(index) else { break };
            checkpoint.open_paths = checkpoint.open_paths.saturating_sub(1);
            if checkpoint.open_paths > 0 {
                break;
            }
            at = checkpoint.parent;
            if self.retry(index) {
                return true;
            }
        }
        false
    }

    /// Compares the states again that were kept with a checkpoint, all paths from which have ended. The first that is no
    /// longer covered resumes.
    fn retry(&mut self, index: usize) -> bool {
        let mut backedges = std::mem::take(&mut self.checkpoints.all[index].backedges);
        for number in 0..backedges.len() {
            let Backedge { state, slot, covering, .. } = &mut backedges[number];
            self.slot = *slot;
            std::mem::swap(&mut self.state, state);
            // Progress was compared when the path ended.
            if self.is_covered_by(*covering, Rigor::Demanded) {
                std::mem::swap(&mut self.state, state);
                continue;
            }
            let backedge = backedges.swap_remove(number);
            self.held = self.held.saturating_sub(self.state.bytes());
            self.checkpoints.reopen(index, backedge.parent);
            self.checkpoints.all[index].backedges = backedges;
            self.resume_at(self.checkpoints.all.len(), backedge.parent, backedge.trail);
            return true;
        }
        for backedge in backedges {
            match self.checkpoints.unsettled_by(backedge.covering) {
                Some(open) => self.checkpoints.all[open].backedges.push(backedge),
                None => self.held = self.held.saturating_sub(backedge.state.bytes()),
            }
        }
        false
    }
}
