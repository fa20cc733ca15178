//! Engines of campaigns by their names.

use std::fmt;
use std::str::FromStr;

use paceline::Engine;
use paceline_vm::CodeSource;

use super::EngineSubject;
use crate::engine::ssa_name;

/// An engine, or native code that is generated from the form of `paceline-ir`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// An engine.
    Engine(Engine),
    /// Native code from this.
    Ssa(CodeSource),
}

impl Named {
    /// Native code from the form, after its passes and without them.
    pub const SSA: [Self; 2] = [Self::Ssa(CodeSource::Form), Self::Ssa(CodeSource::RawForm)];

    /// Whether its code accesses memory without checks.
    #[must_use]
    pub fn is_unchecked(self) -> bool {
        matches!(self, Self::Engine(Engine::Jit) | Self::Ssa(_))
    }

    /// Checks that this machine has the engine.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn probe(self) -> Result<(), String> {
        match self {
            Self::Engine(engine) => EngineSubject::probe(engine),
            Self::Ssa(_) => EngineSubject::probe(Engine::Jit),
        }
    }

    /// The engine as a subject, on the CPU of this number.
    ///
    /// # Errors
    /// A map cannot be created.
    pub fn subject(self, cpu: usize) -> Result<EngineSubject, String> {
        match self {
            Self::Engine(engine) => EngineSubject::new(engine, cpu),
            Self::Ssa(source) => EngineSubject::of_source(source, cpu),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Engine(engine) => engine.fmt(f),
            Self::Ssa(source) => f.write_str(ssa_name(*source)),
        }
    }
}

impl FromStr for Named {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        if let Some(ssa) = Self::SSA.into_iter().find(|ssa| ssa.to_string() == name) {
            return Ok(ssa);
        }
        let engine: Result<Engine, _> = name.parse();
        engine.map(Self::Engine).map_err(|error| format!("{error}, {}, {}", Self::SSA[0], Self::SSA[1]))
    }
}
