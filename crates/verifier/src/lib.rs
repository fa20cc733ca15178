//! Verifies that a program is safe to run natively: every path terminates, every access is in bounds, every call has valid
//! arguments. [`verify`] returns [`Verified`] with the proven facts, or a [`Refusal`] with the reason.
//!
//! # How it works
//!
//! The verifier is an abstract interpreter. It carries a [`State`](state::State) along every path: for each register and
//! stack byte a value, numbers as sets ([`domain::Number`]), pointers as target and offset ([`state::Pointer`]). Each
//! instruction is a transfer function (`step`); each branch refines the state on both sides. Static functions are walked at
//! each call with the caller's state, global ones once by their BTF types.
//!
//! Checkpoints (`prune`) bound the walk: states kept where paths meet. A path ends when an earlier state covers it in all
//! live, read and precise values. Precision is found during the walk: each number carries a mark of its origin, and a
//! number that determines an address, a branch or a size makes its mark and all origins precise (`precision`). The kernel
//! walks back over the instructions instead.
//!
//! # What it accepts
//!
//! The programs that the kernel (6.18, privileged loader) accepts; the sources are `kernel/bpf/verifier.c` and
//! `net/core/filter.c`. Reads of stack bytes that were never written are accepted, as in the kernel; they read as zero on
//! every engine.
#![forbid(unsafe_code)]

mod cfg;
mod compare;
mod converge;
mod depth;
pub mod domain;
mod error;
mod facts;
mod lend;
mod limits;
mod observe;
mod prune;
mod retry;
mod stats;
mod step;
mod verify;
mod walk;

pub use domain::access::OffsetRange;
pub use domain::state;
pub use error::{Branch, Cause, Hint, Refusal, RegName};
pub use facts::{
    Base, CallbackFact, FunctionFact, InsnFact, KeyFact, MapFact, MemoryFact, StackFact, Verified,
};
pub use limits::{MAX_BYTES, MAX_INSTRUCTIONS, MAX_USED_MAPS, MAX_WORK, Options};
pub use observe::{Observer, PathEnd};
pub use stats::Stats;
pub use verify::{verify, verify_observed};
