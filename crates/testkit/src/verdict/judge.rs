//! What the verifier and the kernel say of a candidate, and whether what we accept runs without a fault.

use std::sync::Arc;

use fastrand::Rng;
use paceline::{Burst, FrameMeta, Host, Limits, Map, Program};
use paceline_spec::{MapKind, MapSpec, ProgramSpec};
use paceline_verifier::{Options, Refusal, verify};

use super::{States, Witness, maps};
use crate::engine::fill_map;
use crate::kernel::{self, KernelError, Request};

/// Both verdicts.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Ours.
    pub ours: Result<usize, Box<Refusal>>,
    /// The kernel's.
    pub kernel: Result<(), KernelError>,
}

/// Judges candidates; keeps its maps from one to the next.
pub struct Judge {
    specs: Vec<MapSpec>,
    kernel_maps: Vec<kernel::Map>,
    maps: Vec<Arc<Map>>,
    host: Host,
    options: Options,
}

impl Judge {
    /// One for generated programs, with their [`maps`].
    ///
    /// # Errors
    /// What could not be made.
    pub fn new() -> Result<Self, String> {
        Self::over(maps())
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
        let mut theirs = Vec::new();
        for spec in &specs {
            let map = Map::create(spec, &limits).map_err(|error| error.to_string())?;
            fill_map(&map, spec, 0).map_err(|error| error.to_string())?;
            ours.push(map);
            theirs.push(kernel_map(spec).map_err(|error| error.to_string())?);
        }
        // Programs that the verifier found to be long are stopped before that anyway.
        let options = Options { max_instructions: 1_000_000, ..Options::default() };
        Ok(Self { specs, kernel_maps: theirs, maps: ours, host, options })
    }

    /// Sets how many instructions are simulated before a program is refused as too complex.
    pub fn limit(&mut self, instructions: usize) {
        self.options.max_instructions = instructions;
    }

    /// Our verdict: instructions simulated, or why not.
    ///
    /// # Errors
    /// The refusal.
    pub fn ours(&self, program: &ProgramSpec) -> Result<usize, Box<Refusal>> {
        verify(program, &self.specs, None, &self.options).map(|verified| verified.stats().instructions)
    }

    /// The kernel's verdict.
    ///
    /// # Errors
    /// Its refusal, with the log.
    pub fn kernel(&self, program: &ProgramSpec) -> Result<(), KernelError> {
        let request =
            Request { maps: &self.kernel_maps, license: "GPL", log_level: 1, ..Request::xdp(&program.insns) };
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
        let Ok(verified) = verify(program, &self.specs, None, &self.options) else {
            return Ok(Ran::default());
        };
        let states = States::of(program, &self.specs)?;
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
        let indexed = matches!(spec.kind, MapKind::Array | MapKind::PerCpuArray);
        if spec.frozen || !(indexed || matches!(spec.kind, MapKind::Hash | MapKind::PerCpuHash)) {
            continue;
        }
        for index in 0..spec.max_entries.min(8) {
            let mut key = vec![0; spec.key_size as usize];
            for (place, byte) in key.iter_mut().zip(index.to_ne_bytes()) {
                *place = byte;
            }
            let value: Vec<u8> = (0..map.user_value_size())
                .map(|_| [rng.u8(..), rng.u8(..4), 0, 0xff][rng.usize(..4)])
                .collect();
            // Elements that a map does not take, or does not have, are left as they are.
            let _ = if indexed || rng.bool() { map.set(&key, &value, 0) } else { map.remove(&key) };
        }
    }
}

fn kernel_map(spec: &MapSpec) -> Result<kernel::Map, KernelError> {
    let map = kernel::Map::create(spec, None, None)?;
    for (key, value) in &spec.contents {
        if let paceline_spec::InitialValue::Bytes(bytes) = value {
            map.update(key, bytes, 0)?;
        }
    }
    if spec.frozen {
        map.freeze()?;
    }
    Ok(map)
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
