//! The timers of a worker.

use std::sync::Arc;

use paceline_frame::Burst;
use paceline_maps::TimerQueue;

/// Timers that programs started on a host.
pub struct Timers {
    /// Pending timers, by time.
    pub queue: Arc<TimerQueue>,
    /// Address of the timer whose function runs; 0 for none.
    pub firing: usize,
    /// A packet of length 0, which callbacks run over.
    pub(crate) no_packet: Option<Box<Burst>>,
}

impl std::fmt::Debug for Timers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Timers").finish_non_exhaustive()
    }
}

impl Default for Timers {
    fn default() -> Self {
        Self { queue: TimerQueue::new(), firing: 0, no_packet: None }
    }
}
