//! Programs, maps, contexts and helpers before anything runs: the vocabulary that `load` fills in and
//! that the verifier, the maps and the engines read.
//!
//! Numbers come from the kernel's UAPI header `include/uapi/linux/bpf.h`.
#![forbid(unsafe_code)]

pub mod availability;
pub mod context;
mod errno;
pub mod format;
pub mod graph;
pub mod helper;
pub mod kfunc;
mod map;
mod map_kind;
mod map_rules;
mod map_use;
pub mod object;
mod program;
mod program_kind;
mod prototype;
mod rules;
mod sk_buff_member;
mod variable;

pub use errno::Errno;
pub use map::{InitialValue, MapFlags, MapSpec, Pinning};
pub use map_kind::MapKind;
pub use map_rules::{ElementKind, InnerLength, KeyKind, MapRules};
pub use map_use::MapUse;
pub use object::{ObjectField, ObjectKind};
pub use program::{Counters, FunctionInfo, KfuncRef, LineInfo, Linkage, Poison, ProgramSpec};
pub use program_kind::{ProgramKind, XdpAttach};
pub use rules::{Action, Actions, Meaning, Rules};
pub use sk_buff_member::{MemberError, SkBuffMember};
pub use variable::{Enumerators, Scalar, ScalarKind, Variable};

/// Most rounds of whatever repeats code and is verified without counting (`BPF_MAX_LOOPS`): of one call of `bpf_loop`, of
/// an iterator of numbers, and of all `may_goto` of one call of a function together.
pub const MAX_LOOPS: u32 = 8 << 20;
