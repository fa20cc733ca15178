//! Errors of loading collections and of finding programs in them.

use std::fmt;
use std::sync::Arc;

use crate::causes::with_causes;
use paceline_engine::{Engine, EngineError, InstallError, MalformedProgram};
use paceline_maps::{CreateError, CreateErrorKind, FillError, Mismatch};
use paceline_object::SkippedProgram;
use paceline_spec::Errno;

use super::difference::Difference;
use super::verify::VerifierError;

/// An object cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// A map cannot be made.
    #[error(transparent)]
    Map(#[from] CreateError),
    /// A map does not take a value that the object gives it.
    #[error("map {map}")]
    Fill {
        /// Name of the map.
        map: String,
        /// The value and the cause.
        source: FillError,
    },
    /// A map does not take a map that the object gives it.
    #[error("map {map} cannot hold map {inner}")]
    Inner {
        /// Name of the map of maps.
        map: String,
        /// Name of the other.
        inner: String,
        /// Cause.
        source: Mismatch,
    },
    /// A map that no program names cannot be made.
    #[error(transparent)]
    Unnamed(Arc<SetupError>),
    /// A map is to be shared, and the object has none of the name.
    #[error("no map {map} to share (available: {})", .names.join(", "))]
    NoMap {
        /// The name.
        map: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// A map is pinned under the name of one that is to be pinned, and is of another shape.
    #[error("map {map} cannot be the one that is pinned under its name: {difference}")]
    Pinned {
        /// Name of the map.
        map: String,
        /// The difference.
        difference: Difference,
    },
    /// A map is to be shared, and is another than the program was made for.
    #[error("map {map} cannot be shared: {difference}")]
    Differs {
        /// Name of the map.
        map: String,
        /// The difference.
        difference: Difference,
    },
}

/// No program of a collection for this name: the object has none, its maps are missing, the verifier refuses it, or no engine runs it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The object has no program.
    #[error("no program in the object")]
    None,
    /// The object has programs, and none of a type that Paceline runs.
    #[error("no XDP program, TC classifier or socket filter in the object; it has {}", SkippedList(.0))]
    OtherTypes(Vec<SkippedProgram>),
    /// The program is not of a type that Paceline runs, or could not be read.
    #[error("{}", SkippedNamed(.0))]
    Skipped(SkippedProgram),
    /// The program names maps that could not be made.
    #[error("program {name}: {}", Causes(.sources))]
    Maps {
        /// Name of the program.
        name: String,
        /// The program and the cause.
        sources: Vec<Arc<SetupError>>,
    },
    /// No program was named.
    #[error("several programs in the object, name one of: {}", .0.join(", "))]
    Several(Vec<String>),
    /// There is no program of this name.
    #[error("no program {name} (available: {})", .names.join(", "))]
    Unknown {
        /// The name.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// The program is no program that an engine could run.
    #[error("program {name}")]
    Malformed {
        /// Name of the program.
        name: String,
        /// Cause.
        source: MalformedProgram,
    },
    /// The engine cannot run the program.
    #[error("program {name} on engine {engine}")]
    Engine {
        /// Name of the program.
        name: String,
        /// The engine.
        engine: Engine,
        /// Cause.
        source: EngineError,
    },
    /// The verifier does not accept the program.
    #[error(transparent)]
    Refused(Box<VerifierError>),
    /// A program that it may tail call cannot be put into its program array.
    #[error("map {map}, index {index}")]
    Entry {
        /// Name of the program array.
        map: String,
        /// Index in it.
        index: u32,
        /// Cause.
        source: Box<EntryError>,
    },
}

impl ProgramError {
    /// Whether the program needs what Paceline does not have, and may well be in order.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        let is_program = |error: &MalformedProgram| {
            matches!(
                error,
                MalformedProgram::UnsupportedHelper { .. }
                    | MalformedProgram::UnsupportedKfunc { .. }
                    | MalformedProgram::UnsupportedInsn { .. }
            )
        };
        match self {
            Self::Refused(refused) => refused.is_unsupported(),
            Self::Malformed { source, .. } => is_program(source),
            Self::Maps { sources, .. } => sources.iter().any(|source| source.is_unsupported()),
            Self::Engine { .. } => true,
            Self::Entry { source, .. } => {
                matches!(&**source, EntryError::Program(error) if error.is_unsupported())
            }
            Self::None | Self::OtherTypes(_) | Self::Skipped(_) | Self::Several(_) | Self::Unknown { .. } => {
                false
            }
        }
    }
}

impl SetupError {
    /// Whether a map is of a kind that Paceline does not have, or holds one.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        let Self::Map(error) = self else { return false };
        let mut cause = &error.cause;
        while let CreateErrorKind::Inner(inner) = cause {
            cause = inner;
        }
        matches!(cause, CreateErrorKind::Unsupported(_))
    }
}

/// A program cannot be stored in an entry of a program array.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EntryError {
    /// There is no map of this name.
    #[error("no map {name} (available: {})", .names.join(", "))]
    NoMap {
        /// The name.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// The program cannot be loaded.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The map does not take it.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// The entry cannot be removed.
    #[error("the entry cannot be removed: {0}")]
    Remove(Errno),
}

/// Several causes in a message.
struct Causes<'a>(&'a [Arc<SetupError>]);

impl fmt::Display for Causes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        self.0.iter().try_for_each(|cause| {
            write!(f, "{}{}", std::mem::replace(&mut separator, "; "), with_causes(cause))
        })
    }
}

/// Programs that are there and not run, in a message.
struct SkippedList<'a>(&'a [SkippedProgram]);

impl fmt::Display for SkippedList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        for (i, SkippedProgram { name, section, .. }) in self.0.iter().take(SHOWN).enumerate() {
            let place = if section == ".text" {
                "in no section of programs".to_owned()
            } else {
                format!("section {section}")
            };
            write!(f, "{}{name} ({place})", if i == 0 { "" } else { ", " })?;
        }
        match self.0.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// An existing program is not run.
struct SkippedNamed<'a>(&'a SkippedProgram);

impl fmt::Display for SkippedNamed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SkippedProgram { name, section, error } = self.0;
        match error {
            Some(error) => write!(f, "program {name}: {}", with_causes(error)),
            None => write!(
                f,
                "program {name} is in section {section}, which names no type of programs that run here"
            ),
        }
    }
}
