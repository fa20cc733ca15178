//! Errors of translation.

use paceline_compiler::codegen::GenerateError;
use paceline_compiler::ir::{BuildError, PassError};
use thiserror::Error;

/// A verified program has no operations: a bug of Paceline, not of the program.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TranslateError {
    /// It has no form.
    #[error("internal error of the threaded interpreter")]
    Build(#[from] BuildError),
    /// A pass left a function that is not well formed.
    #[error("internal error of the threaded interpreter")]
    Pass(#[from] PassError),
    /// No operations can be selected.
    #[error("internal error of the threaded interpreter")]
    Generate(#[from] GenerateError),
    /// Something has no operation.
    #[error("internal error of the threaded interpreter: {0}")]
    Lack(&'static str),
}
