//! The handlers, for a test that reads their code.

use super::handlers::HANDLERS;
use super::kind::{COUNT, KINDS, Kind};

/// Whether handlers jump to each other in this build, or else return to a loop.
#[must_use]
pub fn jumps() -> bool {
    cfg!(all(tail_jumps, not(debug_assertions)))
}

/// The code of one kind of operation.
pub struct Handler {
    /// What the operation is.
    pub kind: String,
    /// Address of its first instruction.
    pub address: usize,
    /// Whether it calls a function by its address, which is then a helper.
    pub calls_helper: bool,
    /// Whether it ends the run, and so returns.
    pub ends: bool,
}

/// All handlers.
#[must_use]
pub fn all() -> Vec<Handler> {
    let handler = |(kind, handler): (&Kind, &super::op::Handler)| Handler {
        kind: format!("{kind:?}"),
        address: *handler as usize,
        calls_helper: *kind == Kind::CallHelper,
        ends: matches!(kind, Kind::End | Kind::Return(_)),
    };
    KINDS.iter().zip(&HANDLERS).take(COUNT).map(handler).collect()
}
