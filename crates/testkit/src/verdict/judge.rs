//! Verdicts of the verifier and of the kernel on a candidate, and a run of accepted candidates, which must not fault.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use fastrand::Rng;
use paceline::{Burst, FrameMeta, Host, Limits, Map, Program};
use paceline_btf::Btf;
use paceline_spec::{MapSpec, ProgramSpec};
use paceline_verifier::{Options, Refusal, Verified, verify};

use super::soundness::{States, Witness};
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

/// Judges candidates; reuses its maps.
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
    /// A judge of generated programs, with their [`maps`](random::maps) and types.
    ///
    /// # Errors
    /// The error of creating the maps.
    pub fn new() -> Result<Self, String> {
        let mut judge = Self::over(random::maps())?;
        let loaded = kernel::load_btf(random::btf_image()).map_err(|error| paceline::with_causes(&error))?;
        judge.btf = Some((random::btf(), loaded));
        Ok(judge)
    }

    /// A judge of programs over other maps, which are created in the kernel too if that is available.
    ///
    /// # Errors
    /// The error of creating the maps.
    pub fn over(specs: Vec<MapSpec>) -> Result<Self, String> {
        let limits = Limits { cpus: kernel::possible_cpus(), memory: 1 << 30 };
        let mut host = Host::new(0);
        host.set_trace(std::io::sink());
        let mut ours = Vec::new();
        for spec in &specs {
            let map = Map::create(spec, &limits).map_err(|error| paceline::with_causes(&error))?;
            fill_map(&map, spec, &ours, 0).map_err(|error| paceline::with_causes(&error))?;
            ours.push(map);
        }
        let theirs = kernel::Map::create_all(&specs, 0).map_err(|error| paceline::with_causes(&error))?;
        // Programs with many simulated instructions are stopped by the limit anyway.
        let options = Options::default().max_instructions(1_000_000);
        Ok(Self { specs, kernel_maps: theirs, maps: ours, btf: None, host, options })
    }

    /// Sets the maximum number of simulated instructions; above it a program is refused as too complex.
    pub fn limit(&mut self, instructions: usize) {
        self.options.max_instructions = instructions;
    }

    /// The maps of the programs.
    #[must_use]
    pub fn specs(&self) -> &[MapSpec] {
        &self.specs
    }

    fn types(&self) -> Option<&'static Btf> {
        self.btf.as_ref().map(|(btf, _)| *btf)
    }

    /// Our verdict: the verified program, or the refusal.
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

    /// Runs an accepted program on packets of many lengths, and checks every instruction against the verifier's facts and
    /// states. A refused program does not run.
    ///
    /// # Errors
    /// A fault, or a contradiction to the verifier.
    pub fn run(&mut self, program: &ProgramSpec, rng: &mut Rng, runs: usize) -> Result<Ran, String> {
        let Ok(verified) = self.ours(program) else { return Ok(Ran::default()) };
        let states = States::of(program, &self.specs, self.types())?;
        let mut ran = Ran { compared: states.is_some(), ..Ran::default() };
        let witness = Witness::new(&verified, states, &self.maps);
        let program = match Program::new(Arc::new(program.clone()), self.maps.clone()) {
            Ok(program) => program.with_budget(BUDGET),
            // The interpreter also refuses invalid unreachable code.
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
            // Otherwise the rings fill up.
            for ring in self.maps.iter().filter_map(|map| map.ring_buffer()) {
                ring.consume(|_| {});
            }
        }
        Ok(ran)
    }
}

/// Instruction budget of one run: far more than the generator's loops need.
const BUDGET: u64 = 10_000_000;

/// Statistics of runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ran {
    /// Packets.
    pub runs: usize,
    /// Instructions, over all of them.
    pub instructions: u64,
    /// Whether the machine was checked against the states of an exact walk, and not only against facts.
    pub compared: bool,
}

/// A burst of one packet, with a length near those that programs check for, sometimes with metadata.
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

/// Sets other contents of maps that are not frozen.
fn fill_randomly(maps: &[Arc<Map>], rng: &mut Rng) {
    for map in maps {
        let spec = map.spec();
        let keyed = spec.kind.is_keyed();
        if spec.frozen || !(keyed || spec.kind.is_array()) {
            continue;
        }
        for index in 0..spec.max_entries.min(8) {
            let mut key = vec![0; spec.key_size as usize];
            let start = if spec.kind.has_prefixes() { 4 } else { 0 };
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
            let _ = if !keyed || rng.bool() { map.insert(&key, &value) } else { map.delete(&key) };
        }
    }
}

/// A message without its numbers, to group similar ones.
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
