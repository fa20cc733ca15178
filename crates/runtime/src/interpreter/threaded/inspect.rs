//! Addresses of the handlers, for a test of their machine code.

use super::handlers::HANDLERS;
use super::kind::Kind;
use super::sequence::{COUNT, SEQUENCES, Sequence};

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
    /// Whether it may end the run.
    pub may_end: bool,
}

impl std::fmt::Debug for Handler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handler").finish_non_exhaustive()
    }
}

/// All handlers.
#[must_use]
pub fn all() -> Vec<Handler> {
    let handler = |(sequence, handler): (&Sequence, &crate::interpreter::op::Handler)| {
        let kinds: Vec<Kind> = sequence.parts[..sequence.len].iter().map(|part| part.kind).collect();
        Handler {
            kind: format!("{kinds:?}"),
            address: *handler as usize,
            calls_helper: kinds.contains(&Kind::CallHelper),
            ends: matches!(kinds[..], [Kind::End(_)]),
            may_end: kinds.iter().any(|kind| matches!(kind, Kind::Exit(_) | Kind::EndIf { .. })),
        }
    };
    SEQUENCES.iter().zip(&HANDLERS).take(COUNT).map(handler).collect()
}
