//! A whole object in the kernel: its maps with their contents, and its programs.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use paceline_spec::{InitialValue, Linkage, MapSpec, ProgramSpec};

use super::program::{LOG_STATS, load_btf};
use super::{KernelError, Map, Program, Request};

/// Why an object did not get into the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// A map was refused.
    #[error("map {name}: {error}")]
    Map {
        /// Name of the map.
        name: String,
        /// The kernel's refusal.
        error: KernelError,
    },
    /// The object's BTF was refused.
    #[error(transparent)]
    Btf(KernelError),
    /// A program was refused.
    #[error("program {name}: {error}")]
    Program {
        /// Name of the program.
        name: String,
        /// The kernel's refusal.
        error: KernelError,
    },
    /// An initial value names a map or a program that the object does not have.
    #[error("map {name}: an initial value names something that is not there")]
    Dangling {
        /// Name of the map.
        name: String,
    },
}

/// How an object is loaded.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions<'a> {
    /// The object's BTF section. With it, subprograms of global linkage are verified on their own.
    pub btf: Option<&'a [u8]>,
    /// The CPU whose values the initial contents of per-CPU maps are.
    pub cpu: usize,
}

/// Maps and programs in the kernel, in the order of their specs.
#[derive(Debug)]
pub struct KernelObject {
    /// Maps, with all contents but the programs of program arrays.
    pub maps: Vec<Map>,
    /// Programs.
    pub programs: Vec<Program>,
}

impl KernelObject {
    /// Makes the maps, fills and freezes them, and loads the programs.
    ///
    /// # Errors
    /// [`LoadError`] for the first map or program that fails.
    pub fn load<'a>(
        maps: &[MapSpec],
        programs: impl IntoIterator<Item = &'a ProgramSpec>,
        options: LoadOptions<'_>,
    ) -> Result<Self, LoadError> {
        let btf = options.btf.map(load_btf).transpose().map_err(LoadError::Btf)?;
        let kernel_maps = maps.iter().map(create).collect::<Result<Vec<_>, _>>()?;
        for (spec, map) in maps.iter().zip(&kernel_maps) {
            fill(spec, map, &kernel_maps, options.cpu)?;
        }
        let specs: Vec<&ProgramSpec> = programs.into_iter().collect();
        let load = |spec: &&ProgramSpec| load_program(spec, &kernel_maps, btf.as_ref());
        let programs = specs.iter().map(load).collect::<Result<Vec<_>, _>>()?;
        for (spec, map) in maps.iter().zip(&kernel_maps) {
            fill_programs(spec, map, &specs, &programs, options.cpu)?;
        }
        Ok(Self { maps: kernel_maps, programs })
    }

    /// Makes the maps, then loads a program `rounds` times and gives what the kernel says of the fastest verification.
    ///
    /// # Errors
    /// [`LoadError`] for the first map that fails, or the program.
    pub fn verify_timed(
        maps: &[MapSpec],
        program: &ProgramSpec,
        options: LoadOptions<'_>,
        rounds: usize,
    ) -> Result<VerifierStats, LoadError> {
        let btf = options.btf.map(load_btf).transpose().map_err(LoadError::Btf)?;
        let object = Self::load(maps, [], options)?;
        let failed = |error| LoadError::Program { name: program.name.clone(), error };
        let request = Request { log_level: LOG_STATS, ..request(program, &object.maps, btf.as_ref()) };
        let mut best: Option<VerifierStats> = None;
        for _ in 0..rounds.max(1) {
            let (_, log) = Program::load_with_log(&request).map_err(failed)?;
            let stats = VerifierStats::from_log(&log);
            best = Some(best.filter(|best| best.time <= stats.time).unwrap_or(stats));
        }
        Ok(best.unwrap_or_default())
    }
}

/// What the kernel's verifier says of its work (`print_verification_stats`), without the time of the JIT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifierStats {
    /// How long it took; the kernel tells whole microseconds.
    pub time: Duration,
    /// Instructions simulated.
    pub instructions: u64,
    /// Most states kept at one time.
    pub peak_states: u64,
}

