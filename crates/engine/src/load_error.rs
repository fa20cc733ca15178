//! Errors of loading a verified program.

use crate::engine::Engine;
use crate::form::MalformedProgram;

/// A verified program cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// Malformed, or unsupported by all engines.
    #[error(transparent)]
    Program(#[from] MalformedProgram),
    /// A map differs from the specification that the program was verified with.
    #[error("map {name} is not the one that the program was verified with: {what} differs")]
    Map {
        /// Name of the map.
        name: String,
        /// Difference.
        what: &'static str,
    },
    /// Another number of maps than the program was verified with.
    #[error("program was verified with {expected} maps and is loaded with {found}")]
    MapCount {
        /// Maps it was verified with.
        expected: usize,
        /// Maps given.
        found: usize,
    },
    /// The compiler refuses the program.
    #[cfg(feature = "jit")]
    #[error(transparent)]
    Compile(#[from] paceline_compiler::native::CompileError),
    /// The program has no operations: a bug of Paceline.
    #[error(transparent)]
    Translate(Box<paceline_runtime::interpreter::threaded::TranslateError>),
    /// No executable memory for the native code.
    #[error("{0}")]
    Memory(String),
    /// The engine is not in this build, or not for this machine.
    #[error(
        "engine {0} is not available: native code needs x86-64 or arm64, and a build with the feature `jit`"
    )]
    Unavailable(Engine),
}
