//! Making every CPU see code that was just written.
//!
//! Instruction caches of x86-64 are coherent with memory by physical address, so also with a write through another
//! address (Intel SDM volume 3, "Self-Modifying Code"). Instructions that a CPU has fetched already are not: where
//! code is written by another address than it runs at, the manual wants a serializing instruction before it runs.
//! Old bytes are fetched ahead only where an address was code before, or by speculation; `membarrier(2)` has a
//! command for just this, which serializes each CPU that runs a thread of this process. Where the kernel does not have
//! it, the code is still published by a pointer and reached by an indirect branch, on which every JIT relies.
//! s390x is coherent and serializes at branches.

use rustix::thread::{MembarrierCommand, membarrier};

/// Tells the kernel that [`all_cores`] will be used. Repeating it is harmless.
pub(crate) fn register() {
    let _ = membarrier(MembarrierCommand::RegisterPrivateExpeditedSyncCore);
}

/// Serializes all CPUs that run this process.
pub(crate) fn all_cores() {
    let _ = membarrier(MembarrierCommand::PrivateExpeditedSyncCore);
}
