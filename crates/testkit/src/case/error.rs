//! What can be wrong with a case file.

use std::io;
use std::path::PathBuf;

use paceline_classic::text::TextError;
use paceline_isa::AssembleError;

/// Why a case file cannot be used.
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
    /// It is no case file.
    #[error("{}:{error}", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Why.
        error: ParseError,
    },
}

/// Why a text is no case file, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}: {problem}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong at some line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The line comes from a snippet or a row of a table.
    #[error("{problem} ({within})")]
    Within {
        /// What is wrong.
        problem: Box<Problem>,
        /// The snippet's line, the row's line.
        within: String,
    },
    /// A snippet, a table or a list of parameters cannot be read or used.
    #[error(transparent)]
    Expand(#[from] ExpandError),
    /// A line in the first column is no `name: value`.
    #[error("expected a directive `name: value`")]
    NotADirective,
    /// An indented line has no directive that could have a block.
    #[error("this line is indented but belongs to no block")]
    StrayBlock,
    /// No directive has this name.
    #[error("unknown directive `{0}`")]
    UnknownDirective(String),
    /// Declarations stand beside their directive.
    #[error("declarations are indented below `types:`")]
    NotABlock,
    /// The lines of `network` say nothing that there is.
    #[error("network: {0}")]
    Network(String),
    /// The directive cannot come here.
    #[error("`{0}` cannot come here: the order is case, type, engines, types, maps, programs, runs, afters")]
    Misplaced(String),
    /// It was given before.
    #[error("`{0}` is given twice")]
    Twice(String),
    /// The file does not begin with a case.
    #[error("`{0}` comes before the first `case`")]
    NoCase(String),
    /// A name has characters other than `a-z0-9_`, or none.
    #[error("`{0}` is no name of lower-case letters, digits and underscores")]
    BadName(String),
    /// A value is not one of those possible.
    #[error("`{found}` is no {what}")]
    NotA {
        /// What is wanted.
        what: &'static str,
        /// What stands there.
        found: String,
    },
    /// A word is missing at the end of a directive.
    #[error("missing: {0}")]
    Missing(&'static str),
    /// A line of contents has no ` = `.
    #[error("expected `KEY = VALUE`")]
    NotAnElement,
    /// A key or value is not as long as the map says.
    #[error("{what} has {found} bytes, the map's {what}s have {expected}")]
    ElementSize {
        /// `key` or `value`.
        what: &'static str,
        /// Bytes given.
        found: usize,
        /// Bytes wanted.
        expected: u32,
    },
    /// There is no such map.
    #[error("no map `{0}`")]
    NoMap(String),
    /// Data cannot be read.
    #[error(transparent)]
    Data(#[from] DataError),
    /// A program cannot be assembled. The line of the error is already in its place.
    #[error("column {}: {}", .0.column, .0.problem)]
    Assemble(AssembleError),
    /// A classic program cannot be assembled. The line of the error is already in its place.
    #[error("column {}: {}", .0.column, .0.problem)]
    AssembleClassic(TextError),
    /// A mark stands where no instruction is.
    #[error("`#!` stands after no instruction")]
    StrayMark,
    /// The case does not say what it is for.
    #[error("case `{0}` has no comment line directly above it that says what it is for")]
    NoPurpose(String),
    /// The case has no program.
    #[error("case `{0}` has no program")]
    NoProgram(String),
    /// Nothing in the case can fail.
    #[error("case `{0}` expects nothing")]
    NoExpectation(String),
    /// Two directives say the contrary.
    #[error("`{0}` contradicts what the verifier is expected to say")]
    Contradiction(String),
}

/// Why snippets, preludes and tables cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// A file that another includes cannot be read.
    #[error("include: {path}: {cause}")]
    Include {
        /// As the directive names it.
        path: String,
        /// Why.
        cause: String,
    },
    /// A file that is included has a line that is part of no snippet and no table.
    #[error("an included file holds `snippet:` and `table:` only")]
    NotIncluded,
    /// No parameter has this name.
    #[error("no parameter `${0}`")]
    NoParameter(String),
    /// A column of a case's own table is in no line of the case.
    #[error("column `{0}` is used nowhere")]
    UnusedColumn(String),
    /// No snippet has this name.
    #[error("no snippet `{0}`")]
    NoSnippet(String),
    /// A snippet is used, directly or not, by itself.
    #[error("snippet `{0}` uses itself")]
    Recursion(String),
    /// A snippet is used with another number of arguments than it has parameters.
    #[error("snippet `{name}` has {expected} parameters, not {found}")]
    Arguments {
        /// The snippet.
        name: String,
        /// Arguments given.
        found: usize,
        /// Parameters.
        expected: usize,
    },
    /// A row of a table has another number of cells than the table has columns.
    #[error("{found} cells in a table of {expected} columns")]
    Cells {
        /// Cells given.
        found: usize,
        /// Columns.
        expected: usize,
    },
    /// No table has this name.
    #[error("no table `{0}`")]
    NoTable(String),
    /// A table has no row.
    #[error("a table without rows")]
    NoRows,
    /// A column is for a row of `each` that does not exist.
    #[error("no row `{0}` in `each`")]
    NoRow(String),
    /// A parenthesis is not closed, or text follows it.
    #[error("expected `NAME` or `NAME(A, B...)`")]
    NotACall,
}

/// Why data cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// No term begins like this.
    #[error("unknown term `{0}` in data")]
    UnknownTerm(String),
    /// A term lacks an argument.
    #[error("`{0}` lacks an argument")]
    MissingArgument(String),
    /// An argument is not what the term wants.
    #[error("`{found}` is no {what}")]
    BadArgument {
        /// What is wanted.
        what: &'static str,
        /// What stands there.
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
    /// A string does not end.
    #[error("a string has no closing quote")]
    OpenString,
    /// A modifier follows no layer that it could modify.
    #[error("`{0}` follows no layer that has one")]
    StrayModifier(String),
    /// The packet is already longer than it should be padded to.
    #[error("the packet already has {len} bytes, more than `pad {to}`")]
    PadTooShort {
        /// Bytes there are.
        len: usize,
        /// Bytes wanted.
        to: usize,
    },
    /// Something follows `pad`.
    #[error("`pad` must be the last term")]
    PadNotLast,
    /// A transport layer needs an IP layer before it for its checksum.
    #[error("`{0}` needs `ipv4` or `ipv6` before it")]
    NoNetworkLayer(&'static str),
}
