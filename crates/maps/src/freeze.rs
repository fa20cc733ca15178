//! `BPF_MAP_FREEZE`: user space changes a map no more.
//!
//! The verifier takes what a frozen map holds for constants, so a freeze is a point in time: what is written by user space is
//! in the map before it, or refused. As in the kernel (`map_freeze` and `bpf_map_write_active` in `kernel/bpf/syscall.c`)
//! those who write are counted, and there is no freeze while one does. Here the count and the mark are one word.

use std::sync::atomic::{AtomicU64, Ordering};

use paceline_spec::Errno;

/// The mark; the bits below count who writes.
const FROZEN: u64 = 1 << 63;

/// Whether a map is frozen, and how many write meanwhile.
#[derive(Default)]
pub(crate) struct Freeze(AtomicU64);

/// Somebody who writes: the map is not frozen as long as this lives.
#[must_use]
pub(crate) struct Writing<'a>(&'a Freeze);

impl Freeze {
    /// Begins a write.
    ///
    /// # Errors
    /// `EPERM`: it is frozen.
    pub(crate) fn write(&self) -> Result<Writing<'_>, Errno> {
        let before = self.0.fetch_add(1, Ordering::Acquire);
        let writing = Writing(self);
        if before & FROZEN == 0 { Ok(writing) } else { Err(Errno::EPERM) }
    }

    /// Lets nobody write from now on.
    ///
    /// # Errors
    /// `EPERM`: it is frozen already. `EBUSY`: somebody writes.
    pub(crate) fn freeze(&self) -> Result<(), Errno> {
        // Acquire: what was written is seen by who relies on the freeze.
        let frozen = self.0.compare_exchange(0, FROZEN, Ordering::AcqRel, Ordering::Acquire);
        frozen.map(drop).map_err(|now| if now & FROZEN == 0 { Errno::EBUSY } else { Errno::EPERM })
    }

    pub(crate) fn is_frozen(&self) -> bool {
        self.0.load(Ordering::Acquire) & FROZEN != 0
    }
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}
