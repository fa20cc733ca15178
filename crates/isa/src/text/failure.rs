//! Selection of error messages: the failure furthest into the line among all templates.

use super::cursor::Cursor;
use super::error::{Problem, Wanted};

/// An error with its byte offset in the line.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) at: usize,
    pub(super) problem: Problem,
}

/// Mismatches of all templates so far; only the furthest are kept.
#[derive(Debug, Default)]
pub(super) struct Furthest {
    at: usize,
    wanted: Vec<Wanted>,
    /// An invalid name or number, which is more informative than the list of alternatives.
    refused: Option<Problem>,
}

impl Furthest {
    /// Records that a template expected something else.
    pub(super) fn miss(&mut self, at: usize, wanted: Wanted) {
        if self.reaches(at) && !self.wanted.contains(&wanted) {
            self.wanted.push(wanted);
        }
    }

    /// Records a name or number that is well-formed but not valid.
    pub(super) fn refuse(&mut self, at: usize, problem: Problem) {
        if self.reaches(at) && self.refused.is_none() {
            self.refused = Some(problem);
        }
    }

    /// Whether an offset is at least as far as all before; records of nearer ones are dropped.
    fn reaches(&mut self, at: usize) -> bool {
        if at > self.at {
            *self = Self { at, ..Self::default() };
        }
        at == self.at
    }

    /// The error for the whole line.
    pub(super) fn into_failure(self, line: &str) -> Failure {
        let Self { at, wanted, refused } = self;
        let found = Cursor::new(line.get(at..).unwrap_or("")).found();
        Failure { at, problem: refused.unwrap_or(Problem::Unexpected { wanted, found }) }
    }
}
