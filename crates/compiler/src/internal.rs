//! States that the compiler rules out.

use thiserror::Error;

/// A state that the compiler rules out: a bug of Paceline, not of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("internal error of the compiler: {0}")]
pub struct Internal(pub &'static str);
