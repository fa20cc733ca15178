//! Lines of an expanded text, and where they were written.

use std::fmt::Write;

use crate::case::error::{ParseError, Problem};

/// Where a line was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Origin {
    /// The line in the case file; for a line of a snippet that of its use.
    pub(super) line: usize,
    /// A line of an included file, or of a snippet.
    pub(super) snippet: Option<(Option<String>, usize)>,
    /// The line of the row whose cells are in it.
    pub(super) row: Option<usize>,
}

impl Origin {
    /// A line of the case file, or of one that is included by this name.
    pub(super) fn written(file: Option<&str>, line: usize) -> Self {
        let snippet = file.map(|file| (Some(file.to_owned()), line));
        Self { line, snippet, row: None }
    }

    /// The origin of a line of a snippet that this line uses.
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

/// A line and where it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    pub(super) origin: Origin,
}

/// Whether a line says nothing; `#!` says something.
pub(super) fn is_blank_or_comment(text: &str) -> bool {
    let text = text.trim_start();
    text.is_empty() || text.starts_with('#') && !text.starts_with("#!")
}

/// Lines without the indentation that they share, and without blank lines and comments.
pub(super) fn dedent(mut lines: Vec<Line>) -> Vec<Line> {
    lines.retain(|line| !is_blank_or_comment(&line.text));
    let indent = |line: &Line| line.text.len() - line.text.trim_start().len();
    let shared = lines.iter().map(indent).min().unwrap_or(0);
    lines.iter_mut().for_each(|line| drop(line.text.drain(..shared)));
    lines
}
