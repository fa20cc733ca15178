//! Errors in test files.

use std::io;
use std::path::PathBuf;

use paceline::packet::TextError;
use paceline::text_file::TextFileError;

use super::in_c::FindError;
use crate::common::failure::CommandError;

/// A place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// From 1.
    pub(super) line: usize,
    /// In characters, from 1.
    pub(super) column: usize,
}

impl Place {
    /// The place of a byte of a text.
    pub(super) fn of(text: &str, offset: usize) -> Self {
        let before = text.get(..offset).unwrap_or(text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let column = before.get(start..).unwrap_or_default().chars().count() + 1;
        Self { line: before.matches('\n').count() + 1, column }
    }
}

/// Tests that cannot be run.
#[derive(Debug, thiserror::Error)]
pub(super) enum TestError {
    #[error("{name}")]
    Read { name: String, source: TextFileError },
    #[error("{name}")]
    Write { name: String, source: io::Error },
    #[error("{name}:{}:{}: {problem}", .at.line, .at.column)]
    File { name: String, at: Place, problem: Box<Problem> },
    #[error("{}: there are no files *.test.toml, and no objects with tests", .0.display())]
    NoFiles(PathBuf),
    #[error("{0}: the object has no tests")]
    NoTestsInC(String),
    #[error("{name}")]
    InC { name: String, source: FindError },
    #[error("no test has a name or file with `{0}` in it")]
    NoTests(String),
    #[error("there are no tests in these files")]
    Empty,
}

impl CommandError for TestError {
    fn hint(&self) -> Option<String> {
        matches!(self, Self::NoTestsInC(_))
            .then(|| "tests in C are programs in sections such as `xdp/test/NAME/check`".to_owned())
    }
}

/// The cause of an error in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("{0}")]
    Syntax(String),
    #[error("unknown key `{key}` in {table}{}", perhaps(.hint))]
    Unknown { key: String, table: &'static str, hint: Option<String> },
    #[error("`{key}` must be {expected}")]
    Type { key: String, expected: &'static str },
    #[error("{table} needs {what}")]
    Missing { table: &'static str, what: &'static str },
    #[error("one of {0} must be given, and only one")]
    OneOf(&'static str),
    #[error("packet, {0}")]
    Packet(TextError),
    #[error("{0}")]
    Capture(String),
    #[error("no case has a value for `{{{0}}}`")]
    Variable(String),
    #[error("a test has its packet itself, or a list of steps with packets")]
    PacketAndSteps,
    #[error("{0}")]
    Pattern(String),
    #[error("two tests are named `{0}`")]
    SameName(String),
}

fn perhaps(hint: &Option<String>) -> String {
    hint.as_ref().map_or_else(String::new, |hint| format!(", perhaps `{hint}`"))
}
