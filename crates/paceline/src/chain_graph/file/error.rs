//! Errors in chain files.

use std::fmt;

use crate::chain_graph::run_config::did_you_mean;

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilePlace {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for FilePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// An error with its position: `LINE:COLUMN: cause`. The caller prepends the file name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct FileError {
    /// Position.
    pub at: FilePlace,
    /// Error.
    pub problem: FileProblem,
}

/// An error in a chain file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// Invalid TOML.
    #[error("{0}")]
    Syntax(String),
    /// An unknown key.
    #[error("unknown key `{key}` in {table}{}", did_you_mean(.suggestion.as_deref()))]
    UnknownKey {
        /// The key.
        key: String,
        /// Description of its table.
        table: &'static str,
        /// The closest known key.
        suggestion: Option<String>,
    },
    /// A value of the wrong type.
    #[error("`{key}` is {expected}")]
    Type {
        /// The key.
        key: String,
        /// Description of the expected type.
        expected: &'static str,
    },
    /// A key is missing.
    #[error("{table} needs `{key}`")]
    Missing {
        /// Description of the table.
        table: &'static str,
        /// The missing key, or keys.
        key: &'static str,
    },
    /// A reference to a nonexistent item.
    #[error("no {what} `{name}`{}", did_you_mean(.suggestion.as_deref()))]
    Unknown {
        /// Kind of the item.
        what: &'static str,
        /// Its name.
        name: String,
        /// The closest existing name.
        suggestion: Option<String>,
    },
    /// A duplicate program name.
    #[error("another program is named `{0}`")]
    Twice(String),
    /// A placement relative to a program that is not in the chain.
    #[error("`{0}` cannot be a neighbor: it is the program itself, or was replaced")]
    NotThere(String),
    /// Mutually exclusive keys.
    #[error("{0}")]
    Conflict(&'static str),
    /// A map is shared from an object that itself shares it from another one.
    #[error("`{0}` has the map from another object itself; name that one")]
    SharedAgain(String),
    /// A value that JSON cannot represent.
    #[error("{0} is no value of a map")]
    NoJson(&'static str),
}

impl FileProblem {
    /// A reference to an item that none of the names is; the closest one is suggested.
    #[must_use]
    pub fn unknown<'n>(what: &'static str, name: &str, names: impl IntoIterator<Item = &'n str>) -> Self {
        let suggestion = paceline_suggest::nearest(name, names).map(str::to_owned);
        Self::Unknown { what, name: name.to_owned(), suggestion }
    }
}
