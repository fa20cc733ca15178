//! Lines of words, the output format of tools without JSON.

use super::error::Problem;

/// The words of a line.
pub(crate) struct Words<'a>(std::str::SplitWhitespace<'a>);

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        Self(line.split_whitespace())
    }

    /// The next word, which is required.
    pub(crate) fn next(&mut self, field: &'static str) -> Result<&'a str, Problem> {
        self.0.next().ok_or(Problem::Missing(field))
    }

    /// The next word as a number.
    pub(crate) fn number(&mut self, field: &'static str) -> Result<u32, Problem> {
        number(field, self.next(field)?)
    }

    /// The remaining words.
    pub(crate) fn rest(self) -> impl Iterator<Item = &'a str> {
        self.0
    }
}

/// A decimal number.
pub(crate) fn number<T: std::str::FromStr>(field: &'static str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| Problem::wrong(field, text, "no such number"))
}
