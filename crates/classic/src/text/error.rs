//! Syntax errors of filters.

use super::super::insn::MAX_INSNS;

/// A syntax error with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The error.
    pub problem: Problem,
}

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// An unexpected token.
    #[error("expected {wanted}, found {found}")]
    Unexpected {
        /// The expected token.
        wanted: &'static str,
        /// The token found.
        found: String,
    },
    /// A character that is not part of the language.
    #[error("unexpected character `{0}`")]
    Character(char),
    /// An unterminated comment.
    #[error("a comment has no end `*/`")]
    OpenComment,
    /// A number that is out of range.
    #[error("{value} is out of range, {low} to {high}")]
    Range {
        /// The number.
        value: i64,
        /// Minimum.
        low: i64,
        /// Maximum.
        high: i64,
    },
    /// A number that does not fit 32 bits.
    #[error("`{0}` is no number of 32 bits")]
    Number(String),
    /// The instruction does not exist.
    #[error("unknown instruction `{0}`")]
    Instruction(String),
    /// The label does not exist.
    #[error("no label `{0}`")]
    UnknownLabel(String),
    /// Two labels have the same name.
    #[error("label `{0}` is set twice")]
    LabelTwice(String),
    /// Jumps must be forward.
    #[error("label `{0}` is not after the jump to it: classic programs only jump forward")]
    Backward(String),
    /// A conditional jump that would skip more than 255 instructions.
    #[error("label `{label}` is {distance} instructions away, more than the 255 of a conditional jump")]
    TooFar {
        /// The label.
        label: String,
        /// Instructions in between.
        distance: usize,
    },
    /// The number of instructions differs from the one that a decimal text starts with.
    #[error("the text says {said} instructions and has {found}")]
    Count {
        /// The number in the first line.
        said: usize,
        /// Number of instructions that follow.
        found: usize,
    },
    /// More instructions than the maximum.
    #[error("more than {MAX_INSNS} instructions")]
    TooLong,
}
