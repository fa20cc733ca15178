//! What can be wrong with a text.

use std::fmt::{Display, Formatter};

use crate::Reg;

/// Why a text is not a program, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {problem}")]
pub struct AssembleError {
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
    /// The text goes on in no way the assembler knows.
    #[error("expected {}, found {}", join(.wanted), or_end(.found))]
    Unexpected {
        /// All that could stand there.
        wanted: Vec<Wanted>,
        /// The word or character that does; `None` at the end of the line.
        found: Option<String>,
    },
    /// A number does not fit its field.
    #[error("{value} is out of range, {low} to {high}")]
    Range {
        /// The number.
        value: i128,
        /// The least that fits.
        low: i128,
        /// The greatest that fits.
        high: i128,
    },
    /// The distance to a label does not fit the jump.
    #[error("`{label}` is {distance} slots away, too far for this instruction")]
    TooFar {
        /// The label.
        label: String,
        /// Slots from the next instruction.
        distance: i64,
    },
    /// No label has this name.
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
    /// A listing's opcode or bytes belong to no instruction.
    #[error("unknown opcode {0:#04x} in the listing")]
    UnknownOpcode(u8),
    /// The bytes of a listing are not those of its text.
    #[error("the bytes beside `{0}` say something else")]
    Bytes(String),
    /// Lines of a listing are missing.
    #[error("the listing is at slot {said}, but slot {expected} comes next")]
    Slot {
        /// The slot the line names.
        said: i128,
        /// The slot after the line before.
        expected: i128,
    },
    /// A relocation of a listing has no instruction to belong to.
    #[error("the relocation belongs to no instruction that can take a name")]
    Relocation,
}

/// Something that could stand at some place of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// This text.
    Text(&'static str),
    /// A register with this prefix, `r` or `w`.
    Register(char),
    /// This register again.
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
    /// Nothing more.
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
