//! What the code generator by the form lacks, so that a program is compiled from its instructions instead, or interpreted.

use std::fmt;

use paceline_ir::ChainError;

use crate::settings::CodeSource;

/// An operation without code from the form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Lack {
    /// Checks of each access: checked code relies on no fact of the verifier.
    Checks,
    /// A program that nobody verified.
    Unverified,
    /// The form of an instruction of this slot.
    Form {
        /// Slot.
        slot: u32,
    },
    /// A chain of programs of several types.
    Kinds,
    /// Programs that cannot be one function.
    Fused(ChainError),
    /// A frame that is larger than a page, below which there may be no guard page.
    Frame {
        /// Its size in bytes.
        bytes: u32,
    },
    /// A legacy packet load in a subprogram, whose context is not known.
    PacketLoadInSubprogram,
    /// A helper or kernel function without an implementation.
    Function {
        /// Slot of the call.
        slot: u32,
    },
    /// A place in the context that is no field.
    ContextField {
        /// Offset in bytes.
        offset: i32,
    },
    /// A map that the code is not linked with as the operation needs it.
    Map {
        /// Its index.
        index: u32,
    },
}

impl Lack {
    /// This, if code from the form is asked for.
    pub(crate) fn where_asked(self, source: CodeSource) -> Option<Self> {
        (source != CodeSource::Instructions).then_some(self)
    }
}

impl fmt::Display for Lack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Checks => f.write_str("checks of each access"),
            Self::Unverified => f.write_str("programs that nobody verified"),
            Self::Form { slot } => write!(f, "the form of instruction {slot}"),
            Self::Kinds => f.write_str("programs of several types in a chain"),
            Self::Fused(cause) => write!(f, "a chain: {cause}"),
            Self::Frame { bytes } => write!(f, "a frame of {bytes} bytes"),
            Self::PacketLoadInSubprogram => f.write_str("packet loads in subprograms"),
            Self::Function { slot } => write!(f, "the function that instruction {slot} calls"),
            Self::ContextField { offset } => write!(f, "the context at offset {offset}"),
            Self::Map { index } => write!(f, "map {index} as it is used"),
        }
    }
}
