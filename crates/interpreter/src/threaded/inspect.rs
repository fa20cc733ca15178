//! Addresses of the handlers, for a test of their machine code.

use super::handlers::HANDLERS;
use super::kind::{COUNT, KINDS, Kind};

/// Whether handlers jump to each other in this build; otherwise they return to a loop.
#[must_use]
pub fn jumps() -> bool {
    cfg!(all(tail_jumps, not(debug_assertions)))
}

/// The code of one kind of operation.
pub struct Handler {
    /// Kind of the operation.
    pub kind: String,
    /// Address of its first instruction.
    pub address: usize,
    /// Whether the handler calls helpers.
    pub calls_helper: bool,
    /// Whether the handler ends the run.
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
