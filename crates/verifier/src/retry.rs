//! Paths that ended at a checkpoint of which not all was known yet, and go on where what became known since asks for it.
//!
//! Within a loop that something else bounds (see [`crate::converge`]) more may turn out to matter of a checkpoint as long as one
//! before it is open. A state that is covered in all that matters so far ends its path, and is kept with the open
//! checkpoint. When all paths from that one have ended it is compared again: still covered, the path stays ended, since
//! whatever matters is known by then; otherwise it goes on. (The kernel keeps such states as `bpf_scc_backedge`, and passes
//! on what turns out to be precise; it does not compare them again.)
//!
//! A path that goes on later than its turn must not end where an older path leads to it, or both would go round for ever: of the
//! checkpoints of which not all is known only those cover it which were kept after that.

use crate::compare::Rigor;
use crate::error::Check;
use crate::prune::Checkpoints;
use crate::state::State;
use crate::walk::Walk;

/// A path that has ended at a checkpoint of which not all was known.
pub(crate) struct Backedge {
    state: State,
    slot: usize,
    /// The checkpoint that covers the state.
    covering: usize,
    /// The last one on the path.
    parent: Option<usize>,
    trail: u32,
}

impl Checkpoints {
    /// Opens the checkpoints again from `first`, all paths from which have ended, to the last one of a path from there.
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
    /// The current path ends at a checkpoint that covers it in what matters so far; `open` is one from which more may
    /// turn out to.
    pub(crate) fn keep_backedge(&mut self, covering: usize, open: usize) -> Check {
        let (state, slot, parent) = (self.state.clone(), self.slot, self.checkpoints.current());
        self.hold(state.bytes())?;
        let backedge = Backedge { state, slot, covering, parent, trail: self.trail_end() };
        self.checkpoints.all[open].backedges.push(backedge);
        Ok(())
    }

    /// The current path has ended, and with it maybe all paths from checkpoints. True if one goes on instead that ended at
    /// one of these.
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
    /// longer covered goes on.
    fn retry(&mut self, index: usize) -> bool {
        let mut backedges = std::mem::take(&mut self.checkpoints.all[index].backedges);
        for number in 0..backedges.len() {
            let Backedge { state, slot, covering, .. } = &mut backedges[number];
            self.slot = *slot;
            std::mem::swap(&mut self.state, state);
            // What makes progress was compared when the path ended.
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
