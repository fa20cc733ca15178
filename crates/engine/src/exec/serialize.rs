//! Serialization of all CPUs after code was written.
//!
//! Instruction caches of x86-64 are coherent with memory by physical address, including writes through an alias (Intel SDM volume
//! 3, "Self-Modifying Code"). Prefetched instructions are not: if code is written through another address than the one it runs at,
//! the manual requires a serializing instruction before it runs. Old bytes can only be prefetched where an address contained code
//! before, or by speculation; `membarrier(2)` has a command for this purpose, which serializes each CPU that runs a thread of this
//! process. On kernels without it, the code is still published by a pointer and reached by an indirect branch, on which every JIT
//! relies. s390x is coherent and serializes at branches. On arm64 the writer has maintained the caches before ([`cache`](crate::exec::cache)), and
//! the same command makes the other CPUs drop what they have fetched.

use rustix::thread::{MembarrierCommand, membarrier};

/// Registers the process for [`all_cores`]. Repetition is harmless.
pub(crate) fn register() {
    // default: old kernels have no such command, see above.
    let _ = membarrier(MembarrierCommand::RegisterPrivateExpeditedSyncCore);
}

/// Serializes all CPUs that run threads of this process.
pub(crate) fn all_cores() {
    // default: the same.
    let _ = membarrier(MembarrierCommand::PrivateExpeditedSyncCore);
}
