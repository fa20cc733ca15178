//! The steps of a slice before it is a program.

use paceline_isa::{Condition, Operand, Reg, Size, Width};

use crate::slice::value::At;

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    /// An instruction of the program that accesses neither its stack nor its control flow.
    Insn(paceline_isa::Insn),
    /// Loads a register from the stack.
    Load { size: Size, signed: bool, dst: Reg, at: At },
    /// Stores to the stack.
    Store { size: Size, at: At, src: Operand },
    /// Looks a key up and ignores what is found.
    LookUp { map: usize, key: Key },
}

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// On the stack.
    Stack(At),
    /// At the address in `r2`.
    Register,
}

/// A condition of the program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Test {
    pub(crate) width: Width,
    pub(crate) condition: Condition,
    pub(crate) dst: Reg,
    pub(crate) src: Operand,
}

/// Where a step leads: the index of another step, which is a later one; `None` is the end of the slice.
pub(crate) type Next = Option<usize>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Goto(Next),
    Branch { test: Test, taken: Next, otherwise: Next },
}

/// Operations, and where they lead.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) ops: Vec<Op>,
    pub(crate) end: End,
}
