//! A limit of the rate at which packets are received.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use paceline_frame::{Burst, FramePool, MAX_BURST};

use crate::port::{Group, Port, PortError, SendError};

/// Time whose packets may be received at once, after a pause.
const CREDIT: Duration = Duration::from_millis(10);

/// Receives from a port at most a number of packets per second. The time is looked at once per burst, so that packets come in groups
/// whose mean rate is the limit. Packets that are left when the port is stopped come without a limit.
#[derive(Debug)]
pub struct RateLimited<P> {
    port: P,
    /// Nanoseconds between two packets.
    interval: f64,
    /// Time up to which packets have been received, in nanoseconds since the start.
    used: f64,
    start: Instant,
    is_stopped: bool,
}

impl<P: Port> RateLimited<P> {
    /// Limits a port to this many packets per second.
    ///
    /// # Panics
    /// If the rate is 0.
    #[must_use]
    pub fn new(port: P, packets_per_second: u64) -> Self {
        assert!(packets_per_second > 0, "a rate of no packets");
        let interval = 1e9 / packets_per_second as f64;
        Self { port, interval, used: 0.0, start: Instant::now(), is_stopped: false }
    }

    /// Number of packets that may be received now.
    fn allowed(&mut self) -> usize {
        if self.is_stopped {
            return MAX_BURST;
        }
        let now = self.start.elapsed().as_nanos() as f64;
        self.used = self.used.max(now - CREDIT.as_nanos() as f64);
        ((now - self.used) / self.interval) as usize
    }
}

impl<P: Port> Port for RateLimited<P> {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let allowed = self.allowed();
        let received = burst.limited(allowed, |burst| self.port.receive(burst))?;
        self.used += received as f64 * self.interval;
        Ok(received)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        self.port.send(group)
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        self.port.pool()
    }

    fn copied(&self) -> u64 {
        self.port.copied()
    }

    /// None: a packet may have arrived and be held back.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn is_done(&self) -> bool {
        self.port.is_done()
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.port.stop();
    }

    fn dropped(&mut self) -> u64 {
        self.port.dropped()
    }
}

#[cfg(test)]
mod tests {
    use paceline_frame::FrameMeta;

    use super::*;
    use crate::{Generator, MemoryPort};

    #[test]
    fn packets_come_at_the_rate() {
        let mut port = RateLimited::new(Generator::new(vec![vec![0; 60]], Some(3000)), 100_000);
        let (start, mut burst, mut received) = (Instant::now(), Burst::default(), 0);
        while !port.is_done() {
            burst.clear();
            received += port.receive(&mut burst).expect("no failure");
            let most = (start.elapsed() + CREDIT).as_micros() / 10;
            assert!(received as u128 <= most + 1, "{received} after {:?}", start.elapsed());
        }
        assert_eq!(received, 3000);
        assert!(start.elapsed() >= Duration::from_millis(20), "{:?}", start.elapsed());
    }

    #[test]
    fn packets_that_are_left_at_the_end_come_at_once() {
        let (port, peer) = MemoryPort::link(200);
        (0..200).for_each(|number| assert!(peer.push(&[number], FrameMeta::default())));
        let mut port = RateLimited::new(port, 10);
        let mut burst = Burst::default();
        assert!(port.receive(&mut burst).expect("no failure") < 10);
        port.stop();
        let mut received = burst.len();
        while received < 200 {
            burst.clear();
            assert!(port.receive(&mut burst).expect("no failure") > 0, "after {received}");
            received += burst.len();
        }
    }
}
