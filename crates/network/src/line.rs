//! Lines of words, as tools print them that know no JSON.

/// An error in a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LineProblem {
    /// It is nothing that `ss`, `conntrack` or `sysctl` print.
    #[error("this is neither a list of ip's nor a line of ss, conntrack or sysctl")]
    Unknown,
    /// A word is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A word has no such values.
    #[error("{field}: {value} is {wrong}")]
    Wrong {
        /// The field.
        field: &'static str,
        /// The text found.
        value: String,
        /// The cause.
        wrong: &'static str,
    },
    /// An interface that is in no list before.
    #[error("there is no interface {0}; its list must come before what names it")]
    NoInterface(String),
}

impl LineProblem {
    pub(crate) fn wrong(field: &'static str, value: &str, wrong: &'static str) -> Self {
        Self::Wrong { field, value: value.to_owned(), wrong }
    }
}

/// The words of a line, one after the other.
pub(crate) struct Words<'a>(std::str::SplitWhitespace<'a>);

impl<'a> Words<'a> {
    pub(crate) fn new(line: &'a str) -> Self {
        Self(line.split_whitespace())
    }

    /// The next word, which must be there.
    pub(crate) fn next(&mut self, field: &'static str) -> Result<&'a str, LineProblem> {
        self.0.next().ok_or(LineProblem::Missing(field))
    }

    /// The next word, a number.
    pub(crate) fn number(&mut self, field: &'static str) -> Result<u32, LineProblem> {
        number(field, self.next(field)?)
    }

    /// The words that are left.
    pub(crate) fn rest(self) -> impl Iterator<Item = &'a str> {
        self.0
    }
}

/// A decimal number.
pub(crate) fn number<T: std::str::FromStr>(field: &'static str, text: &str) -> Result<T, LineProblem> {
    text.parse().map_err(|_| LineProblem::wrong(field, text, "no such number"))
}
