//! Why a door does not answer.

use std::path::Path;
use std::{fs, io};

/// The reason why a door does not answer.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// A command ends with an error.
    #[error("{command}: {stderr}")]
    Failed {
        /// The command line.
        command: String,
        /// What it prints to standard error.
        stderr: String,
    },
    /// A command does not start, or its file is not there.
    #[error("{what}")]
    Io {
        /// The command or file.
        what: String,
        /// The cause.
        source: io::Error,
    },
    /// A command prints other JSON than it says.
    #[error("{0}: no such JSON")]
    Json(String),
}

pub(super) fn io_problem(path: &Path, source: io::Error) -> Problem {
    Problem::Io { what: path.display().to_string(), source }
}

pub(super) fn read(path: &Path) -> Result<String, Problem> {
    fs::read_to_string(path).map_err(|source| io_problem(path, source))
}
