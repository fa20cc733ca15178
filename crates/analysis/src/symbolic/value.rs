//! Values of registers.

use crate::solver::Term;

/// Memory that a pointer leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Region {
    /// The context.
    Context,
    /// The stack of a function, by its number of callers. Offsets are from the frame pointer.
    Stack(usize),
    /// The packet, its headroom and what lies behind it. Offsets are from where the packet began when it came in.
    Packet,
    /// An object of the state: a value of a map, a record of a ring buffer.
    Object(usize),
    /// A value of an array to which no program writes, by its number.
    Fixed(usize),
}

/// A pointer: a region, and an offset of 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Pointer {
    pub(crate) region: Region,
    pub(crate) offset: Term,
}

/// The value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Value {
    /// A number of 64 bits.
    Number(Term),
    /// A pointer, which is not null.
    Pointer(Pointer),
    /// A map, by its index.
    Map(usize),
    /// A function, by its first slot.
    Code(usize),
    /// Nothing that may be read.
    Unset,
}
