//! How a run can go wrong under an engine that checks.

use std::sync::Arc;

use paceline_spec::ProgramSpec;

use crate::region::{Access, FaultAddress};

/// A program did what it may not, or did not end. The packet has no verdict then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {slot}{}: {kind}", .tail_called.as_ref().map(|spec| format!(" of program {}", spec.name)).unwrap_or_default())]
pub struct Fault {
    /// Slot of the guilty instruction.
    pub slot: usize,
    /// What it did.
    pub kind: FaultKind,
    /// The program it belongs to, if that is not the one that was run but one that it came to by a tail call.
    pub tail_called: Option<Arc<ProgramSpec>>,
}

/// What a faulty instruction did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// It read or wrote memory that is not the program's.
    #[error("{access} of {len} bytes {near}")]
    OutOfBounds {
        /// Whether it read or wrote.
        access: Access,
        /// The address.
        address: u64,
        /// Bytes.
        len: u64,
        /// What the address is close to.
        near: FaultAddress,
    },
    /// It accessed the context in a way its layout does not have.
    #[error("{access} of {len} bytes at offset {offset} of {context}, which has no such field")]
    Context {
        /// Whether it read or wrote.
        access: Access,
        /// Name of the context's structure.
        context: &'static str,
        /// Offset in bytes.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// It used an atomic operation on an address that is not a multiple of the operand's size.
    #[error("atomic operation of {len} bytes at an address that is not aligned to them")]
    Misaligned {
        /// Bytes.
        len: u64,
    },
    /// It gave a helper an argument that the helper does not take.
    #[error("r{register} of the call to {helper} is no {expected}{}", near.as_ref().map(|n| format!(": it points {n}")).unwrap_or_default())]
    Argument {
        /// Name of the helper.
        helper: &'static str,
        /// Register, 1 to 5.
        register: u8,
        /// What the helper wants there.
        expected: &'static str,
        /// What the register points to, for pointers.
        near: Option<FaultAddress>,
    },
    /// It called a helper while it had a spin lock, which that helper or another worker might wait for.
    #[error("call to {0} while it has a lock")]
    CallWithLock(&'static str),
    /// It called a helper by a number that no helper has, most often a CO-RE relocation that found no target.
    #[error("call to helper number {0}, which does not exist")]
    NoSuchHelper(i32),
    /// It called a kernel function that is not there, by its index in the program's list.
    #[error("call to a kernel function that is not there")]
    NoSuchKfunc(i32),
    /// It called deeper than eight functions.
    #[error("more than {0} nested calls")]
    CallDepth(usize),
    /// It ran for longer than it may.
    #[error("still running after {0} instructions")]
    Budget(u64),
    /// It was run for a CPU that its per-CPU arrays have no values for.
    #[error("there is no CPU {0} in the program's per-CPU arrays")]
    NoCpu(usize),
    /// What the embedder gave to the host for events or traces panicked: the panic goes on when the run has ended.
    #[error("what receives events or traces panicked")]
    Panicked,
    /// It jumped or fell to where no instruction starts.
    #[error("execution left the program")]
    LeftProgram,
}
