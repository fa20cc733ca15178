//! What an operation finds.

/// The oracle's message about an operation.
pub(super) type Finding = Result<(), String>;

/// Prefix of messages about refused changes, which are expected while a worker stalls and the backlog is full.
pub(super) const REFUSED: &str = "refused: ";

pub(super) fn refused(why: impl std::fmt::Display) -> String {
    format!("{REFUSED}{why}")
}
