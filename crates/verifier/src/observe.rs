//! Watching a walk: for logs, for messages that tell a register's history, for tests of soundness.

use crate::state::State;

/// Why a path ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathEnd {
    /// The program or the global function returns.
    Exit,
    /// An earlier state, all paths from which were walked, covers this one.
    Covered,
}

/// Is told what the walk does. Branches wait on a stack: the one that waited last is walked first.
pub trait Observer {
    /// A function is walked from its start: the main program, or a global function by its types.
    fn function(&mut self, slot: usize, state: &State) {
        let _ = (slot, state);
    }

    /// The instruction of a slot is simulated on this state; also where it then breaks a rule.
    fn instruction(&mut self, slot: usize, state: &State) {
        let _ = (slot, state);
    }

    /// The branch at `slot` may jump to `target` as well: that waits, and the path falls through.
    fn branch(&mut self, slot: usize, target: usize) {
        let _ = (slot, target);
    }

    /// The path ends at `slot`.
    fn path_ends(&mut self, slot: usize, why: PathEnd) {
        let _ = (slot, why);
    }

    /// The branch that waited last goes on, at `slot`.
    fn resume(&mut self, slot: usize) {
        let _ = slot;
    }
}
