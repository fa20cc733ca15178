//! Native code for x86-64 and arm64 from verified programs.
//!
//! [`compile`] takes the verifier's results and the [`Links`] of the code, and returns machine code with relocations. Placement and
//! calls of the code are up to other crates; this one accesses no memory by address.
//!
//! # Calling convention
//! A program is `extern "C" fn(r1, r2, r3, r4, r5, host) -> r0`, and so is every helper: the first five arguments are the
//! BPF registers, the sixth the host. `r1` of a program is the packet's [`Frame`](paceline_frame::Frame), whatever the
//! program's type, and loads from the context become loads from the frame.
//!
//! On arm64 all code comes from the form of `paceline-ir` ([`CodeSource`]). The rest of this page is about x86-64 code from instructions.
//!
//! # Registers
//! | | in functions that call | in functions that do not |
//! |---|---|---|
//! | `r0` | `rax` | `rax` |
//! | `r1` to `r5` | `rdi`, `rsi`, `rdx`, `rcx`, `r8` | the same |
//! | `r6` to `r9` | `rbx`, `r13`, `r14`, `r15` | caller-saved registers that are free, then these |
//! | `r10` | a displacement from `rsp` | the same |
//! | the host | `r12` | `r9` |
//! | scratch | `r10`, `r11`, `r9` | `r10`, `r11` |
//!
//! Values are computed lazily: within a basic block the composition of a register's value is remembered instead, see the module
//! `defer`.
//!
//! A function saves those of `rbx` and `r12` to `r15` that it changes, and no others; a leaf function with up to 128
//! bytes of stack needs no stack adjustment.
#![forbid(unsafe_code)]

pub mod arm64;
mod atomic;
mod bounds_elim;
mod burst;
mod call;
mod chain_exits;
mod chain_program;
mod checked;
mod const_exit;
mod context;
mod defer;
mod dispatcher;
mod division;
mod emitter;
mod entry;
mod error;
mod inline;
mod links;
mod liveness;
mod look_up;
mod materialized;
mod packet;
mod packet_start;
mod plan;
mod program;
mod prologue;
mod rounds;
mod select;
mod settings;
mod source;
mod stack;
mod tail_call;
pub mod x64;

pub use dispatcher::{Case, Dispatcher, Otherwise, RUN, TokenArgument, dispatchers};
pub use error::{CompileError, FormCause, FormError};
pub use links::{
    ArrayLink, CheckedLinks, HelperLink, HostOffsets, Links, LookUpLink, MapLink, ProgArrayLink, RunOffsets,
};
pub use program::{Compiled, CompiledFunction, Stats, compile, compile_chain, compile_unverified};
pub use select::Lack;
pub use settings::{Architecture, CodeSource, Features, Prefetch, Settings};
