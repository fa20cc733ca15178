//! What is read, and what is found.

use std::ops::Range;

use gimli::{EndianSlice, NativeEndian};
use paceline_spec::{Enumerators, Scalar};

/// Bytes of a section.
pub(crate) type Reader<'a> = EndianSlice<'a, NativeEndian>;

/// A local variable or parameter while it is in a register.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Local {
    /// Name in the source.
    pub name: String,
    /// Addresses of the instructions before which the register has its value, as the relocated sections have them.
    pub range: Range<u64>,
    /// Number of the register, 0 to 10.
    pub register: u8,
    /// Its type.
    pub scalar: Scalar,
    /// Members of its type, if that is an enumeration: at most 1,024.
    pub enumerators: Enumerators,
}
