//! The part of a code generator that knows no machine.
//!
//! | step | by |
//! |---|---|
//! | a function in SSA form to instructions with virtual registers | [`Machine::select`] |
//! | registers and slots of the frame for them | [`allocate`](allocate::allocate) |
//! | code, with the moves in between | [`generate`], by [`Machine::emit`] and the other instructions that every machine has |
//!
//! A virtual register has one definition ([`lir`]). What an instruction needs of its registers are constraints of its operands, and the
//! registers that it overwrites are in its clobbers: nothing else knows where a value is. In debug builds, and in campaigns, a checker
//! follows every way through the result and demands that each use reads its own value ([`allocate::check`]).

pub mod allocate;
mod emit;
mod generate;
pub mod lir;
pub mod low;
pub mod machine;
mod reuse;

pub use generate::{GenerateError, Plan, Room, generate, generate_loop};
pub use machine::{Frame, Label, LoopMachine, Machine, Ways};
