//! Engines of campaigns by their names.

use std::fmt;
use std::str::FromStr;

use paceline_engine::OptLevel;

use super::engine::EngineSubject;
use crate::AnyEngine;
use crate::engine::native_name;

/// An engine, or native code without passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// An engine.
    Engine(AnyEngine),
    /// Native code without the passes of `paceline-compiler`.
    Unoptimized,
}

impl Named {
    /// Whether its code accesses memory without checks.
    #[must_use]
    pub fn is_unchecked(self) -> bool {
        matches!(self, Self::Engine(AnyEngine::Jit) | Self::Unoptimized)
    }

    /// Checks that this machine has the engine.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn probe(self) -> Result<(), String> {
        match self {
            Self::Engine(engine) => EngineSubject::probe(engine),
            Self::Unoptimized => EngineSubject::probe(AnyEngine::Jit),
        }
    }

    /// The engine as a subject, on the CPU of this number.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn subject(self, cpu: usize) -> Result<EngineSubject, String> {
        match self {
            Self::Engine(engine) => EngineSubject::new(engine, cpu),
            Self::Unoptimized => EngineSubject::unoptimized(cpu),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(engine) => engine.fmt(f),
            Self::Unoptimized => f.write_str(native_name(OptLevel::None)),
        }
    }
}

impl FromStr for Named {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if name == native_name(OptLevel::None) {
            return Ok(Self::Unoptimized);
        }
        let engine: Result<AnyEngine, _> = name.parse();
        engine.map(Self::Engine).map_err(|error| format!("{error}, {}", Self::Unoptimized))
    }
}
