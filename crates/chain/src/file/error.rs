//! What can be wrong with a chain file.

use std::fmt;

use crate::run_config::did_you_mean;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePlace {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A mistake and its place: `LINE:COLUMN: cause`. The caller adds the file's name before.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct FileError {
    /// Where.
    pub at: FilePlace,
    /// What.
    pub problem: FileProblem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    /// It is no TOML.
    #[error("{0}")]
    Syntax(String),
    /// A key means nothing there.
    #[error("unknown key `{key}` in {table}{}", did_you_mean(.suggestion.as_deref()))]
    UnknownKey {
        /// The key.
        key: String,
        /// Where it stands, in words.
        table: &'static str,
        /// What was most likely meant.
        suggestion: Option<String>,
    },
    /// A value is of the wrong type.
    #[error("`{key}` is {expected}")]
    Type {
        /// The key.
        key: String,
        /// What it should be.
        expected: &'static str,
    },
    /// A key is missing.
    #[error("{table} needs `{key}`")]
    Missing {
        /// Where, in words.
        table: &'static str,
        /// The key, or keys.
        key: &'static str,
    },
    /// Something is named that is not there.
    #[error("no {what} `{name}`{}", did_you_mean(.suggestion.as_deref()))]
    Unknown {
        /// What it should be.
        what: &'static str,
        /// Its name.
        name: String,
        /// What was most likely meant.
        suggestion: Option<String>,
    },
    /// Two programs have one name.
    #[error("another program is named `{0}`")]
    Twice(String),
    /// A program goes by one that is not in the chain.
    #[error("`{0}` is not there to go by: it is the program itself, or was replaced")]
    NotThere(String),
    /// Keys that exclude each other.
    #[error("{0}")]
    Conflict(&'static str),
    /// A map is shared by an object that has it from elsewhere.
    #[error("`{0}` has the map from another object itself; name that one")]
    SharedAgain(String),
    /// A value that JSON does not have.
    #[error("{0} is no value of a map")]
    NoJson(&'static str),
}
