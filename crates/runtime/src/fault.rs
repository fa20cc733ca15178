//! Faults of runs on engines that check.

use std::sync::Arc;

use paceline_spec::ProgramSpec;

use crate::region::{Access, FaultAddress};

/// An invalid operation of a program, or a program that did not end. The packet has no verdict then.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("instruction {slot}{}: {kind}", .tail_called.as_ref().map_or_else(String::new, |spec| format!(" of program {}", spec.name)))]
pub struct Fault {
    /// Slot of the guilty instruction.
    pub slot: usize,
    /// The invalid operation.
    pub kind: FaultKind,
    /// The program of the instruction, if it was tail called.
    pub tail_called: Option<Arc<ProgramSpec>>,
}

/// Invalid operation of an instruction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FaultKind {
    /// Access to memory that is not the program's.
    #[error("{access} of {len} bytes {near}")]
    OutOfBounds {
        /// Kind of the access.
        access: Access,
        /// The address.
        address: u64,
        /// Bytes.
        len: u64,
        /// Region of the address, or the nearest one.
        near: FaultAddress,
    },
    /// Access to the context that its layout does not allow.
    #[error("{access} of {len} bytes at offset {offset} of {context}, which has no such field")]
    Context {
        /// Kind of the access.
        access: Access,
        /// Name of the context's structure.
        context: &'static str,
        /// Offset in bytes.
        offset: u64,
        /// Bytes.
        len: u64,
    },
    /// Atomic operation at an address that is not a multiple of the operand's size.
    #[error("atomic operation of {len} bytes at an address that is not aligned to them")]
    Misaligned {
        /// Bytes.
        len: u64,
    },
    /// Argument that does not fit the helper's prototype.
    #[error("r{register} of the call to {helper} is no {expected}{}", near.as_ref().map_or_else(String::new, |n| format!(": it points {n}")))]
    Argument {
        /// Name of the helper.
        helper: &'static str,
        /// Register, 1 to 5.
        register: u8,
        /// Expected argument.
        expected: &'static str,
        /// Region that the register points to, for pointers.
        near: Option<FaultAddress>,
    },
    /// Call of a helper by a program that holds a spin lock.
    #[error("call to {0} while it has a lock")]
    CallWithLock(&'static str),
    /// Call of a helper by an unknown number, usually of a CO-RE relocation without a target.
    #[error("call to helper number {0}, which does not exist")]
    NoSuchHelper(i32),
    /// Call of an unresolved kernel function, by its index in the program's list.
    #[error("call to a kernel function that does not exist")]
    NoSuchKfunc(i32),
    /// More than eight active functions.
    #[error("more than {0} nested calls")]
    CallDepth(usize),
    /// More instructions than the budget.
    #[error("still running after {0} instructions")]
    Budget(u64),
    /// Run on a CPU that the program's per-CPU maps have no values for.
    #[error("there is no CPU {0} in the program's per-CPU maps: load it with more CPUs (LoadOptions::cpus)")]
    NoCpu(usize),
    /// Run on a CPU that belongs to another host in one of the program's per-CPU maps.
    #[error(
        "CPU {0} belongs to another host, which ran a program over the same per-CPU maps: give each host a number of its own"
    )]
    CpuInUse(usize),
    /// Run of a host without a number of its own, where other hosts have all CPUs of the program's per-CPU maps.
    #[error(
        "all {0} CPUs of the program's per-CPU maps belong to other hosts: load it with more CPUs (LoadOptions::cpus)"
    )]
    NoFreeCpu(usize),
    /// Panic of an embedder's callback for events or traces, which is resumed when the run has ended.
    #[error("what receives events or traces panicked")]
    Panicked,
    /// A state that the engine rules out: a bug of Paceline, not of the program.
    #[error("internal error of the engine: {0}")]
    Internal(&'static str),
    /// Control flow to a slot at which no instruction starts.
    #[error("execution left the program")]
    LeftProgram,
}
