//! Errors of case files.

use std::io;
use std::path::PathBuf;

use paceline_classic::text::TextError;
use paceline_isa::AssembleError;

/// Error of a case file or directory.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("{}: {error}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is not a valid case file.
    #[error("{}:{error}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ParseError,
    },
}

/// Position and cause of an error in a case file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {problem}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// The cause.
    pub problem: Problem,
}

/// Error at a line of a case file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The line comes from a snippet or a row of a table.
    #[error("{problem} ({within})")]
    Within {
        /// The error.
        problem: Box<Problem>,
        /// Line in the snippet, or line of the row.
        within: String,
    },
    /// A snippet, a table or a list of parameters is malformed or used wrongly.
    #[error(transparent)]
    Expand(#[from] ExpandError),
    /// A line in the first column is not `name: value`.
    #[error("expected a directive `name: value`")]
    NotADirective,
    /// An indented line follows no directive with a block.
    #[error("this line is indented but belongs to no block")]
    StrayBlock,
    /// No directive has this name.
    #[error("unknown directive `{0}`")]
    UnknownDirective(String),
    /// `types` has an error.
    #[error("declarations are indented below `types:`")]
    NotABlock,
    /// `network` has an error.
    #[error("network: {0}")]
    Network(String),
    /// The directive is not allowed at this place.
    #[error("`{0}` cannot come here: the order is case, type, engines, types, maps, programs, runs, afters")]
    Misplaced(String),
    /// The directive is a duplicate.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// The file does not begin with a case.
    #[error("`{0}` comes before the first `case`")]
    NoCase(String),
    /// A name is empty or has characters other than `a-z0-9_`.
    #[error("`{0}` is no name of lower-case letters, digits and underscores")]
    BadName(String),
    /// A value is not one of the allowed ones.
    #[error("`{found}` is no {what}")]
    NotA {
        /// Expected value.
        what: &'static str,
        /// Value found.
        found: String,
    },
    /// A word is missing at the end of a directive.
    #[error("missing: {0}")]
    Missing(&'static str),
    /// A line of contents has no ` = `.
    #[error("expected `KEY = VALUE`")]
    NotAnElement,
    /// A key or value does not have the map's size.
    #[error("{what} has {found} bytes, the map's {what}s have {expected}")]
    ElementSize {
        /// `key` or `value`.
        what: &'static str,
        /// Size found, in bytes.
        found: usize,
        /// Size expected, in bytes.
        expected: u32,
    },
    /// No map has this name.
    #[error("no map `{0}`")]
    NoMap(String),
    /// Data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A program cannot be assembled. The error has the line of the file.
    #[error("column {}: {}", .0.column, .0.problem)]
    Assemble(AssembleError),
    /// A classic program cannot be assembled. The error has the line of the file.
    #[error("column {}: {}", .0.column, .0.problem)]
    AssembleClassic(TextError),
    /// A mark does not follow an instruction.
    #[error("`#!` stands after no instruction")]
    StrayMark,
    /// The case has no comment with its purpose.
    #[error("case `{0}` has no comment line directly above it that says what it is for")]
    NoPurpose(String),
    /// The case has no program.
    #[error("case `{0}` has no program")]
    NoProgram(String),
    /// The case has no expectation.
    #[error("case `{0}` expects nothing")]
    NoExpectation(String),
    /// Two directives contradict each other.
    #[error("`{0}` contradicts what the verifier is expected to say")]
    Contradiction(String),
}

/// Error in snippets, preludes or tables.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// A file that another includes cannot be read.
    #[error("include: {path}: {cause}")]
    Include {
        /// Path in the directive.
        path: String,
        /// Why.
        cause: String,
    },
    /// An included file has a line outside of snippets and tables.
    #[error("an included file holds `snippet:` and `table:` only")]
    NotIncluded,
    /// No parameter has this name.
    #[error("no parameter `${0}`")]
    NoParameter(String),
    /// No line of the case uses this column of its own table.
    #[error("column `{0}` is used nowhere")]
    UnusedColumn(String),
    /// No snippet has this name.
    #[error("no snippet `{0}`")]
    NoSnippet(String),
    /// A snippet uses itself, directly or indirectly.
    #[error("snippet `{0}` uses itself")]
    Recursion(String),
    /// The number of arguments differs from the snippet's number of parameters.
    #[error("snippet `{name}` has {expected} parameters, not {found}")]
    Arguments {
        /// The snippet.
        name: String,
        /// Number of arguments.
        found: usize,
        /// Number of parameters.
        expected: usize,
    },
    /// The number of cells in a row differs from the table's number of columns.
    #[error("{found} cells in a table of {expected} columns")]
    Cells {
        /// Number of cells.
        found: usize,
        /// Number of columns.
        expected: usize,
    },
    /// No table has this name.
    #[error("no table `{0}`")]
    NoTable(String),
    /// A table has no rows.
    #[error("a table without rows")]
    NoRows,
    /// A column names a row of `each` that does not exist.
    #[error("no row `{0}` in `each`")]
    NoRow(String),
    /// A parenthesis is not closed, or text follows it.
    #[error("expected `NAME` or `NAME(A, B...)`")]
    NotACall,
}

/// Error in data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// No term begins with this word.
    #[error("unknown term `{0}` in data")]
    UnknownTerm(String),
    /// A term has too few arguments.
    #[error("`{0}` lacks an argument")]
    MissingArgument(String),
    /// An argument of a term is invalid.
    #[error("`{found}` is no {what}")]
    BadArgument {
        /// Expected argument.
        what: &'static str,
        /// Argument found.
        found: String,
    },
    /// An integer does not fit its size.
    #[error("{value} does not fit {bits} bits")]
    TooBig {
        /// The integer.
        value: i128,
        /// The size.
        bits: u32,
    },
    /// A string is not terminated.
    #[error("a string has no closing quote")]
    OpenString,
    /// A modifier does not follow a layer that it applies to.
    #[error("`{0}` follows no layer that has one")]
    StrayModifier(String),
    /// The packet is longer than the length after `pad`.
    #[error("the packet already has {len} bytes, more than `pad {to}`")]
    PadTooShort {
        /// Length of the packet, in bytes.
        len: usize,
        /// Length after `pad`, in bytes.
        to: usize,
    },
    /// A term follows `pad`.
    #[error("`pad` must be the last term")]
    PadNotLast,
    /// The checksum of a transport layer requires an IP layer before it.
    #[error("`{0}` needs `ipv4` or `ipv6` before it")]
    NoNetworkLayer(&'static str),
}
