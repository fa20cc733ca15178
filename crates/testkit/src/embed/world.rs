//! State of a sequence.

use std::any::Any;
use std::sync::Arc;

use fastrand::Rng;
use paceline::{Burst, Chain, Engine, FrameMeta, Host, Limits, LiveChain, Map, Pipeline, Program, Target};

use super::finding::refused;
use super::loaded::Loaded;
use super::stall::Stall;
use super::table::Table;

/// Settings of a sequence.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seed of all random choices.
    pub seed: u64,
    /// The engines to choose from.
    pub engines: Vec<Engine>,
    /// Draw only operations of this theme, or of this name.
    pub theme: Option<String>,
}

/// Something that runs bursts.
pub(super) enum Runner {
    Program(Program),
    Chain(Chain),
    Site(Pipeline, u64),
    Live(LiveChain),
}

/// A runner and its properties.
pub(super) struct Run {
    pub(super) runner: Runner,
    /// Its programs are verified: it must not fault.
    pub(super) verified: bool,
    /// Map with the counter of its packets: the sum of the values of all CPUs at index 0.
    pub(super) counter: Option<Arc<Map>>,
    /// Increment of the counter per packet.
    pub(super) step: u64,
}

pub(super) struct World {
    pub(super) engines: Vec<Engine>,
    pub(super) loaded: Vec<Loaded>,
    pub(super) runs: Vec<Run>,
    pub(super) hosts: Vec<Host>,
    pub(super) tables: Vec<Table>,
    pub(super) stalls: Vec<Stall>,
    /// Values that are dropped at a random time.
    pub(super) others: Vec<Box<dyn Any>>,
    /// Ids of the created maps.
    pub(super) ids: Vec<u32>,
    /// Whether `membarrier(2)` is denied.
    pub(super) denied: bool,
    /// Whether a program array has a program that may fault, so that its callers may fault.
    pub(super) calls_unproven: bool,
}

impl World {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            engines: settings.engines.clone(),
            loaded: Vec::new(),
            runs: Vec::new(),
            hosts: Vec::new(),
            tables: Vec::new(),
            stalls: Vec::new(),
            others: Vec::new(),
            ids: Vec::new(),
            denied: false,
            calls_unproven: false,
        }
    }

    /// Whether replaced values may have to wait, so that changes may be refused.
    pub(super) fn may_refuse(&self) -> bool {
        self.denied || !self.stalls.is_empty()
    }

    pub(super) fn engine(&self, rng: &mut Rng) -> Engine {
        rng.choice(&self.engines).copied().unwrap_or(Engine::Plain)
    }

    /// A host, sometimes a new one, of a CPU within or beyond those of maps.
    pub(super) fn host(&mut self, rng: &mut Rng) -> usize {
        if self.hosts.is_empty() || rng.u8(0..4) == 0 {
            let mut host = Host::new(*rng.choice(&[0, 0, 0, 1, 3, 40]).unwrap_or(&0));
            host.seed(rng.u64(..));
            host.set_trace(std::io::sink());
            self.hosts.push(host);
        }
        rng.usize(..self.hosts.len())
    }

    /// Records a map, to check in the end that it is freed.
    pub(super) fn know(&mut self, map: &Map) {
        self.ids.push(map.id());
    }
}

/// Limits for maps of one CPU or more.
pub(super) fn limits(rng: &mut Rng) -> Limits {
    Limits { cpus: *rng.choice(&[1, 1, 2, 4]).unwrap_or(&1), memory: 1 << 26 }
}

/// A burst of packets that start with random bytes.
pub(super) fn burst(rng: &mut Rng) -> Burst {
    let most = if rng.bool() { 1 } else { 64 };
    let mut burst = Burst::new(64);
    for _ in 0..rng.usize(1..=most) {
        let len = *rng.choice(&[60, 60, 64, 1, 2, 14, 128, 1500, 3000]).unwrap_or(&60);
        let mut packet = vec![0; len];
        let start = len.min(16);
        rng.fill(&mut packet[..start]);
        let _pushed = burst.push(&packet, FrameMeta::default());
    }
    burst
}

/// Packets that all start with these bytes.
pub(super) fn packets(start: &[u8], count: usize) -> Burst {
    let mut packet = [0; 60];
    packet[..start.len()].copy_from_slice(start);
    let mut burst = Burst::new(count.clamp(1, 64));
    (0..count.min(64)).for_each(|_| {
        let _pushed = burst.push(&packet, FrameMeta::default());
    });
    burst
}

/// The sum of a 64-bit counter over all CPUs.
pub(super) fn total(map: &Map, index: u32) -> u64 {
    let value = map.lookup(&index.to_ne_bytes()).unwrap_or_default();
    value
        .chunks_exact(8)
        .filter_map(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)))
        .fold(0, u64::wrapping_add)
}

/// Sets a program at a pipeline's interface and makes both a runner.
pub(super) fn site(target: &Target, key: u32) -> Result<Runner, String> {
    let pipeline = Pipeline::new();
    pipeline.set_program(key, Some(target)).map_err(refused)?;
    Ok(Runner::Site(pipeline, u64::from(key)))
}
