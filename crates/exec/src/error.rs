//! What can go wrong.

use rustix::io::Errno;
use thiserror::Error;

/// Why there is no executable memory, or why code cannot be put into it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The system does not let this process map memory executable.
    #[error(
        "the system refuses executable memory: {call}: {errno} (sysctl vm.memfd_noexec, SELinux or seccomp)"
    )]
    Refused {
        /// The system call that failed.
        call: &'static str,
        /// How.
        errno: Errno,
    },
    /// An arena of a size that no address space has room for.
    #[error("an arena cannot have {bytes} bytes")]
    Capacity {
        /// Bytes asked for.
        bytes: usize,
    },
    /// An alignment that is no power of two, or above a page.
    #[error(
        "code cannot be aligned to {bytes} bytes; powers of two up to {} are possible",
        crate::MAX_ALIGNMENT
    )]
    Alignment {
        /// Alignment asked for.
        bytes: usize,
    },
    /// The arena is full, even after everything was freed whose grace period is over.
    #[error(
        "no room for {bytes} bytes of code: the largest free piece of the arena's {capacity} bytes has {largest}"
    )]
    Exhausted {
        /// Bytes needed, with guard bytes.
        bytes: usize,
        /// The arena's size in bytes.
        capacity: usize,
        /// Bytes of the largest free piece.
        largest: usize,
    },
    /// The system has no memory left to put under the arena.
    #[error("cannot write code: {0}")]
    Write(std::io::Error),
    /// A relocation outside the code.
    #[error("relocation at offset {offset:#x} does not lie in the {len:#x} bytes of code")]
    RelocationOffset {
        /// Offset of the displacement.
        offset: usize,
        /// Bytes of code.
        len: usize,
    },
    /// A function that ends behind the code.
    #[error("function {name:?} does not lie in the {len:#x} bytes of code")]
    FunctionRange {
        /// Its name.
        name: String,
        /// Bytes of code.
        len: usize,
    },
    /// A relocation whose target is too far away for 32 bits.
    #[error("relocation at offset {offset:#x}: {target:#x} is out of reach of {address:#x}")]
    OutOfReach {
        /// Offset of the displacement.
        offset: usize,
        /// Address of the displacement.
        address: usize,
        /// Address that it should lead to.
        target: usize,
    },
    /// The process is a fork of the one that made the arena, and shares the memory with it.
    #[error("the arena belongs to process {owner}, of which this process is a fork")]
    Forked {
        /// Number of the process that made the arena.
        owner: i32,
    },
    /// Caches of this machine do not see code that was just written, and nothing here tells them.
    #[error("generated code is not supported on {}", std::env::consts::ARCH)]
    Architecture,
}
