//! Errors of executable memory.

use rustix::io::Errno;
use thiserror::Error;

/// Reasons why executable memory is not available, or code cannot be installed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The system denies executable mappings to this process.
    #[error(
        "the system refuses executable memory: {call}: {errno} (sysctl vm.memfd_noexec, SELinux or seccomp)"
    )]
    Refused {
        /// The system call that failed.
        call: &'static str,
        /// Its error.
        errno: Errno,
    },
    /// The size of an arena exceeds any address space.
    #[error("an arena cannot have {bytes} bytes")]
    Capacity {
        /// Requested size in bytes.
        bytes: usize,
    },
    /// An alignment that is not a power of two, or larger than a page.
    #[error(
        "code cannot be aligned to {bytes} bytes; powers of two up to {} are possible",
        crate::exec::code::MAX_ALIGNMENT
    )]
    Alignment {
        /// Requested alignment in bytes.
        bytes: usize,
    },
    /// The arena is full, even after freeing all code whose grace period is over.
    #[error(
        "no room for {bytes} bytes of code: the largest free piece of the arena's {capacity} bytes has {largest}"
    )]
    Exhausted {
        /// Required size in bytes, including guard bytes.
        bytes: usize,
        /// The arena's size in bytes.
        capacity: usize,
        /// Size of the largest free extent in bytes.
        largest: usize,
    },
    /// The system is out of memory for the arena.
    #[error("cannot write code: {0}")]
    Write(std::io::Error),
    /// A relocation that is out of the code's bounds.
    #[error("relocation at offset {offset:#x} does not lie in the {len:#x} bytes of code")]
    RelocationOffset {
        /// Offset of the displacement.
        offset: usize,
        /// Size of the code in bytes.
        len: usize,
    },
    /// A function that is out of the code's bounds.
    #[error("function {name:?} does not lie in the {len:#x} bytes of code")]
    FunctionRange {
        /// Its name.
        name: String,
        /// Size of the code in bytes.
        len: usize,
    },
    /// A relocation whose target exceeds the reach of 32 bits.
    #[error("relocation at offset {offset:#x}: {target:#x} is out of reach of {address:#x}")]
    OutOfReach {
        /// Offset of the displacement.
        offset: usize,
        /// Address of the displacement.
        address: usize,
        /// Target address.
        target: usize,
    },
    /// The process is a fork of the one that created the arena, and shares its memory.
    #[error("the arena belongs to process {owner}, of which this process is a fork")]
    Forked {
        /// Id of the process that created the arena.
        owner: i32,
    },
    /// Instruction caches of this architecture are not coherent, and flushing them is not implemented.
    #[error("generated code is not supported on {}", std::env::consts::ARCH)]
    Architecture,
}
