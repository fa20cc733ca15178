//! What the verifier and the kernel say of a candidate, and whether what we accept runs without a fault.

use std::sync::Arc;

use fastrand::Rng;
use paceline::{Burst, FaultKind, FrameMeta, Host, Limits, Map};
use paceline_spec::{MapSpec, ProgramSpec};
use paceline_verifier::{Options, Refusal, verify};

use super::maps;
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
    /// Makes the maps on both sides.
    ///
    /// # Errors
    /// What could not be made.
    pub fn new() -> Result<Self, String> {
        let specs = maps();
        let limits = Limits { cpus: kernel::possible_cpus(), memory: 1 << 20 };
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

    /// Runs an accepted program on packets of many lengths under the interpreter that checks every access.
    ///
    /// # Errors
    /// The fault, which the verifier should have foreseen.
    pub fn run(&mut self, program: &ProgramSpec, rng: &mut Rng, runs: usize) -> Result<(), String> {
        let program = match paceline::Program::new(Arc::new(program.clone()), self.maps.clone()) {
            Ok(program) => program.with_budget(10_000_000),
            // The interpreter looks at code that is never reached as well.
            Err(paceline::ProgramError::WritesFramePointer { .. }) => return Ok(()),
            Err(error) => return Err(format!("not loaded: {error}")),
        };
        for _ in 0..runs {
            let len = [0, 1, 13, 14, 34, 54, 60, 64, 128, 255, 256, 257, 600, 1500][rng.usize(..14)];
            let packet: Vec<u8> = (0..len).map(|_| if rng.bool() { rng.u8(..) } else { 0 }).collect();
            let mut burst = Burst::new(1);
            if burst.push(&packet, FrameMeta::default()).is_err() {
                continue;
            }
            if let Err(fault) = program.run(&mut burst.frame_mut(0), &mut self.host) {
                if matches!(fault.kind, FaultKind::NoSuchHelper(_)) {
                    return Ok(());
                }
                return Err(format!("packet of {len} bytes: {fault}"));
            }
        }
        Ok(())
    }
}

fn kernel_map(spec: &MapSpec) -> Result<kernel::Map, KernelError> {
    let map = kernel::Map::create(spec, None)?;
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
