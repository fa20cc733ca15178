//! Expectations that are not met.

use paceline::Collection;

/// The maps of a subject.
pub(super) type Parts<'a> = &'a [(String, Collection)];

/// An expectation that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// The differences, one in each line.
    pub(super) lines: Vec<String>,
    /// An expectation that the outcome meets, as TOML.
    pub(super) instead: Option<String>,
}

impl Mismatch {
    pub(super) fn new(what: &str, expected: &str, actual: &str, instead: String) -> Self {
        Self { lines: vec![format!("{what}: expected {expected}, got {actual}")], instead: Some(instead) }
    }

    pub(super) fn without(line: String) -> Self {
        Self { lines: vec![line], instead: None }
    }
}
