//! Successors of an instruction.

use crate::domain::state::State;

/// Successors of an instruction.
pub(crate) enum Next {
    /// Goes on at a slot.
    Go(usize),
    /// Goes on at the head of a loop, where a round starts.
    Repeat(usize),
    /// Continues at `next`; the branch to `target` waits with its state, which may start a round of a loop.
    Both { next: usize, target: usize, waiting: Box<State>, round: Option<Round> },
    /// The path ends.
    End,
}

/// A round of a loop without a counter of its own.
#[derive(Clone, Copy)]
pub(crate) struct Round {
    /// The head of the loop.
    pub(crate) head: usize,
    /// Whether the last checkpoint is this round's own.
    pub(crate) just_kept: bool,
}
