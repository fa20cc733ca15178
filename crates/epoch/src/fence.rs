//! A fence of two unequal sides: nothing for those who run packets, all the cost for the one who frees.
//!
//! The epoch scheme needs a store (`I am here`) to be visible before a later load (`which code is current`). That
//! order, store before load, is the one that x86-64 does not keep by itself; a fence for it costs some 5 to 10 ns in
//! every burst. `membarrier(2)` turns it around: the reclaiming side asks the kernel to run a full fence on every CPU
//! that runs a thread of this process right now. A thread that does not run passed one when it was scheduled away.
//! The light side then has to keep the compiler from reordering, nothing else.
//!
//! Where the kernel does not have the call (before 4.14, or under seccomp) both sides are full fences.

#[cfg(not(loom))]
pub(crate) use asymmetric::Fence;
#[cfg(loom)]
pub(crate) use symmetric::Fence;

#[cfg(not(loom))]
mod asymmetric {
    use std::sync::atomic::{Ordering, compiler_fence, fence};

    use rustix::thread::{MembarrierCommand, membarrier};

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Fence {
        asymmetric: bool,
    }

    impl Fence {
        /// The cheapest fence that the kernel allows.
        pub(crate) fn new() -> Self {
            // Registration is per process and may be repeated.
            Self { asymmetric: membarrier(MembarrierCommand::RegisterPrivateExpedited).is_ok() }
        }

        /// Full fences on both sides.
        #[cfg(test)]
        pub(crate) fn symmetric() -> Self {
            Self { asymmetric: false }
        }

        /// Between a store and a load of the side that must be fast.
        #[inline(always)]
        pub(crate) fn light(self) {
            if self.asymmetric {
                compiler_fence(Ordering::SeqCst);
            } else {
                fence(Ordering::SeqCst);
            }
        }

        /// Between a store and a load of the other side. False if the fence failed, which the kernel allows itself
        /// when it is out of memory.
        #[must_use]
        pub(crate) fn heavy(self) -> bool {
            // The call is a fence for the calling thread too; this one is for the compiler and for the fallback.
            fence(Ordering::SeqCst);
            !self.asymmetric || membarrier(MembarrierCommand::PrivateExpedited).is_ok()
        }
    }
}

/// The model checker knows no `membarrier`; it checks the protocol with full fences.
#[cfg(loom)]
mod symmetric {
    use loom::sync::atomic::{Ordering, fence};

    #[derive(Clone, Copy, Debug)]
    pub(crate) struct Fence;

    impl Fence {
        pub(crate) fn new() -> Self {
            Self
        }

        pub(crate) fn light(self) {
            fence(Ordering::SeqCst);
        }

        #[must_use]
        pub(crate) fn heavy(self) -> bool {
            fence(Ordering::SeqCst);
            true
        }
    }
}
