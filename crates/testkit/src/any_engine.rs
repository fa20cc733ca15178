//! The engines of the product, and checked code beside them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use paceline::{Collection, LoadOptions, Object};
use paceline_engine::{Engine, EngineError, Program};
use paceline_maps::Map;
use paceline_spec::{InitialValue, MapKind};
use paceline_verifier::Verified;

use crate::checked::{self, CheckedError};

/// An engine that campaigns and cases run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AnyEngine {
    /// Native code.
    Jit,
    /// Native code that checks every access ([`checked`]), which the product does not have.
    CheckedJit,
    /// The threaded interpreter.
    Threaded,
    /// The plain interpreter.
    Plain,
}

/// No engine has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no engine {0} (available: {list})", list = AnyEngine::ALL.map(AnyEngine::name).join(", "))]
pub struct NoSuchEngine(pub String);

impl AnyEngine {
    /// All of them, the fastest first.
    pub const ALL: [Self; 4] = [Self::Jit, Self::CheckedJit, Self::Threaded, Self::Plain];

    /// The engine of the product; `None` for checked code.
    #[must_use]
    pub const fn product(self) -> Option<Engine> {
        match self {
            Self::Jit => Some(Engine::Jit),
            Self::CheckedJit => None,
            Self::Threaded => Some(Engine::Threaded),
            Self::Plain => Some(Engine::Plain),
        }
    }

    /// Whether this machine has it.
    #[must_use]
    pub const fn is_available(self) -> bool {
        match self.product() {
            Some(engine) => engine.is_available(),
            None => checked::is_available(),
        }
    }

    /// All that this machine has, the fastest first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|engine| engine.is_available())
    }

    /// Its name in options and tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.product() {
            Some(engine) => engine.name(),
            None => checked::NAME,
        }
    }

    /// A verified program on it, with its maps in the order of its object.
    ///
    /// # Errors
    /// [`CheckedError`].
    pub fn load(self, verified: &Verified, maps: Vec<Arc<Map>>) -> Result<Program, CheckedError> {
        match self.product() {
            Some(engine) => Ok(Program::load(verified, maps, engine)?),
            None => checked::load(verified, maps),
        }
    }

    /// An object's maps, for [`program`](Self::program).
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn collection(self, object: &Object, options: LoadOptions) -> Result<Collection, String> {
        let engine = self.product().unwrap_or(Engine::Plain);
        object.load(&options.engine(engine)).map_err(|error| paceline::with_causes(&error))
    }

    /// A program of an object on it, and the targets of its tail calls too, by its [`collection`](Self::collection).
    ///
    /// # Errors
    /// A program is refused.
    pub fn program(self, collection: &Collection, name: &str) -> Result<Program, String> {
        let plain = |name: &str| collection.program(Some(name)).map(|program| program.into_program());
        let main = plain(name).map_err(|error| paceline::with_causes(&error))?;
        if self.product().is_some() {
            return Ok(main);
        }
        let arrays = collection.maps().iter().filter(|map| map.spec().kind == MapKind::ProgArray);
        let entry = |map: &Arc<Map>, (key, value): &(Vec<u8>, InitialValue)| match value {
            InitialValue::Program(name) => Some((map.clone(), key.clone(), plain(name).ok()?)),
            InitialValue::Bytes(_) | InitialValue::Map(_) => None,
        };
        // All are verified before the first is installed, as the collection installs those that it loads.
        let entries: Vec<_> = arrays
            .flat_map(|map| {
                map.spec().contents.iter().filter_map(|content| entry(map, content)).collect::<Vec<_>>()
            })
            .collect();
        for (map, key, target) in entries {
            let index =
                key.try_into().map(u32::from_ne_bytes).map_err(|_| "a key of a program array has 4 bytes")?;
            let target = checked::of(target).map_err(|error| paceline::with_causes(&error))?;
            target.install(&map, index).map_err(|error| paceline::with_causes(&error))?;
        }
        checked::of(main).map_err(|error| paceline::with_causes(&error))
    }
}

/// Whether a program was not loaded because this machine does not have the engine.
#[must_use]
pub fn is_unavailable(error: &CheckedError) -> bool {
    matches!(error, CheckedError::Unavailable | CheckedError::Engine(EngineError::Unavailable(_)))
}

impl fmt::Display for AnyEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AnyEngine {
    type Err = NoSuchEngine;

    fn from_str(name: &str) -> Result<Self, NoSuchEngine> {
        let found = Self::ALL.into_iter().find(|engine| engine.name() == name);
        found.ok_or_else(|| NoSuchEngine(name.to_owned()))
    }
}
