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
//! Code is generated from programs in SSA form ([`ir`](crate::ir)): selection makes operations that all [machines](machine) have, the
//! allocator of [`codegen`](crate::codegen) gives them registers, and the machine emits them. A program without native code has
//! something [`Unsupported`].
//!
//! A function saves the callee-saved registers that it writes, and no others; one that makes no calls and has up to 128 bytes of stack
//! needs no stack adjustment on x86-64.

mod code;
mod compiled;
mod error;
mod links;
pub mod machine;
mod program;
mod select;
mod settings;
mod unsupported;

pub use compiled::{Compiled, CompiledFunction, Stats};
pub use error::{CompileError, FormCause, FormError};
pub use links::{ArrayLink, HelperLink, HostOffsets, Links, LookUpLink, MapLink, ProgArrayLink};
pub use machine::x64::dispatcher::{Case, Dispatcher, Otherwise, RUN, TokenArgument, dispatchers};
pub use program::{compile, compile_chain, compile_unverified};
pub use select::Part;
pub use settings::{Architecture, Features, OptLevel, Prefetch, Settings};
pub use unsupported::Unsupported;
