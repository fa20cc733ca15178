//! A fence of two unequal sides: nothing for those who run packets, all the cost for the one who frees.
//!
//! The epoch scheme needs a store (`I am here`) to be visible before a later load (`which code is current`). That
//! order, store before load, is the one that x86-64 does not keep by itself; a fence for it costs some 5 to 10 ns in
//! every burst. `membarrier(2)` turns it around: the reclaiming side asks the kernel to run a full fence on every CPU
//! that runs a thread of this process right now. A thread that does not run passed one when it was scheduled away.
//! The light side then has to keep the compiler from reordering, nothing else.
//!
//! Where the kernel does not have the call (before 4.14, or under seccomp) both sides are full fences. When a seccomp
//! filter that is installed later denies the call, readers go over to full fences at their next pin ([`crate::Domain`]).

/// The result of the reclaiming side's fence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(loom, expect(dead_code))]
pub(crate) enum Heavy {
    /// All readers' stores before it are visible.
    Done,
    /// The kernel is out of memory; another try may succeed.
    Failed,
    /// The call is not allowed: only fences of the readers themselves order their stores.
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

/// Keeps the compiler from moving memory accesses across; the kernel's fence does the rest.
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

    use super::Heavy;

    /// `membarrier(2)` with `MEMBARRIER_CMD_PRIVATE_EXPEDITED`.
    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Membarrier {
        /// Tests deny it without a filter.
        denied: bool,
    }

    impl Membarrier {
        /// `None` where the kernel does not allow it.
        pub(crate) fn new() -> Option<Self> {
            // Registration is per process and may be repeated.
            let registered = membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok();
            registered.then_some(Self { denied: false })
        }

        /// One that was allowed when the domain was made, and is denied when it is used.
        #[cfg(test)]
        pub(crate) fn denied_later() -> Self {
            Self { denied: true }
        }

        pub(crate) fn heavy(self) -> Heavy {
            if self.denied {
                return Heavy::Denied;
            }
            // The call is a fence for the calling thread too; this one is for the compiler.
            fence(Ordering::SeqCst);
            match membarrier(MembarrierCommand::PrivateExpedited) {
                Ok(()) => Heavy::Done,
                Err(Errno::NOMEM) => Heavy::Failed,
                Err(_) => Heavy::Denied,
            }
        }
    }
}

/// The model checker knows no `membarrier`: it checks full fences, and what happens when the call is denied late.
#[cfg(loom)]
mod model {
    use super::Heavy;

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
