//! The loop of a worker's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paceline_ports::Port;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::WorkerError;
use super::worker::Worker;

/// Behaviour of a worker while nothing arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Idle {
    /// Sleeps until a packet arrives: a port is looked at again at the latest after a millisecond.
    #[default]
    Sleep,
    /// Looks again at once: the least latency, for a whole CPU.
    Spin,
}

/// Polls without a packet before a worker sleeps: waking up costs more than these.
const POLLS: u32 = 64;
/// Polls between two looks at the clock.
const ROUNDS: u32 = 256;
/// Maximum time between two looks at ports and timers.
const NAP: Duration = Duration::from_millis(1);
/// The same with a port that has no descriptor to wait for.
const SHORT_NAP: Duration = Duration::from_micros(50);
/// Time between two updates of the counts of devices.
const UPDATE: Duration = Duration::from_millis(100);
/// Maximum time to empty the ports at the end.
const PATIENCE: Duration = Duration::from_secs(1);

impl Worker {
    /// Polls until `stop` is set or all ports are done ([`Port::is_done`](crate::port::Port::is_done)). Then the ports accept no more
    /// packets ([`Port::stop`](crate::port::Port::stop)), and those that have arrived are processed, for a second at most. `between`
    /// runs about ten times a second.
    ///
    /// # Errors
    /// The first [`WorkerError`].
    pub fn run(
        &mut self,
        stop: &AtomicBool,
        idle: Idle,
        mut between: impl FnMut(&mut Self),
    ) -> Result<(), WorkerError> {
        let (mut empty, mut rounds, mut updated) = (0, 0_u32, Instant::now());
        while !stop.load(Ordering::Relaxed) && !self.is_done() {
            empty = if self.poll()? == 0 { empty + 1 } else { 0 };
            rounds = rounds.wrapping_add(1);
            let naps = idle == Idle::Sleep && empty >= POLLS;
            if naps {
                self.wait(NAP);
            }
            if (naps || rounds.is_multiple_of(ROUNDS)) && updated.elapsed() >= UPDATE {
                updated = Instant::now();
                self.update_counts();
                between(self);
            }
        }
        self.drain()
    }

    /// Processes what has arrived.
    fn drain(&mut self) -> Result<(), WorkerError> {
        self.stop_ports();
        let end = Instant::now() + PATIENCE;
        while self.poll()? > 0 || !self.leave_ports() {
            if Instant::now() >= end {
                self.discard_host_side();
                break;
            }
        }
        self.update_counts();
        Ok(())
    }

    /// Waits until a packet arrives at a port, but not longer than this time.
    pub fn wait(&self, timeout: Duration) {
        let descriptors: Option<Vec<_>> = self.receiving().map(Port::descriptor).collect();
        let Some(descriptors) = descriptors else { return thread::sleep(timeout.min(SHORT_NAP)) };
        let mut waited: Vec<_> = descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let timeout =
            Timespec { tv_sec: timeout.as_secs().cast_signed(), tv_nsec: timeout.subsec_nanos().into() };
        // An interrupted call is the end of waiting, too; the next poll reports a port in error.
        let _ = poll(&mut waited, Some(&timeout));
    }

    /// Whether no port will receive a packet again.
    fn is_done(&self) -> bool {
        let mut ports = self.attached().peekable();
        ports.peek().is_some() && ports.all(Port::is_done)
    }
}
