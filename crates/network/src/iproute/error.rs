//! Errors in the text of a network.

/// Reasons why a text cannot be parsed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// Invalid JSON.
    #[error("line {line}, column {column}: {problem}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The cause.
        problem: String,
    },
    /// A malformed line.
    #[error("line {line}: {problem}")]
    Line {
        /// Line, from 1.
        line: usize,
        /// The cause.
        problem: Problem,
    },
    /// An entry of a JSON list that is malformed, or not supported.
    #[error("list {list}, entry {entry}: {problem}")]
    Entry {
        /// Number of the list in the text, from 1.
        list: usize,
        /// Number of the entry in the list, from 1.
        entry: usize,
        /// The cause.
        problem: Problem,
    },
}

/// The cause of an error in an entry or a line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The entry is not an interface, address, route, neighbor, rule or setting.
    #[error("this is nothing that ip-address, -route, -neighbour, -rule or -netconf print")]
    UnknownEntry,
    /// The line is not in the format of `ss`, `conntrack` or `sysctl`.
    #[error("this is neither a list of ip's nor a line of ss, conntrack or sysctl")]
    UnknownLine,
    /// A field is missing.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// The value of a field is malformed or out of range.
    #[error("{field}: {value} is {wrong}")]
    Wrong {
        /// The field.
        field: &'static str,
        /// The value found, in JSON as JSON.
        value: String,
        /// The cause.
        wrong: &'static str,
    },
    /// The interface is not in any preceding list.
    #[error("there is no interface {0}; its list must come before what names it")]
    NoInterface(String),
    /// Two interfaces have the same index or name.
    #[error("there is an interface of this index or name already")]
    Twice,
    /// A rule has a condition that Paceline does not support.
    #[error("the rule's condition {0} is not supported")]
    Condition(String),
}

impl Problem {
    pub(crate) fn wrong(field: &'static str, value: &str, wrong: &'static str) -> Self {
        Self::Wrong { field, value: value.to_owned(), wrong }
    }
}

impl NetworkError {
    /// A syntax error in the list at byte `at` of the text.
    pub(crate) fn json(text: &str, at: usize, error: &serde_json::Error) -> Self {
        let before = text.get(..at).unwrap_or_default();
        let start = before.rfind('\n').map_or(at, |line| at - line - 1);
        Self::Json {
            line: before.matches('\n').count() + error.line(),
            column: error.column() + if error.line() == 1 { start } else { 0 },
            // serde_json's position is relative to the list's start.
            problem: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        }
    }
}
