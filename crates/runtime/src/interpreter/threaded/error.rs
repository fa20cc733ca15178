//! Errors of translation.

use paceline_compiler::codegen::GenerateError;
use paceline_compiler::ir::{BuildError, PassError};
use thiserror::Error;

/// A verified program has no operations: a bug of Paceline, not of the program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("internal error of the threaded interpreter: {0}")]
pub enum TranslateError {
    /// It has no form.
    Build(#[from] BuildError),
    /// A pass left a function that is not well formed.
    Pass(#[from] PassError),
    /// No operations can be selected.
    Generate(#[from] GenerateError),
    /// Something has no operation.
    Lack(&'static str),
}
