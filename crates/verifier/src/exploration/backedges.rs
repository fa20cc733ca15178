//! Paths that ended at an incomplete checkpoint, and are compared again when it is complete.
//!
//! In a loop that is bounded otherwise (see [`crate::domain::widening`]), values of a checkpoint may become precise as long
//! as an earlier checkpoint is open. A state that is covered so far ends its path, and is kept with the open checkpoint. When all
//! paths from that one have ended, the state is compared again: if it is still covered, the path stays ended, since the
//! precise values are complete now; otherwise it resumes. (The kernel keeps such states as `bpf_scc_backedge` and
//! propagates precision; it does not compare them again.)
//!
//! A path that resumes late must not end at a checkpoint of an older path that leads to it, or both would be walked for
//! ever: of the incomplete checkpoints only those kept after it resumed may cover it.

use super::checkpoints::{Backedge, Checkpoints};
use super::path::Visit;
use crate::domain::coverage::Exactness;

impl Checkpoints {
    /// The current path has ended, and possibly all paths from some checkpoints. True if a path that ended at one of these
    /// resumes.
    pub(super) fn end_path(&mut self, visit: &mut Visit<'_>) -> bool {
        let mut at = self.current();
        while let Some(index) = at {
            let checkpoint = &mut self.all[index];
            checkpoint.open_paths = checkpoint.open_paths.saturating_sub(1);
            if checkpoint.open_paths > 0 {
                break;
            }
            at = checkpoint.parent;
            if self.retry(index, visit) {
                return true;
            }
        }
        false
    }

    /// Compares the states again that were kept with a checkpoint, all paths from which have ended. The first that is no
    /// longer covered resumes.
    fn retry(&mut self, index: usize, visit: &mut Visit<'_>) -> bool {
        let mut backedges = std::mem::take(&mut self.all[index].backedges);
        for number in 0..backedges.len() {
            let Backedge { state, slot, covering, .. } = &mut backedges[number];
            visit.path.slot = *slot;
            std::mem::swap(&mut visit.path.state, state);
            // Progress was compared when the path ended.
            if self.covers(*covering, visit, Exactness::NotExact) {
                std::mem::swap(&mut visit.path.state, state);
                continue;
            }
            let backedge = backedges.swap_remove(number);
            visit.budget.release(visit.path.state.bytes());
            self.reopen(index, backedge.parent);
            self.all[index].backedges = backedges;
            visit.path.trail = backedge.trail;
            self.resume(backedge.parent, self.all.len());
            return true;
        }
        for backedge in backedges {
            match self.unsettled_by(backedge.covering) {
                Some(open) => self.all[open].backedges.push(backedge),
                None => visit.budget.release(backedge.state.bytes()),
            }
        }
        false
    }
}
