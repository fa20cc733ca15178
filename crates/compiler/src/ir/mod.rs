//! Programs in SSA form: a control-flow graph of blocks with parameters, between the verifier's proof and code.
//!
//! | step | by |
//! |---|---|
//! | [`Verified`](paceline_verifier::Verified) to a [`Module`] | [`build`] |
//! | the programs of a chain as one function | [`chain`](fn@chain) |
//! | a module as text, and back | `Display`, [`parse`] |
//! | whether it is well formed | [`check`] |
//! | what it computes | [`Interpreter`], over a [`Machine`] |
//! | better code | [`optimize`] |
//!
//! A function has values of two types, `i32` and `i64`, each defined once, and about 25 operations ([`Op`]). Addresses are `i64`. 32-bit
//! instructions become operations on `i32` with conversions around them, which cancel out between two of them. The function's stack is
//! memory, until a pass promotes parts of it. The facts of the verifier are part of the form: code that it found unreachable is not
//! built, and each access says where it goes ([`Access`]), from which passes know what a store cannot change ([`Classes`]).
//!
//! The result of a function for inputs that the verifier does not admit is unspecified. For all others passes keep results, writes to
//! memory and calls, in their order. The interpreter is their oracle.

mod analyses;
pub mod arena;
mod build;
pub mod cfg;
mod chain;
mod check;
mod copy;
mod effects;
mod entity;
pub mod expand;
mod function;
mod interpret;
mod kinds;
pub mod loops;
mod op;
mod params;
mod passes;
#[cfg(feature = "random")]
pub mod random;
mod ranges;
mod source;
mod ssa;
mod stack;
mod stack_bytes;
pub mod text;
mod types;
pub mod uses;
pub mod versions;

pub use analyses::Graph;
pub use build::{BuildCause, BuildError, build, build_source};
pub use chain::{
    Around, CONTEXT_BYTES, ChainError, Exit, Exits, First, Limit, Next, Part, PartError, Placed, Rules, chain,
};
pub use check::{CheckCause, CheckError, check, check_function};
pub use effects::{Classes, Effects};
pub use entity::{Block, FuncId, Inst, Value};
pub use function::{BlockData, Def, Function, InstData, Module, Target, Terminator, ValueData, ValueList};
pub use interpret::{Called, Executed, Interpreter, Machine, RunError};
pub use op::{ATOMICS, Address, Args, BinaryOp, CONDITIONS, Callee, Op, RunOp};
pub use passes::{
    NoSuchPass, Pass, PassError, Passes, optimize, optimize_chain, optimize_function, optimize_with_graphs,
};
pub use source::Source;
pub use text::parse;
pub use types::{Access, Argument, CallFacts, Kind, Region, STACK_BYTES, Span, Type};
