//! Errors in map files.

use std::fmt;
use std::io;
use std::sync::Arc;

use paceline::json::JsonError;
use paceline::{CreateError, Errno, MapKind, MapSpec, Mismatch, NoProgram, SetupError};

use crate::common::failure::CommandError;
use crate::common::suggest::closest_program;

/// A map file that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
pub(crate) struct MapFileError {
    name: String,
    source: Box<MapFailure>,
}

impl MapFileError {
    pub(super) fn new(name: &str, source: MapFailure) -> Self {
        Self { name: name.to_owned(), source: Box::new(source) }
    }

    /// The program that an entry of a program array names and that cannot be had: the map, the index, the reason.
    pub(crate) fn no_program(&self) -> Option<(&str, u32, &NoProgram)> {
        match &*self.source {
            MapFailure::Program { place, index, source } => Some((&place.map, *index, source)),
            _ => None,
        }
    }
}

impl CommandError for MapFileError {
    fn hint(&self) -> Option<String> {
        self.source.hint()
    }
}

/// The reason why a map file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum MapFailure {
    #[error("{0}")]
    Io(io::Error),
    #[error("{}", Syntax(.0))]
    Syntax(serde_json::Error),
    #[error("the object has no map `{map}`")]
    NoMap { map: String, hint: String },
    #[error("{0}")]
    Missing(Arc<SetupError>),
    #[error("{place}: {problem}")]
    At { place: Place, problem: Box<Problem> },
    #[error("{place}: {source}")]
    Program { place: Place, index: u32, source: Box<NoProgram> },
}

impl MapFailure {
    fn hint(&self) -> Option<String> {
        match self {
            Self::NoMap { hint, .. } => Some(hint.clone()),
            Self::At { problem, .. } => match &**problem {
                Problem::NoVariable { suggestion, .. } | Problem::NoInnerMap { suggestion, .. } => {
                    suggestion.clone()
                }
                _ => None,
            },
            Self::Program { source, .. } => closest_program(source),
            _ => None,
        }
    }
}

/// serde_json puts the place at the end; everybody else has it first.
struct Syntax<'a>(&'a serde_json::Error);

impl fmt::Display for Syntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        write!(f, "line {}, column {}: {what}", self.0.line(), self.0.column())
    }
}

/// A place in a map file, in the text and in the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// From 1.
    pub(super) line: usize,
    /// From 1.
    pub(super) column: usize,
    pub(super) map: String,
    /// Such as `element 2`, `key` and `variable x`, from the outside in.
    pub(super) parts: Vec<String>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: map {}", self.line, self.column, self.map)?;
        self.parts.iter().try_for_each(|part| write!(f, ", {part}"))
    }
}

/// An error at a place.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    #[error("{0}")]
    Shape(&'static str),
    #[error("unknown member `{0}`; an element has `key` and `value` or `values`")]
    UnknownMember(String),
    #[error(transparent)]
    Json(#[from] JsonError),
    #[error("section {section} has no variable `{name}`")]
    NoVariable { section: String, name: String, suggestion: Option<String> },
    #[error("there is no cpu {cpu}: CPUs are numbered from 0, and the run has {cpus}")]
    Cpu { cpu: u64, cpus: usize },
    #[error("an entry of a program array is the name of a program, or null")]
    NoName,
    #[error("{0}")]
    NotMade(CreateError),
    #[error("an entry of a map of maps is the name of a map of the object, a list of elements, or null")]
    NoMapName,
    #[error("the object has no map `{name}`")]
    NoInnerMap { name: String, suggestion: Option<String> },
    #[error("map {name} cannot be an entry: {mismatch}")]
    Inner { name: String, mismatch: Mismatch },
    #[error("{0}")]
    Entry(String),
    #[error("only per-CPU maps have `values`, this one has a `value`")]
    NotPerCpu,
    #[error("{}", Refusal { errno: *.errno, kind: *.kind, entries: *.entries })]
    Refused { errno: Errno, kind: MapKind, entries: u32 },
}

impl Problem {
    pub(super) fn refused(errno: Errno, spec: &MapSpec) -> Self {
        Self::Refused { errno, kind: spec.kind, entries: spec.max_entries }
    }
}

/// An error number of a map update, in words.
struct Refusal {
    errno: Errno,
    kind: MapKind,
    entries: u32,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { errno, kind, entries } = self;
        match (*errno, kind) {
            (Errno::E2BIG, kind) if kind.has_indices() => {
                write!(f, "the index is out of range, the map has {entries} entries")
            }
            (Errno::E2BIG | Errno::ENOSPC, _) => write!(f, "the map is full: it holds {entries} entries"),
            (Errno::EPERM, _) => f.write_str("the map is read-only outside of programs"),
            _ => write!(f, "the {kind} map does not take it ({errno})"),
        }
    }
}
