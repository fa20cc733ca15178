//! What the verifier and the kernel say of a candidate, and whether what we accept runs without a fault.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use fastrand::Rng;
use paceline::{Burst, FrameMeta, Host, Limits, Map, Program};
use paceline_btf::Btf;
use paceline_spec::{MapKind, MapSpec, ProgramSpec};
use paceline_verifier::{Options, Refusal, Verified, verify};

use super::{States, Witness};
use crate::engine::fill_map;
use crate::kernel::{self, KernelError, Request};
use crate::random;

/// Both verdicts.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Ours.
    pub ours: Result<Verified, Box<Refusal>>,
    /// The kernel's.
    pub kernel: Result<(), KernelError>,
}

/// Judges candidates; keeps its maps from one to the next.
pub struct Judge {
    specs: Vec<MapSpec>,
    kernel_maps: Vec<kernel::Map>,
    maps: Vec<Arc<Map>>,
    /// The types of global functions, here and in the kernel.
    btf: Option<(&'static Btf, OwnedFd)>,
    host: Host,
    options: Options,
}

impl Judge {
    /// One for generated programs, with their [`maps`](random::maps) and types.
    ///
    /// # Errors
    /// What could not be made.
    pub fn new() -> Result<Self, String> {
        let mut judge = Self::over(random::maps())?;
        let loaded = kernel::load_btf(random::btf_image()).map_err(|error| error.to_string())?;
        judge.btf = Some((random::btf(), loaded));
        Ok(judge)
    }

    /// One for programs over other maps, made in both places if the kernel can be asked and for us only if not.
    ///
    /// # Errors
    /// What could not be made.
    pub fn over(specs: Vec<MapSpec>) -> Result<Self, String> {
        let limits = Limits { cpus: kernel::possible_cpus(), memory: 1 << 30 };
        let mut host = Host::new(0);
        host.set_trace(std::io::sink());
        let mut ours = Vec::new();
        for spec in &specs {
            let map = Map::create(spec, &limits).map_err(|error| error.to_string())?;
            fill_map(&map, spec, &ours, 0).map_err(|error| error.to_string())?;
            ours.push(map);
        }
        let theirs = kernel::Map::create_all(&specs, 0).map_err(|error| error.to_string())?;
        // Programs that the verifier found to be long are stopped before that anyway.
        let options = Options { max_instructions: 1_000_000, ..Options::default() };
        Ok(Self { specs, kernel_maps: theirs, maps: ours, btf: None, host, options })
    }

    /// Sets how many instructions are simulated before a program is refused as too complex.
    pub fn limit(&mut self, instructions: usize) {
        self.options.max_instructions = instructions;
    }

    /// The maps that programs are verified with.
    #[must_use]
    pub fn specs(&self) -> &[MapSpec] {
        &self.specs
    }

    fn types(&self) -> Option<&'static Btf> {
        self.btf.as_ref().map(|(btf, _)| *btf)
    }

    /// Our verdict: what was proven, or why not.
    ///
    /// # Errors
    /// The refusal.
    pub fn ours(&self, program: &ProgramSpec) -> Result<Verified, Box<Refusal>> {
        verify(program, &self.specs, self.types(), &self.options)
    }

    /// The kernel's verdict.
    ///
    /// # Errors
    /// Its refusal, with the log.
    pub fn kernel(&self, program: &ProgramSpec) -> Result<(), KernelError> {
        let types = || program.functions.iter().map(|f| (f.start as u32, f.btf_id)).collect();
        let is_typed = program.functions.iter().all(|f| f.btf_id != 0);
        let request = Request {
            name: "",
            kind: program.kind,
            insns: &program.insns,
            maps: &self.kernel_maps,
            license: "GPL",
            btf: self.btf.as_ref().filter(|_| is_typed).map(|(_, fd)| (fd.as_fd(), types())),
            kfuncs: &program.kfuncs,
            log_level: 1,
        };
        kernel::Program::load(&request).map(drop)
    }

    /// Both verdicts.
    #[must_use]
    pub fn judge(&self, program: &ProgramSpec) -> Judgement {
        Judgement { ours: self.ours(program), kernel: self.kernel(program) }
    }

