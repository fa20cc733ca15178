//! Verifies that a program is safe to run natively: every path terminates, every access is in bounds, every call has valid
//! arguments. [`verify`](verify()) returns [`Verified`] with the proven facts, or a [`Refusal`] with the reason.
//!
//! # How it works
//!
//! The verifier is an abstract interpreter of four layers, each of which imports only those before it:
//!
//! 1. [`domain`]: the abstract values and states, with their order and their widening. A [`State`](state::State) has a value
//!    for each register and stack byte: numbers are sets ([`domain::Number`]), pointers a target and an offset
//!    ([`state::Pointer`]).
//! 2. `checker`: what an instruction demands of a state, and the error ([`Cause`]) if that is not met. It changes no state.
//! 3. `transformer`: what an instruction does to a state. It asks the checker first, and names no error. A branch refines
//!    the state on both sides.
//! 4. `exploration`: the paths through the program. Static functions are walked at each call with the caller's state, global
//!    ones once by their BTF types.
//!
//! Below them are `env`, the program with its tables, and `records`, what they record: facts for the compilers, entry points.
//!
//! Checkpoints (`exploration::prune`) bound the walk: states kept where paths meet. A path ends when an earlier state covers
//! it in all live, read and precise values (`domain::coverage`). Precision is found during the walk: each number carries a
//! mark of its origin, and a number that determines an address, a branch or a size makes its mark and all origins precise
//! (`domain::precision`). The kernel walks back over the instructions instead.
//!
//! # What it accepts
//!
//! The programs that the kernel (6.18, privileged loader) accepts; the sources are `kernel/bpf/verifier.c` and
//! `net/core/filter.c`. Reads of stack bytes that were never written are accepted, as in the kernel; they read as zero on
//! every engine.
#![forbid(unsafe_code)]

mod checker;
mod depth;
pub mod domain;
mod env;
mod error;
mod exploration;
mod facts;
mod limits;
mod observe;
mod records;
mod stats;
mod transformer;
mod verify;

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
