//! What can be wrong with a filter's text.

use super::super::insn::MAX_INSNS;

/// Why a text is no filter, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct TextError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong at some place of a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Something else should stand there.
    #[error("expected {wanted}, found {found}")]
    Unexpected {
        /// What should.
        wanted: &'static str,
        /// What does.
        found: String,
    },
    /// A character that no text has.
    #[error("unexpected character `{0}`")]
    Character(char),
    /// A comment does not end.
    #[error("a comment has no end `*/`")]
    OpenComment,
    /// A number does not fit.
    #[error("{value} is out of range, {low} to {high}")]
    Range {
        /// The number.
        value: i64,
        /// The least that fits.
        low: i64,
        /// The greatest that fits.
        high: i64,
    },
    /// A number has more digits than any that fits.
    #[error("`{0}` is no number of 32 bits")]
    Number(String),
    /// There is no such instruction.
    #[error("unknown instruction `{0}`")]
    Instruction(String),
    /// No label has this name.
    #[error("no label `{0}`")]
    UnknownLabel(String),
    /// Two labels have the same name.
    #[error("label `{0}` is set twice")]
    LabelTwice(String),
    /// Jumps go forward only.
    #[error("label `{0}` is not after the jump to it: classic programs only jump forward")]
    Backward(String),
    /// A conditional jump skips 255 instructions at most.
    #[error("label `{label}` is {distance} instructions away, more than the 255 of a conditional jump")]
    TooFar {
        /// The label.
        label: String,
        /// Instructions between.
        distance: usize,
    },
    /// The number of instructions that a decimal text starts with is another one.
    #[error("the text says {said} instructions and has {found}")]
    Count {
        /// What the first line says.
        said: usize,
        /// Instructions that follow.
        found: usize,
    },
    /// More instructions than a program can have.
    #[error("more than {MAX_INSNS} instructions")]
    TooLong,
}
