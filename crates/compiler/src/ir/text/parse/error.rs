//! Errors of text.

use thiserror::Error;

use crate::ir::check::CheckError;

/// Text that is no module.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("line {line}: {cause}")]
pub struct ParseError {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub cause: ParseCause,
}

/// What is wrong with text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseCause {
    /// Something else was expected.
    #[error("expected {expected}, found {found}")]
    Expected {
        /// What was expected.
        expected: &'static str,
        /// What is there.
        found: String,
    },
    /// No operation has this name.
    #[error("there is no operation '{0}'")]
    UnknownOperation(String),
    /// No helper has this name.
    #[error("there is no helper '{0}'")]
    UnknownHelper(String),
    /// A number that does not fit its place.
    #[error("{0} is out of range here")]
    OutOfRange(i128),
    /// A number of a value or block is taken.
    #[error("'{0}' is defined twice")]
    DefinedTwice(String),
    /// An operation with a result has none, or one without has one.
    #[error("the operation has {}", if *.0 { "a result, which is given no name" } else { "no result" })]
    Result(bool),
    /// More arguments than a call can have.
    #[error("a call has at most 5 arguments")]
    TooManyArguments,
    /// Functions are numbered from 0.
    #[error("this must be function {0}")]
    FunctionNumber(usize),
    /// It is no valid module.
    #[error(transparent)]
    Check(#[from] CheckError),
}