impl VerifierStats {
    fn from_log(log: &str) -> Self {
        let words: Vec<&str> = log.split_whitespace().collect();
        let after = |wanted: &[&str]| {
            let start = words.windows(wanted.len()).position(|window| window == wanted)?;
            words.get(start + wanted.len())?.parse::<u64>().ok()
        };
        Self {
            time: Duration::from_micros(after(&["verification", "time"]).unwrap_or(0)),
            instructions: after(&["processed"]).unwrap_or(0),
            peak_states: after(&["peak_states"]).unwrap_or(0),
        }
    }
}

fn map_error(spec: &MapSpec) -> impl Fn(KernelError) -> LoadError {
    move |error| LoadError::Map { name: spec.name.clone(), error }
}

fn create(spec: &MapSpec) -> Result<Map, LoadError> {
    // The template may go again as soon as the outer map is there.
    let template = spec.inner.as_deref().map(create).transpose()?;
    Map::create(spec, template.as_ref()).map_err(map_error(spec))
}

fn fill(spec: &MapSpec, map: &Map, maps: &[Map], cpu: usize) -> Result<(), LoadError> {
    for (key, value) in &spec.contents {
        match value {
            InitialValue::Bytes(bytes) => map.update(key, bytes, cpu).map_err(map_error(spec))?,
            InitialValue::Map(index) => {
                let dangling = || LoadError::Dangling { name: spec.name.clone() };
                let inner = maps.get(*index).ok_or_else(dangling)?;
                map.update(key, &inner.raw_fd().to_ne_bytes(), cpu).map_err(map_error(spec))?;
            }
            // Programs are not there yet.
            InitialValue::Program(_) => {}
        }
    }
    if spec.frozen { map.freeze().map_err(map_error(spec)) } else { Ok(()) }
}

fn fill_programs(
    spec: &MapSpec,
    map: &Map,
    specs: &[&ProgramSpec],
    programs: &[Program],
    cpu: usize,
) -> Result<(), LoadError> {
    for (key, value) in &spec.contents {
        let InitialValue::Program(name) = value else { continue };
        let found = specs.iter().position(|program| program.name == *name);
        let program = found.and_then(|index| programs.get(index));
        let program = program.ok_or_else(|| LoadError::Dangling { name: spec.name.clone() })?;
        map.update(key, &program.raw_fd().to_ne_bytes(), cpu).map_err(map_error(spec))?;
    }
    Ok(())
}

fn request<'a>(spec: &'a ProgramSpec, maps: &'a [Map], btf: Option<&'a OwnedFd>) -> Request<'a> {
    Request {
        name: &spec.name,
        kind: spec.kind,
        insns: &spec.insns,
        maps,
        license: &spec.license,
        btf: btf.map(|fd| (fd.as_fd(), function_types(spec))).filter(|(_, functions)| !functions.is_empty()),
        log_level: 2,
    }
}

fn load_program(spec: &ProgramSpec, maps: &[Map], btf: Option<&OwnedFd>) -> Result<Program, LoadError> {
    Program::load(&request(spec, maps, btf))
        .map_err(|error| LoadError::Program { name: spec.name.clone(), error })
}

/// First slot and BTF type of every function; nothing if one of them has no type, because the kernel wants all or none.
fn function_types(spec: &ProgramSpec) -> Vec<(u32, u32)> {
    let has_global_subprogram = spec.functions.iter().skip(1).any(|f| f.linkage == Linkage::Global);
    if !has_global_subprogram || spec.functions.iter().any(|f| f.btf_id == 0) {
        return Vec::new();
    }
    spec.functions.iter().map(|f| (u32::try_from(f.start).unwrap_or(u32::MAX), f.btf_id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_read_from_the_log() {
        let log = "func#0 @0\nverification time 12 usec\nstack depth 8\nprocessed 30 insns (limit 1000000) \
                   max_states_per_insn 1 total_states 3 peak_states 2 mark_read 1\n";
        let expected = VerifierStats { time: Duration::from_micros(12), instructions: 30, peak_states: 2 };
        assert_eq!(VerifierStats::from_log(log), expected);
    }
}
