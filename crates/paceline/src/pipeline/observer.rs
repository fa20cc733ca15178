//! The receiving side of an observer.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Duration;

use super::observe::{Observed, Sink};
use super::shared::Shared;

/// Receives what happens to the packets of a pipeline ([`Pipeline::observe`](super::Pipeline::observe)), until it is dropped.
pub struct Observer {
    observed: Receiver<Observed>,
    sink: Arc<Sink>,
    shared: Arc<Shared>,
}

impl Observer {
    pub(super) fn new(shared: &Arc<Shared>, capacity: usize) -> Self {
        let (sender, observed) = sync_channel(capacity);
        let sink = Arc::new(Sink { sender, lost: AtomicU64::new(0) });
        shared.observers.add(Arc::clone(&sink));
        Self { observed, sink, shared: Arc::clone(shared) }
    }

    /// The next packet; `None` if none comes within this time.
    #[must_use]
    pub fn next(&self, timeout: Duration) -> Option<Observed> {
        // The sink has a sender as long as this lives, so that the only error is the time.
        self.observed.recv_timeout(timeout).ok()
    }

    /// Number of packets that it was not told of, because too many waited.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.sink.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.shared.observers.remove(&self.sink);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observer").field("lost", &self.lost()).finish_non_exhaustive()
    }
}
