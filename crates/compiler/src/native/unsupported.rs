//! Features without native code: a program that needs one is interpreted.

use std::fmt;

use crate::ir::{ChainError, PartError};

/// A feature without native code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unsupported {
    /// The form of an instruction of this slot.
    Form {
        /// Slot.
        slot: u32,
    },
    /// Programs that cannot be one function.
    Fused(ChainError),
    /// A program that cannot be one of a chain.
    Part(PartError),
    /// A frame of more than 64 KiB.
    Frame {
        /// Its size in bytes.
        bytes: u32,
    },
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

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form { slot } => write!(f, "the form of instruction {slot}"),
            Self::Fused(cause) => write!(f, "a chain: {cause}"),
            Self::Part(cause) => write!(f, "a program in a chain: {cause}"),
            Self::Frame { bytes } => write!(f, "a frame of {bytes} bytes"),
            Self::Function { slot } => write!(f, "the function that instruction {slot} calls"),
            Self::ContextField { offset } => write!(f, "the context at offset {offset}"),
            Self::Map { index } => write!(f, "map {index} as it is used"),
        }
    }
}
