//! `BPF_MAP_FREEZE`: user space can no longer change a map.
//!
//! The verifier treats the contents of a frozen map as constants, so a freeze is a point in time: each write by user space is in the
//! map before it, or refused. As in the kernel (`map_freeze` and `bpf_map_write_active` in `kernel/bpf/syscall.c`) writers are counted,
//! and a map with writers cannot be frozen. The count and the mark share one word.

use std::sync::atomic::{AtomicU64, Ordering};

use paceline_spec::Errno;

/// The mark; the bits below count the writers.
const FROZEN: u64 = 1 << 63;

/// The mark of a frozen map, and the number of writers.
#[derive(Default)]
pub(crate) struct Freeze(AtomicU64);

/// A writer: the map cannot be frozen while it lives.
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

    /// Refuses writers from now on.
    ///
    /// # Errors
    /// `EPERM`: it is frozen already. `EBUSY`: there are writers.
    pub(crate) fn freeze(&self) -> Result<(), Errno> {
        // Acquire: readers that rely on the freeze see all writes.
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
