//! Lines of an expanded text, and their origins.

use std::fmt::Write;

use crate::case::error::{ParseError, Problem};

/// Origin of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// Line in the case file; for a line of a snippet the line of its use.
    pub(super) line: usize,
    /// Line in an included file or in a snippet.
    pub(super) snippet: Option<(Option<String>, usize)>,
    /// Line of the row whose cells it has.
    pub(super) row: Option<usize>,
}

impl Origin {
    /// A line of the case file, or of the included file of this name.
    pub(super) fn written(file: Option<&str>, line: usize) -> Self {
        let snippet = file.map(|file| (Some(file.to_owned()), line));
        Self { line, snippet, row: None }
    }

    /// The origin of a snippet's line that this line uses.
    pub(super) fn using(&self, used: &Self) -> Self {
        let snippet = used.snippet.clone().unwrap_or((None, used.line));
        Self { snippet: Some(snippet), ..self.clone() }
    }

    pub(super) fn error(&self, problem: Problem) -> ParseError {
        let mut within = String::new();
        if let Some((file, line)) = &self.snippet {
            let _ = match file {
                Some(file) => write!(within, "{file}:{line}"),
                None => write!(within, "snippet, line {line}"),
            };
        }
        if let Some(row) = self.row {
            let _ = write!(within, "{}row, line {row}", if within.is_empty() { "" } else { "; " });
        }
        let problem = match within.is_empty() {
            true => problem,
            false => Problem::Within { problem: Box::new(problem), within },
        };
        ParseError { line: self.line, problem }
    }
}

/// A line and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// Whether a line is blank or a comment; `#!` is not a comment.
pub(super) fn is_blank_or_comment(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with('#') && !text.starts_with("#!")
}

/// Lines without their common indentation, blank lines and comments.
pub(super) fn dedent(mut lines: Vec<Line>) -> Vec<Line> {
    lines.retain(|line| !is_blank_or_comment(&line.text));
    let indent = |line: &Line| line.text.len() - line.text.trim_start().len();
    let shared = lines.iter().map(indent).min().unwrap_or(0);
    lines.iter_mut().for_each(|line| drop(line.text.drain(..shared)));
    lines
}
