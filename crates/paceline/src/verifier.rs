//! The verifier: facts, refusals and observers.
//!
//! [`Object::verify`](crate::Object::verify) is the usual way to it. A [`Refusal`] names the guilty instruction, the [`Cause`] and the
//! branches that lead there; an [`Observer`] sees the [`state`] before each instruction.

pub use paceline_verifier::{
    Base, Branch, CallbackFact, Cause, FunctionFact, Hint, InsnFact, KeyFact, MAX_BYTES, MAX_INSTRUCTIONS,
    MAX_USED_MAPS, MAX_WORK, MapFact, MemoryFact, Observer, OffsetRange, Options, PathEnd, Refusal, RegName,
    StackFact, Stats, Verified, verify, verify_observed,
};

/// Abstract state of registers and stack before an instruction.
pub mod state {
    pub use paceline_verifier::domain::{Bounds, Number, Scalar as AbstractNumber, Tnum};
    pub use paceline_verifier::state::{
        Buffer, Byte, Dynptr, DynptrMemory, Frame, Lent, Link, Lock, Lost, MAX_STACK, MapRef, NumIterator,
        PacketRange, Pointer, Progress, Reference, Region, Scalar, Slot, Stack, Stale, State, Target, Value,
    };
}
