//! A whole object in the kernel: its maps with their contents, and its programs.

use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use paceline_btf::Btf;
use paceline_spec::{InitialValue, MapSpec, ProgramSpec};

use crate::error::KernelError;
use crate::map::{ElementTypes, Map};
use crate::program::{LOG_STATS, Program, Request, load_btf};
use crate::types::{function_types, loadable};

/// Error of loading an object into the kernel.
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
    /// An initial value names a map or a program that does not exist.
    #[error("map {name}: an initial value names something that does not exist")]
    Dangling {
        /// Name of the map.
        name: String,
    },
}

/// Options of loading.
#[derive(Clone, Copy, Debug, Default)]
pub struct LoadOptions<'a> {
    /// The types of functions, keys and values. With them, global subprograms are verified separately.
    pub btf: Option<&'a Btf>,
    /// Whether types that the kernel refuses are omitted, as libbpf does; [`KernelObject::untyped`] lists them.
    pub leave_out_types: bool,
    /// The CPU for the initial contents of per-CPU maps.
    pub cpu: usize,
}

/// Maps and programs in the kernel, in the order of their specs.
#[derive(Debug)]
pub struct KernelObject {
    /// Maps, with all contents but the programs of program arrays.
    pub maps: Vec<Map>,
    /// Programs.
    pub programs: Vec<Program>,
    /// Maps and programs loaded without BTF, with the reason.
    pub untyped: Vec<String>,
    btf: Option<OwnedFd>,
}

impl KernelObject {
    /// Creates, fills and freezes the maps, and loads the programs.
    ///
    /// # Errors
    /// [`LoadError`] for the first map or program that fails.
    pub fn load<'a>(
        maps: &[MapSpec],
        programs: impl IntoIterator<Item = &'a ProgramSpec>,
        options: LoadOptions<'_>,
    ) -> Result<Self, LoadError> {
        let specs: Vec<&ProgramSpec> = programs.into_iter().collect();
        let mut object = Self::with_maps(maps, &specs, options)?;
        for spec in &specs {
            let program = Program::load(&object.request(spec)).map_err(program_error(spec))?;
            object.programs.push(program);
        }
        for (spec, map) in maps.iter().zip(&object.maps) {
            fill_programs(spec, map, &specs, &object.programs, options.cpu)?;
        }
        Ok(object)
    }

    /// Creates the maps, then loads a program `rounds` times. Returns the kernel's statistics of the fastest verification,
    /// and what was loaded without types, with the reason.
    ///
    /// # Errors
    /// [`LoadError`] for the first map that fails, or the program.
    pub fn verify_timed(
        maps: &[MapSpec],
        program: &ProgramSpec,
        options: LoadOptions<'_>,
        rounds: usize,
    ) -> Result<(VerifierStats, Vec<String>), LoadError> {
        let object = Self::with_maps(maps, &[program], options)?;
        let request = Request { log_level: LOG_STATS, ..object.request(program) };
        let mut best: Option<VerifierStats> = None;
        for _ in 0..rounds.max(1) {
            let (_, log) = Program::load_with_log(&request).map_err(program_error(program))?;
            let stats = VerifierStats::from_log(&log);
            best = Some(best.filter(|best| best.time <= stats.time).unwrap_or(stats));
        }
        Ok((best.unwrap_or_default(), object.untyped))
    }

    fn with_maps(
        maps: &[MapSpec],
        programs: &[&ProgramSpec],
        options: LoadOptions<'_>,
    ) -> Result<Self, LoadError> {
        let mut object = Self { maps: Vec::new(), programs: Vec::new(), untyped: Vec::new(), btf: None };
        if let Some(btf) = options.btf {
            match load_btf(&loadable(btf, programs.iter().copied()).to_bytes()) {
                Ok(fd) => object.btf = Some(fd),
                Err(error) if options.leave_out_types => object.untyped.push(format!("everything: {error}")),
                Err(error) => return Err(LoadError::Btf(error)),
            }
        }
        if object.btf.is_some() {
            let untyped = programs.iter().filter(|program| function_types(program).is_empty());
            let note = |program: &&&ProgramSpec| format!("program {}: a function has no type", program.name);
            object.untyped.extend(untyped.map(|program| note(&program)));
        }
        for spec in maps {
            let map = object.create(spec, options.leave_out_types)?;
            object.maps.push(map);
        }
        for (spec, map) in maps.iter().zip(&object.maps) {
            fill(spec, map, &object.maps, options.cpu)?;
        }
        Ok(object)
    }

    /// Creates another map, such as one for an entry of a map of maps, with the types of the object where the kernel takes them.
    ///
    /// # Errors
    /// [`LoadError::Map`]
    pub fn create_map(&mut self, spec: &MapSpec) -> Result<Map, LoadError> {
        self.create(spec, true)
    }

    fn create(&mut self, spec: &MapSpec, leave_out_types: bool) -> Result<Map, LoadError> {
        // The template can be freed once the outer map exists.
        let template = spec.inner.as_deref().map(|inner| self.create(inner, leave_out_types)).transpose()?;
        let types = self.btf.as_ref().filter(|_| spec.value_type != 0 && spec.kind.has_element_types());
        let types =
            types.map(|btf| ElementTypes { btf: btf.as_fd(), key: spec.key_type, value: spec.value_type });
        match Map::create(spec, template.as_ref(), types) {
            Err(error) if types.is_some() && leave_out_types => {
                self.untyped.push(format!("map {}: {error}", spec.name));
                Map::create(spec, template.as_ref(), None).map_err(map_error(spec))
            }
            result => result.map_err(map_error(spec)),
        }
    }

    /// The load request of a program with these maps and types.
    #[must_use]
    pub fn request<'a>(&'a self, spec: &'a ProgramSpec) -> Request<'a> {
        let functions = function_types(spec);
        Request {
            name: &spec.name,
            kind: spec.kind,
            insns: &spec.insns,
            kfuncs: &spec.kfuncs,
            maps: &self.maps,
            license: &spec.license,
            btf: self.btf.as_ref().filter(|_| !functions.is_empty()).map(|fd| (fd.as_fd(), functions)),
            log_level: 2,
        }
    }
}

/// Statistics of the kernel's verifier (`print_verification_stats`), without the JIT's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerifierStats {
    /// Duration; the kernel's resolution is a microsecond.
    pub time: Duration,
    /// Instructions simulated.
    pub instructions: u64,
    /// Maximum number of states kept at one time.
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

fn program_error(spec: &ProgramSpec) -> impl Fn(KernelError) -> LoadError {
    move |error| LoadError::Program { name: spec.name.clone(), error }
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
            // Programs are loaded later.
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
