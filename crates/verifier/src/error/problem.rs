//! The outcome of a check.

use std::panic::Location;

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

/// What is always there, by an invariant of the verifier: a default in its place could accept an unsafe program.
#[track_caller]
#[inline]
pub(crate) fn invariant<T>(there: Option<T>, invariant: &'static str) -> Check<T> {
    match there {
        Some(there) => Ok(there),
        None => broken(invariant, Location::caller()),
    }
}

#[cold]
fn broken<T>(invariant: &'static str, place: &'static Location<'static>) -> Check<T> {
    reject(Cause::Internal { invariant, place })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_invariant_is_a_refusal_that_tells_the_place() {
        assert!(matches!(invariant(Some(1), "one is there"), Ok(1)));
        let text = invariant(None::<u8>, "none is there").unwrap_err().cause.to_string();
        assert!(text.contains("problem.rs") && text.ends_with("none is there"), "{text}");
    }
}
