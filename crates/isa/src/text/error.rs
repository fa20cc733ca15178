//! Errors of the assembler.

use std::fmt::{Display, Formatter};

use crate::insn::Reg;

/// A syntax error with its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct AssembleError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// The error.
    pub problem: Problem,
}

/// A syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// An unexpected token.
    #[error("expected {}, found {}", join(.wanted), or_end(.found))]
    Unexpected {
        /// All alternatives.
        wanted: Vec<Wanted>,
        /// The word or character found; `None` at the end of the line.
        found: Option<String>,
    },
    /// A number that is out of range.
    #[error("{value} is out of range, {low} to {high}")]
    Range {
        /// The number.
        value: i128,
        /// Minimum.
        low: i128,
        /// Maximum.
        high: i128,
    },
    /// The distance to a label exceeds the range of the jump.
    #[error("`{label}` is {distance} slots away, too far for this instruction")]
    TooFar {
        /// The label.
        label: String,
        /// Distance in slots from the next instruction.
        distance: i64,
    },
    /// The label does not exist.
    #[error("no label `{0}`")]
    UnknownLabel(String),
    /// Neither a label nor a helper has this name.
    #[error("no subprogram or helper `{0}`")]
    UnknownCallee(String),
    /// No map has this name.
    #[error("no map `{0}`")]
    UnknownMap(String),
    /// No map has this id.
    #[error("no map with id {0}")]
    UnknownMapId(u32),
    /// Two labels have the same name.
    #[error("label `{0}` is already defined")]
    DuplicateLabel(String),
    /// The opcode or bytes of a listing are no instruction.
    #[error("unknown opcode {0:#04x} in the listing")]
    UnknownOpcode(u8),
    /// The bytes of a listing disagree with its text.
    #[error("the bytes beside `{0}` say something else")]
    Bytes(String),
    /// Slot numbers of a listing are not consecutive.
    #[error("the listing is at slot {said}, but slot {expected} comes next")]
    Slot {
        /// The line's slot number.
        said: i128,
        /// The expected slot number.
        expected: i128,
    },
    /// A relocation of a listing without an instruction that it applies to.
    #[error("the relocation belongs to no instruction that can take a name")]
    Relocation,
}

/// An alternative in an error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Literal text.
    Text(&'static str),
    /// A register with this prefix, `r` or `w`.
    Register(char),
    /// The same register as before.
    Same(Reg),
    /// A number.
    Number,
    /// `+` or `-` and a number.
    SignedNumber,
    /// The name of a label.
    Label,
    /// The name of a helper or subprogram.
    Callee,
    /// The name of a map.
    Map,
    /// The end of the line.
    EndOfLine,
}

impl Display for Wanted {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Text(text) => write!(f, "`{text}`"),
            Self::Register(prefix) => write!(f, "a register {prefix}0 to {prefix}10"),
            Self::Same(reg) => write!(f, "register {} again", reg.number()),
            Self::Number => f.write_str("a number"),
            Self::SignedNumber => f.write_str("a number with its sign"),
            Self::Label => f.write_str("a label"),
            Self::Callee => f.write_str("the name of a helper or subprogram"),
            Self::Map => f.write_str("the name of a map"),
            Self::EndOfLine => f.write_str("the end of the line"),
        }
    }
}

/// `a, b or c`
fn join(wanted: &[Wanted]) -> String {
    let names: Vec<String> = wanted.iter().map(ToString::to_string).collect();
    match names.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
    }
}

fn or_end(found: &Option<String>) -> String {
    found.as_ref().map_or_else(|| "the end of the line".to_owned(), |text| format!("`{text}`"))
}
