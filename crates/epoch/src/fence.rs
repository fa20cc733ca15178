//! An asymmetric fence: free for the readers, with all cost on the reclaiming side.
//!
//! The epoch scheme requires that a store (the reader's epoch) is visible before a later load (the current pointer). This order,
//! store before load, is the only one that x86-64 does not guarantee; a fence for it costs some 5 to 10 ns per burst.
//! `membarrier(2)` reverses the cost: the reclaiming side makes the kernel run a full fence on every CPU that currently runs a
//! thread of this process. A thread that is not running passed one when it was scheduled out. The light side then only has to
//! prevent reordering by the compiler.
//!
//! If the kernel lacks the call (before 4.14, or under seccomp), both sides are full fences. If a seccomp filter that is installed
//! later denies the call, readers switch to full fences at their next pin ([`crate::Domain`]).

/// The result of the reclaiming side's fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(loom, expect(dead_code))]
pub(crate) enum Heavy {
    /// All earlier stores of readers are visible.
    Done,
    /// The kernel is out of memory; a retry may succeed.
    Failed,
    /// The call is denied: only fences of the readers themselves order their stores.
    Denied,
}

#[cfg(not(loom))]
pub(crate) use std::sync::atomic::fence;

#[cfg(loom)]
pub(crate) use loom::sync::atomic::fence;

#[cfg(not(loom))]
pub(crate) use kernel::Membarrier;
#[cfg(loom)]
pub(crate) use model::Membarrier;

/// A compiler fence; the kernel's fence does the rest.
#[inline(always)]
pub(crate) fn light() {
    #[cfg(not(loom))]
    std::sync::atomic::compiler_fence(std::sync::atomic::Ordering::SeqCst);
}

#[cfg(not(loom))]
mod kernel {
    use std::sync::atomic::{Ordering, fence};

    use rustix::io::Errno;
    use rustix::thread::{MembarrierCommand, membarrier};

    use crate::fence::Heavy;

    /// `membarrier(2)` with `MEMBARRIER_CMD_PRIVATE_EXPEDITED`.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Membarrier {
        /// Simulates denial in tests, without a filter.
        denied: bool,
    }

    impl Membarrier {
        /// `None` if the kernel denies it.
        pub(crate) fn new() -> Option<Self> {
            // Registration is per process and idempotent.
            let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
            registered.then_some(Self { denied: false })
        }

        /// One that was allowed when the domain was created, but is denied when used.
        #[cfg(test)]
        pub(crate) fn denied_later() -> Self {
            Self { denied: true }
        }

        pub(crate) fn heavy(self) -> Heavy {
            if self.denied {
                return Heavy::Denied;
            }
            // The call is a fence for the calling CPU too; this one is for the compiler.
            fence(Ordering::SeqCst);
            match membarrier(MembarrierCommand::PrivateExpedited) {
                Ok(()) => Heavy::Done,
                Err(Errno::NOMEM) => Heavy::Failed,
                Err(_) => Heavy::Denied,
            }
        }
    }
}

/// The model checker does not support `membarrier`: it checks full fences, and late denial of the call.
#[cfg(loom)]
mod model {
    use crate::fence::Heavy;

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Membarrier;

    impl Membarrier {
        pub(crate) fn new() -> Option<Self> {
            None
        }

        #[cfg(test)]
        pub(crate) fn denied_later() -> Self {
            Self
        }

        pub(crate) fn heavy(self) -> Heavy {
            Heavy::Denied
        }
    }
}
