//! Measures one program, in a separate process.

use std::fmt;
use std::fs::read_to_string;
use std::num::ParseIntError;
use std::str::FromStr;

use paceline_engine::{Engine, Program};
use paceline_maps::{Limits, Map};
use paceline_verifier::{Options, verify};

use super::families::Item;

/// Maximum size of its maps in bytes.
const MAP_MEMORY: u64 = 1 << 20;

/// Cost of a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Whether it was accepted.
    pub accepted: bool,
    /// Slots of the program.
    pub slots: u64,
    /// Number of its types.
    pub types: u64,
    /// Simulated instructions, also of a refused program.
    pub instructions: u64,
    /// Steps of comparisons.
    pub steps: u64,
    /// Processor time of the verification in nanoseconds.
    pub verify: u64,
    /// Processor time of the translation for the threaded interpreter.
    pub threaded: u64,
    /// Processor time of the compilation.
    pub jit: u64,
    /// Peak memory of the process, in KiB.
    pub peak: u64,
}

impl Cost {
    fn fields(&self) -> [u64; 9] {
        let Self { accepted, slots, types, instructions, steps, verify, threaded, jit, peak } = *self;
        [accepted.into(), slots, types, instructions, steps, verify, threaded, jit, peak]
    }
}

/// The numbers separated by spaces, for the parent process.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.fields().map(|field| field.to_string());
        f.write_str(&fields.join(" "))
    }
}

impl FromStr for Cost {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, ParseIntError> {
        let mut fields = text.split_whitespace();
        let mut next = || fields.next().unwrap_or_default().parse::<u64>();
        Ok(Self {
            accepted: next()? != 0,
            slots: next()?,
            types: next()?,
            instructions: next()?,
            steps: next()?,
            verify: next()?,
            threaded: next()?,
            jit: next()?,
            peak: next()?,
        })
    }
}

/// Verifies a program, and if it is accepted loads it for both engines.
///
/// # Errors
/// A file in `/proc` cannot be read, or an engine refuses the program.
pub fn measure(item: &Item, options: &Options) -> Result<Cost, String> {
    let mut cost = Cost {
        slots: item.program.insns.len() as u64,
        types: item.btf.as_ref().map_or(0, |btf| btf.types().count()) as u64,
        ..Cost::default()
    };
    let start = processor_time()?;
    let result = verify(&item.program, &item.maps, item.btf.as_ref(), options);
    cost.verify = processor_time()? - start;
    match result {
        Ok(verified) => {
            cost.accepted = true;
            cost.instructions = verified.stats().instructions as u64;
            cost.steps = verified.stats().work as u64;
            let limits = Limits { cpus: 1, memory: MAP_MEMORY };
            let maps: Result<Vec<_>, _> = item.maps.iter().map(|spec| Map::create(spec, &limits)).collect();
            let maps = maps.map_err(|error| paceline::with_causes(&error))?;
            for (engine, time) in [(Engine::Threaded, &mut cost.threaded), (Engine::Jit, &mut cost.jit)] {
                if !engine.is_available() {
                    continue;
                }
                let start = processor_time()?;
                Program::load(&verified, maps.clone(), engine)
                    .map_err(|error| paceline::with_causes(&error))?;
                *time = processor_time()? - start;
            }
        }
        Err(refusal) => {
            cost.instructions = refusal.stats.instructions as u64;
            cost.steps = refusal.stats.work as u64;
        }
    }
    cost.peak = peak_memory()?;
    Ok(cost)
}

/// Processor time of this thread, in nanoseconds.
fn processor_time() -> Result<u64, String> {
    let path = "/proc/thread-self/schedstat";
    let text = read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    text.split_whitespace().next().and_then(|time| time.parse().ok()).ok_or_else(|| format!("{path}: {text}"))
}

/// Peak memory of this process, in KiB.
fn peak_memory() -> Result<u64, String> {
    let path = "/proc/self/status";
    let text = read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next()).and_then(|number| number.parse().ok());
    number.ok_or_else(|| format!("{path}: no VmHWM"))
}
