//! What programs observe besides packets and maps: their CPU, the time, random numbers, the network.

use std::hash::{BuildHasher, RandomState};
use std::mem::offset_of;
use std::sync::{Arc, OnceLock};

use paceline_frame::{Burst, Frame};
use paceline_maps::Origin;
use paceline_network::Network;

use crate::time::{Arrivals, Clock, TimeSource};

/// What programs observe.
pub struct World {
    cpu: usize,
    pub(super) random: u64,
    /// Key of signatures that hosts exchange, such as cookies.
    secret: u64,
    network: Arc<Network>,
    time: TimeSource,
    arrivals: Arrivals,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

/// A random secret of this process.
fn common_secret() -> u64 {
    static SECRET: OnceLock<u64> = OnceLock::new();
    *SECRET.get_or_init(|| RandomState::new().hash_one(()))
}

fn empty_network() -> Arc<Network> {
    static EMPTY: OnceLock<Arc<Network>> = OnceLock::new();
    EMPTY.get_or_init(Arc::default).clone()
}

fn next_random(state: &mut u64) -> u32 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    (z >> 32) as u32
}

impl World {
    /// Offset in bytes of the worker's number, for generated code.
    pub(super) const OFFSET_CPU: usize = offset_of!(Self, cpu);

    /// The world of the worker of a number.
    pub(super) fn new(cpu: usize) -> Self {
        let (random, secret, network) = (Clock::Monotonic.system(), common_secret(), empty_network());
        Self { cpu, random, secret, network, time: TimeSource::System, arrivals: Arrivals::default() }
    }

    /// The worker's number.
    #[must_use]
    pub fn cpu(&self) -> usize {
        self.cpu
    }

    /// Changes the number, which belongs to the host in the maps that it has been admitted to.
    pub(crate) fn move_to(&mut self, cpu: usize) {
        self.cpu = cpu;
    }

    /// Sets the seed of all random numbers: of `bpf_get_prandom_u32`, whose numbers differ between workers, and of the
    /// secret in TCP's cookies, which is the same for all hosts of one seed. Without a seed all hosts of a process have one.
    pub fn seed(&mut self, seed: u64) {
        (self.random, self.secret) = (seed.wrapping_add(self.cpu as u64), seed);
    }

    /// Key of signatures that hosts exchange.
    pub fn secret(&self) -> u64 {
        self.secret
    }

    /// Sets the network. The default is an empty namespace: a loopback interface that forwards nothing.
    pub fn set_network(&mut self, network: Arc<Network>) {
        self.network = network;
    }

    /// The network that programs see.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Sets the source of the time that programs see. The default is the system's clocks.
    pub fn set_time(&mut self, source: TimeSource) {
        self.time = source;
    }

    /// The next random number: splitmix64, which accepts any seed.
    pub fn random(&mut self) -> u32 {
        next_random(&mut self.random)
    }

    /// The first random numbers of the first worker after [`seed`](Self::seed).
    #[must_use]
    pub fn randoms_of(seed: u64, count: usize) -> Vec<u32> {
        let mut state = seed;
        std::iter::repeat_with(|| next_random(&mut state)).take(count).collect()
    }

    /// Notes the packets that are run next; their numbers if there is somebody to tell.
    pub(super) fn arrive(&mut self, burst: &Burst, is_heard: bool) {
        self.arrivals.arrive(burst, self.time, is_heard);
    }

    /// The time on a clock in nanoseconds, in the run of a frame.
    pub(super) fn now(&self, clock: Clock, frame: *mut Frame) -> u64 {
        match self.time {
            TimeSource::System => clock.system(),
            TimeSource::Packets => self.arrivals.time(frame),
        }
    }

    /// The origin of an event in the run of a frame.
    pub(super) fn origin(&self, frame: *mut Frame) -> Origin {
        let (packet, received_ns) = (self.arrivals.number(frame), self.arrivals.received(frame));
        Origin { packet, cpu: self.cpu as u32, time_ns: self.now(Clock::Monotonic, frame), received_ns }
    }
}