    /// Runs a program that we accept on packets of many lengths, and holds every instruction against what the verifier
    /// said. A program that we refuse is not run.
    ///
    /// # Errors
    /// What the verifier should have foreseen.
    pub fn run(&mut self, program: &ProgramSpec, rng: &mut Rng, runs: usize) -> Result<Ran, String> {
        let Ok(verified) = self.ours(program) else { return Ok(Ran::default()) };
        let states = States::of(program, &self.specs, self.types())?;
        let mut ran = Ran { compared: states.is_some(), ..Ran::default() };
        let witness = Witness::new(&verified, states, &self.maps);
        let program = match Program::new(Arc::new(program.clone()), self.maps.clone()) {
            Ok(program) => program.with_budget(BUDGET),
            // The interpreter looks at code that is never reached as well.
            Err(_) => return Ok(ran),
        };
        for _ in 0..runs {
            fill_randomly(&self.maps, rng);
            self.host.seed(rng.u64(..));
            let mut burst = random_packet(rng);
            let len = burst.frame(0).len();
            let run = witness.run(&program, &mut burst, &mut self.host);
            ran.instructions += run.map_err(|error| format!("packet of {len} bytes: {error}"))?;
            ran.runs += 1;
            // Or else the rings are full soon.
            for ring in self.maps.iter().filter_map(|map| map.ring_buffer()) {
                ring.consume(|_| {});
            }
        }
        Ok(ran)
    }
}

/// Instructions of one run: far more than those of the generator's loops.
const BUDGET: u64 = 10_000_000;

/// What was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// Packets.
    pub runs: usize,
    /// Instructions, over all of them.
    pub instructions: u64,
    /// Whether the machine was held against the states of an exact walk, and not only against facts.
    pub compared: bool,
}

/// A burst of one packet, of a length around those that programs check for, sometimes with metadata.
fn random_packet(rng: &mut Rng) -> Burst {
    let len = match rng.u8(..4) {
        0 => [14, 15, 34, 54, 60, 64, 128, 255, 256, 257, 600, 1500][rng.usize(..12)],
        _ => rng.usize(14..100),
    };
    let packet: Vec<u8> =
        (0..len).map(|_| [rng.u8(..), rng.u8(..), rng.u8(..4), 0, 0xff][rng.usize(..5)]).collect();
    let mut burst = Burst::new(1);
    let pushed = burst.push(&packet, FrameMeta::default());
    debug_assert!(pushed.is_ok(), "short packets fit");
    if rng.u8(..3) == 0 {
        let meta: Vec<u8> = (0..4 * rng.usize(1..8)).map(|_| rng.u8(..)).collect();
        let set = burst.frame_mut(0).set_metadata(&meta);
        debug_assert!(set.is_ok(), "short metadata fits");
    }
    burst
}

/// Gives maps other contents, where they are not frozen and take them.
fn fill_randomly(maps: &[Arc<Map>], rng: &mut Rng) {
    for map in maps {
        let spec = map.spec();
        let keyed = matches!(
            spec.kind,
            MapKind::Hash
                | MapKind::PerCpuHash
                | MapKind::LruHash
                | MapKind::LruPerCpuHash
                | MapKind::LpmTrie
        );
        if spec.frozen || !(keyed || matches!(spec.kind, MapKind::Array | MapKind::PerCpuArray)) {
            continue;
        }
        for index in 0..spec.max_entries.min(8) {
            let mut key = vec![0; spec.key_size as usize];
            let start = if spec.kind == MapKind::LpmTrie { 4 } else { 0 };
            for (place, byte) in key.iter_mut().skip(start).zip(index.to_ne_bytes()) {
                *place = byte;
            }
            if start > 0
                && let Some(bits) = key.first_mut()
            {
                *bits = rng.choice([0, 8, 16, 24, 32]).unwrap_or(0);
            }
            let value: Vec<u8> = (0..map.user_value_size())
                .map(|_| [rng.u8(..), rng.u8(..4), 0, 0xff][rng.usize(..4)])
                .collect();
            // Elements that a map does not take, or does not have, are left as they are.
            let _ = if !keyed || rng.bool() { map.set(&key, &value, 0) } else { map.remove(&key) };
        }
    }
}

/// A message without its numbers, to count alike ones together.
#[must_use]
pub fn reason_class(text: &str) -> String {
    let mut class = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_digit() { '#' } else { c };
        if !(c == '#' && class.ends_with('#')) {
            class.push(c);
        }
    }
    class.truncate(110);
    class
}
