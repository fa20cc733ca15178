//! Code from programs in SSA form, for the [machines](super::machine).
//!
//! | step | by |
//! |---|---|
//! | a program in SSA form, and its passes | `form` |
//! | what a program uses of the state of a run | `uses` |
//! | operations of the form to those of machines, with virtual registers | `choose` |
//! | registers, and code for the operations | [`codegen`](crate::codegen), with `machine` |
//! | the functions of a program, a loop over a burst, and their links | `code` |
//! | a program, or the programs of a chain as one function | `compile`, `chain` |
//!
//! Every function of the program takes what helpers take: `r1` to `r5` in the argument registers and the host in the sixth one. It saves
//! the callee-saved registers that its code writes. So a helper calls a function of the program as it is.
//!
//! The host is a value like any other. From below, a frame has the slots of the allocator, the counter of `may_goto`, and the
//! function's stack; functions without calls use the red zone of x86-64. The prologue of a frame of more than a page loads from
//! each page of it, so that a store far below the stack does not miss its guard page; a frame of more than 64 KiB is a lack. `r11`
//! of x86-64 is no register of values: moves and instructions use it. The engine `jit-o0` of text cases and campaigns has no
//! passes.

mod chain;
mod choose;
mod code;
mod compile;
mod form;
mod machine;
mod nodes;
mod prefetch;
mod uses;

pub use chain::Part;
pub(crate) use chain::compile_chain;
pub(crate) use compile::compile;
