//! Errors of construction.

use paceline_isa::Insn;
use thiserror::Error;

use crate::internal::Internal;

/// A program that cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("instruction {slot}: {cause}")]
pub struct BuildError {
    /// Slot of the instruction.
    pub slot: usize,
    /// Why.
    pub cause: BuildCause,
}

/// Reasons why a program cannot be built. The verifier admits none of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BuildCause {
    /// An instruction that no operation stands for.
    #[error("{0} has no operation")]
    Unsupported(Insn),
    /// The next instruction, or a jump's target, is none of the function's that the verifier reached.
    #[error("slot {0} follows, which is not reached or not in the function")]
    Flow(i64),
    /// An access without a fact about it.
    #[error("it is not known what memory it accesses")]
    NoFact,
    /// An access to the context at an offset that is not constant.
    #[error("it accesses the context at no constant offset")]
    Context,
    /// A call of something that is no function of the program: of this slot, if it has one.
    #[error("a call is of no function, but of slot {0:?}")]
    NoFunction(Option<i64>),
    /// A function that calls itself.
    #[error("the function calls itself")]
    Recursion,
    /// A state that construction rules out: a bug of Paceline.
    #[error(transparent)]
    Internal(#[from] Internal),
}
