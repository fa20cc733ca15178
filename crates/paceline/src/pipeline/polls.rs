//! What other threads see of a worker at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Number of times that a worker has looked at its ports, for other threads: one that stays the same is that of a worker which a program or
/// a port holds up, or which does not run.
#[derive(Clone, Debug, Default)]
pub struct Polls(Arc<Count>);

/// On cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count(AtomicU64);

impl Polls {
    /// The number.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.0.load(Ordering::Relaxed)
    }

    /// The worker, which alone writes, looks again.
    pub(super) fn add_one(&self) {
        self.0.0.store(self.count().wrapping_add(1), Ordering::Relaxed);
    }
}
