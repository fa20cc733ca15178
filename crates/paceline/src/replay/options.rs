//! Options of a run.

use crate::scenario::Origin;

/// Options of [`replay`](crate::replay()), set one after the other: `ReplayOptions::default().count(20).cpus(2)`.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ReplayOptions {
    /// Stop after this many packets.
    pub count: Option<u64>,
    /// Where packets come from.
    pub origin: Origin,
    /// One packet at a time, so that timers fire between any two, at the times of the packets if the host's time is theirs.
    pub packet_by_packet: bool,
    /// CPUs that packets come in on, all of a flow on the same one and on the queue of its number; 0 is the host's own alone. The
    /// program's maps must have as many, or the packet is a fault. More than one take packets one at a time.
    pub cpus: usize,
}

impl ReplayOptions {
    /// Stops after this many packets; `None` runs all.
    #[must_use]
    pub fn count(mut self, packets: impl Into<Option<u64>>) -> Self {
        self.count = packets.into();
        self
    }

    /// Sets where packets come from.
    #[must_use]
    pub const fn origin(mut self, origin: Origin) -> Self {
        self.origin = origin;
        self
    }

    /// Runs one packet at a time, so that timers fire between any two.
    #[must_use]
    pub const fn packet_by_packet(mut self, each: bool) -> Self {
        self.packet_by_packet = each;
        self
    }

    /// Spreads flows over this many CPUs; 0 runs all packets on the host's own.
    #[must_use]
    pub const fn cpus(mut self, cpus: usize) -> Self {
        self.cpus = cpus;
        self
    }
}
