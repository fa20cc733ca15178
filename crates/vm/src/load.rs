//! From a verified program to one that an engine runs.

use std::sync::Arc;

use paceline_jit::{CompileError, Settings};
use paceline_maps::Map;
use paceline_spec::{InitialValue, MapFlags, MapSpec};
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::native;
use crate::program::{Program, ProgramError};
use crate::threaded;

/// Why a verified program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// It is malformed, or needs what no engine has.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A map is not of the specification that the program was verified with.
    #[error("map {name} is not the one that the program was verified with: {what} differs")]
    Map {
        /// Name of the map.
        name: String,
        /// What differs.
        what: &'static str,
    },
    /// There are not as many maps as the program was verified with.
    #[error("program was verified with {expected} maps and is loaded with {found}")]
    MapCount {
        /// Maps it was verified with.
        expected: usize,
        /// Maps given.
        found: usize,
    },
    /// There is no native code for it.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// There is no executable memory for its native code.
    #[error("{0}")]
    Memory(String),
    /// The engine is not for this machine.
    #[error("engine {0} is not available on this machine")]
    Unavailable(Engine),
}

impl Program {
    /// Makes a verified program ready to run on an engine, with its maps in the order of its object.
    ///
    /// # Errors
    /// [`LoadError`]. What an engine refuses is never given to another one instead.
    pub fn load(verified: &Verified, maps: Vec<Arc<Map>>, engine: Engine) -> Result<Self, LoadError> {
        check_load(verified, &maps, engine)?;
        match engine {
            Engine::Plain => Ok(Self::new(Arc::new(verified.program().clone()), maps)?),
            Engine::Jit | Engine::CheckedJit => {
                let checked = engine == Engine::CheckedJit;
                native::load(verified, maps, &Settings { checked, ..native::settings() })
            }
            Engine::Threaded => Ok(threaded::load(verified, maps)?),
        }
    }
}

/// Ways to compile that are there to be measured.
impl Program {
    /// Makes a verified program ready to run as native code that is compiled otherwise than [`load`](Self::load) does:
    /// `change` changes the settings that are best on this machine.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_with_settings(
        verified: &Verified,
        maps: Vec<Arc<Map>>,
        change: impl FnOnce(&mut Settings),
    ) -> Result<Self, LoadError> {
        check_load(verified, &maps, Engine::Jit)?;
        let mut settings = native::settings();
        change(&mut settings);
        native::load(verified, maps, &settings)
    }
}

/// Whether the engine can run the program, with these maps.
pub(crate) fn check_load(verified: &Verified, maps: &[Arc<Map>], engine: Engine) -> Result<(), LoadError> {
    if !engine.is_available() {
        return Err(LoadError::Unavailable(engine));
    }
    check_maps(verified.maps(), maps)
}

/// The proof holds for maps of the same specifications, and where loads from a frozen map were taken as constants, of
/// the same contents.
fn check_maps(specs: &[MapSpec], maps: &[Arc<Map>]) -> Result<(), LoadError> {
    if specs.len() != maps.len() {
        return Err(LoadError::MapCount { expected: specs.len(), found: maps.len() });
    }
    match specs.iter().zip(maps).find_map(|(spec, map)| Some((spec, difference(spec, map)?))) {
        Some((spec, what)) => Err(LoadError::Map { name: spec.name.clone(), what }),
        None => Ok(()),
    }
}

fn difference(spec: &MapSpec, map: &Map) -> Option<&'static str> {
    let made = map.spec();
    let access =
        |flags: MapFlags| (flags.contains(MapFlags::RDONLY_PROG), flags.contains(MapFlags::WRONLY_PROG));
    // Creation gives maps of devices the flag for read-only, and completes the entries of those that have none.
    let read_only = access(made.flags).0 || !access(spec.flags).0;
    [
        (made.kind == spec.kind, "the kind"),
        (made.key_size == spec.key_size, "the key size"),
        (made.value_size == spec.value_size, "the value size"),
        (!spec.kind.is_array() || made.max_entries == spec.max_entries, "the number of entries"),
        (read_only && access(made.flags).1 == access(spec.flags).1, "what programs may do with it"),
        (!spec.frozen || map.is_frozen() && has_contents(map, spec), "the contents"),
    ]
    .into_iter()
    .find_map(|(same, what)| (!same).then_some(what))
}

/// Whether a map holds what its specification says, and zeros elsewhere.
fn has_contents(map: &Map, spec: &MapSpec) -> bool {
    let Ok(mut keys) = map.keys() else { return false };
    keys.all(|key| {
        let said = spec.contents.iter().find_map(|(k, value)| match value {
            InitialValue::Bytes(bytes) if *k == key => Some(bytes.as_slice()),
            _ => None,
        });
        let said = said.unwrap_or_default();
        map.get(&key).is_ok_and(|found| match found.split_at_checked(said.len()) {
            Some((start, rest)) => start == said && rest.iter().all(|&byte| byte == 0),
            None => false,
        })
    })
}
