//! Addresses of the functions and blocks around an entry, where a location without a list holds.

use std::ops::Range;

/// Scopes from the unit inwards, with their depth among the entries.
#[derive(Default)]
pub(crate) struct Scopes {
    stack: Vec<(isize, Vec<Range<u64>>)>,
}

impl Scopes {
    /// Leaves the scopes that an entry at this depth is not in.
    pub(crate) fn leave(&mut self, depth: isize) {
        while self.stack.last().is_some_and(|(inner, _)| *inner >= depth) {
            self.stack.pop();
        }
    }

    /// Enters a scope.
    pub(crate) fn enter(&mut self, depth: isize, ranges: Vec<Range<u64>>) {
        self.stack.push((depth, ranges));
    }

    /// Addresses of the innermost scope.
    pub(crate) fn ranges(&self) -> &[Range<u64>] {
        self.stack.last().map(|(_, ranges)| ranges.as_slice()).unwrap_or_default()
    }
}
