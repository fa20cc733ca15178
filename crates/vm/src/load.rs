//! From a verified program to one that an engine runs.

mod maps;

use std::sync::Arc;

use paceline_jit::{CompileError, Settings};
use paceline_maps::Map;
use paceline_verifier::Verified;

use crate::engine::Engine;
use crate::form::{Form, ProgramError};
use crate::image::least_cpus;
use crate::native;
use crate::program::Program;
use crate::threaded;

/// Why a verified program cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
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
            Engine::Plain => {
                let cpus = least_cpus(verified.code(), &maps);
                let spec = Arc::new(verified.program().clone());
                Ok(Self::checked(spec, maps, Form::Proven(verified), cpus)?)
            }
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
    /// `change` changes the settings that are best on this machine. It cannot add instructions that the machine lacks.
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
        let machine = settings.features;
        change(&mut settings);
        settings.features = settings.features.and(machine);
        native::load(verified, maps, &settings)
    }
}

/// Whether the engine can run the program, with these maps.
pub(crate) fn check_load(verified: &Verified, maps: &[Arc<Map>], engine: Engine) -> Result<(), LoadError> {
    if !engine.is_available() {
        return Err(LoadError::Unavailable(engine));
    }
    maps::check(verified.maps(), maps)
}
