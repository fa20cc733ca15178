//! The time that programs see.

use paceline_frame::{Burst, Frame};
use rustix::time::{ClockId, DynamicClockId, clock_gettime, clock_gettime_dynamic};

/// A clock of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`, for `bpf_ktime_get_ns`.
    Monotonic,
    /// `CLOCK_MONOTONIC_COARSE`, for `bpf_ktime_get_coarse_ns`.
    Coarse,
    /// `CLOCK_BOOTTIME`, for `bpf_ktime_get_boot_ns`.
    Boot,
    /// `CLOCK_REALTIME`, for timers.
    Real,
    /// `CLOCK_TAI`, for `bpf_ktime_get_tai_ns`.
    Tai,
}

impl Clock {
    /// Nanoseconds of the system's clock.
    pub fn system(self) -> u64 {
        let time = match self {
            Self::Monotonic => clock_gettime(ClockId::Monotonic),
            Self::Coarse => clock_gettime(ClockId::MonotonicCoarse),
            Self::Boot => clock_gettime(ClockId::Boottime),
            Self::Real => clock_gettime(ClockId::Realtime),
            // TAI is the one that a system may lack; it differs from real time by whole seconds.
            Self::Tai => clock_gettime_dynamic(DynamicClockId::Tai)
                .unwrap_or_else(|_| clock_gettime(ClockId::Realtime)),
        };
        (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
    }
}

/// Source of a host's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeSource {
    /// From the system's clocks.
    #[default]
    System,
    /// From the time stamps of the packets: each packet runs at the time at which it was seen, on every clock.
    Packets,
}

/// The packets that a host was told of last, by the addresses of their frames.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// Address of the first packet's frame.
    first: usize,
    /// Times of all packets; empty unless the time comes from packets.
    stamps: Vec<u64>,
    /// Times at which they were received, if events are told of them.
    received: Vec<u64>,
    len: usize,
    /// Packets before.
    before: u64,
    /// The time of the last one.
    pub now: u64,
}

impl Arrivals {
    /// Notes the packets that are run next, and when they were received if `has_events`.
    pub fn arrive(&mut self, burst: &Burst, source: TimeSource, has_events: bool) {
        self.before += self.len as u64;
        self.len = burst.len();
        self.stamps.clear();
        self.received.clear();
        if self.len == 0 {
            return;
        }
        let first: *const Frame = &raw const *burst.frame(0);
        self.first = first.addr();
        if has_events {
            self.received.extend(burst.iter().map(|frame| frame.meta().timestamp_ns));
        }
        if source == TimeSource::Packets {
            // The kernel's clocks never go back; stamps of captures may.
            self.stamps.extend(burst.iter().map(|frame| {
                self.now = self.now.max(frame.meta().timestamp_ns);
                self.now
            }));
        }
    }

    fn index(&self, frame: *const Frame) -> Option<usize> {
        let index = frame.addr().checked_sub(self.first)? / size_of::<Frame>();
        (index < self.len).then_some(index)
    }

    /// The time of a packet, by its frame; of the last one for others.
    pub fn time(&self, frame: *const Frame) -> u64 {
        // default: frames of which the host was not told.
        self.index(frame).and_then(|index| self.stamps.get(index)).copied().unwrap_or(self.now)
    }

    /// The time at which a packet was received; 0 if it is not known.
    pub fn received(&self, frame: *const Frame) -> u64 {
        // default: as above.
        self.index(frame).and_then(|index| self.received.get(index)).copied().unwrap_or(0)
    }

    /// Number of a packet among all that the host was told of, from 1.
    pub fn number(&self, frame: *const Frame) -> Option<u64> {
        Some(self.before + self.index(frame)? as u64 + 1)
    }
}
