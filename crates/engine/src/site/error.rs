//! Calls of programs without a slot, and errors of updates.

use paceline_epoch::{NoSlot, Stalled};

/// Calls of programs without a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// By an indirect jump.
    #[default]
    Indirect,
    /// By a retpoline: no indirect branch that could be predicted, some 17 ns a call.
    Retpoline,
}

/// An update fails; the site is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The old program is not registered.
    #[error("the program to be replaced has no slot")]
    NoSlot,
    /// There is no executable memory for the dispatcher.
    #[error("{0}")]
    Memory(String),
    /// Workers that stall keep too much of what was replaced before.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

impl From<NoSlot> for UpdateError {
    fn from(_: NoSlot) -> Self {
        Self::NoSlot
    }
}
