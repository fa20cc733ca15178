//! Where matching fails: the place furthest into the line that any template reached.

use super::cursor::Cursor;
use super::error::{Problem, Wanted};

/// What is wrong, at which byte of the line.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) at: usize,
    pub(super) problem: Problem,
}

/// The misses of all templates tried so far, of which only the furthest count.
#[derive(Debug, Default)]
pub(super) struct Furthest {
    at: usize,
    wanted: Vec<Wanted>,
    /// A word that was understood but refused says more than what could have stood in its place.
    refused: Option<Problem>,
}

impl Furthest {
    /// A template goes on with something else.
    pub(super) fn miss(&mut self, at: usize, wanted: Wanted) {
        if self.reaches(at) && !self.wanted.contains(&wanted) {
            self.wanted.push(wanted);
        }
    }

    /// A word was understood but cannot be.
    pub(super) fn refuse(&mut self, at: usize, problem: Problem) {
        if self.reaches(at) && self.refused.is_none() {
            self.refused = Some(problem);
        }
    }

    /// Whether a place is as far as any before; what was known of nearer ones is forgotten.
    fn reaches(&mut self, at: usize) -> bool {
        if at > self.at {
            *self = Self { at, ..Self::default() };
        }
        at == self.at
    }

    /// The failure of the whole line.
    pub(super) fn into_failure(self, line: &str) -> Failure {
        let Self { at, wanted, refused } = self;
        let found = Cursor::new(line.get(at..).unwrap_or("")).found();
        Failure { at, problem: refused.unwrap_or(Problem::Unexpected { wanted, found }) }
    }
}
