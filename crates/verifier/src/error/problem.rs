//! The outcome of a check.

use super::cause::Cause;
use super::hint::Hint;

/// A violated rule; the walk adds place and path.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) cause: Cause,
    pub(crate) hint: Option<Hint>,
}

impl Problem {
    pub(crate) fn with(self, hint: Hint) -> Self {
        Self { hint: Some(hint), ..self }
    }
}

impl From<Cause> for Problem {
    fn from(cause: Cause) -> Self {
        Self { cause, hint: None }
    }
}

/// The result of checking a rule.
pub(crate) type Check<T = ()> = Result<T, Box<Problem>>;

/// Fails a rule.
pub(crate) fn reject<T>(cause: Cause) -> Check<T> {
    Err(Box::new(cause.into()))
}

/// Fails a rule, with a fix.
pub(crate) fn reject_with<T>(cause: Cause, hint: Hint) -> Check<T> {
    Err(Box::new(Problem::from(cause).with(hint)))
}
