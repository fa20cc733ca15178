//! Operations on the state of a run.

/// An operation on what a run has besides the memory of programs. Programs have none: they are where the programs of a chain meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RunOp {
    /// A program begins: its tail calls and rounds are counted from 0.
    Begin {
        /// Its position in the chain.
        program: u32,
        /// Whether the packet's own area is made what it is for a new packet.
        area: bool,
    },
    /// Adds one to a counter of the chain.
    Count {
        /// Index of the counter.
        counter: u32,
    },
    /// Does the work that a program has deferred to its end.
    Finish,
    /// Whether a program that was tail called has faulted: a number other than 0.
    Fault,
}
