//! Errors in contents of maps.

use std::fmt;
use std::sync::Arc;

use paceline_maps::{CreateError, Mismatch};
use paceline_spec::{Errno, MapKind, MapSpec};

use crate::json::JsonError;
use crate::load::EntryError;
use crate::load::{ProgramError, SetupError};
use crate::text_file::TextFileError;

/// Contents of a map that cannot be used, with the name of their file.
#[derive(Debug, thiserror::Error)]
#[error("{name}{}", .at.filter(|(line, _)| *line > 0).map_or_else(String::new, |(line, column)| format!(":{line}:{column}")))]
pub struct ContentsError {
    /// Name of the file, or of the text.
    pub name: String,
    /// Line and column of the contents in a file that has more than these, 0 if they are in none; the cause has no place of its own then.
    pub at: Option<(usize, usize)>,
    /// Cause.
    #[source]
    pub cause: Box<ContentsCause>,
}

impl ContentsError {
    pub(super) fn new(name: &str, cause: ContentsCause) -> Self {
        Self { name: name.to_owned(), at: None, cause: Box::new(cause) }
    }

    /// Line and column of what is wrong, from 1; `None` for causes that have none: a file that cannot be read, a map that there is not.
    #[must_use]
    pub fn place(&self) -> Option<(usize, usize)> {
        self.at.filter(|(line, _)| *line > 0).or(match &*self.cause {
            ContentsCause::At { place, .. } | ContentsCause::Program { place, .. } => {
                Some((place.line, place.column))
            }
            ContentsCause::Syntax(error) => Some((error.line(), error.column())),
            ContentsCause::Read(_)
            | ContentsCause::NoMap { .. }
            | ContentsCause::Variable { .. }
            | ContentsCause::Missing(_) => None,
        })
    }

    /// The program that an entry of a program array names and that cannot be had: the map, the index, the reason.
    #[must_use]
    pub fn no_program(&self) -> Option<(&str, u32, &ProgramError)> {
        match &*self.cause {
            ContentsCause::Program { place, index, source } => Some((&place.map, *index, source)),
            _ => None,
        }
    }
}

/// The reason why contents of a map cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsCause {
    /// The file cannot be read.
    #[error(transparent)]
    Read(TextFileError),
    /// The text is no JSON.
    #[error("{}", Syntax(.0))]
    Syntax(serde_json::Error),
    /// There is no map of this name.
    #[error("the object has no map `{map}`")]
    NoMap {
        /// The name.
        map: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// It is the name of a global variable.
    #[error(
        "`{variable}` is no map but a variable of {section}: say `{section}` and {{\"{variable}\": VALUE}}"
    )]
    Variable {
        /// The name.
        variable: String,
        /// The map that holds the variable.
        section: String,
    },
    /// The map could not be made.
    #[error(transparent)]
    Missing(Arc<SetupError>),
    /// A part of the text is wrong.
    #[error("{place}")]
    At {
        /// Where.
        place: ContentsPlace,
        /// What.
        #[source]
        problem: Box<ContentsProblem>,
    },
    /// A program that an entry of a program array names cannot be had.
    #[error("{place}")]
    Program {
        /// Where it is named.
        place: ContentsPlace,
        /// Index of the entry.
        index: u32,
        /// Cause.
        source: Box<ProgramError>,
    },
}

/// serde_json puts the place at the end; everybody else has it first.
struct Syntax<'a>(&'a serde_json::Error);

impl fmt::Display for Syntax<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.to_string();
        let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
        let what = what.replace("EOF while parsing ", "the text ends within ");
        write!(f, "line {}, column {}: {what}", self.0.line(), self.0.column())
    }
}

/// A place in contents of a map: in the text and in the map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContentsPlace {
    /// Line, from 1; 0 if the text is part of a file that has more than it ([`ContentsError::at`]).
    pub line: usize,
    /// Column in characters, from 1; 0 as well.
    pub column: usize,
    /// Name of the map.
    pub map: String,
    /// Such as `element 2`, `key` and `variable x`, from the outside in.
    pub parts: Vec<String>,
}

impl fmt::Display for ContentsPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}, column {}: ", self.line, self.column)?;
        }
        write!(f, "map {}", self.map)?;
        self.parts.iter().try_for_each(|part| write!(f, ", {part}"))
    }
}

/// An error at a place in contents of a map.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ContentsProblem {
    /// Not of the form of elements, variables or saved maps.
    #[error("{0}")]
    Shape(&'static str),
    /// A member that elements do not have.
    #[error("unknown member `{0}`; an element has `key` and `value` or `values`")]
    UnknownMember(String),
    /// Not a key or value of the type.
    #[error(transparent)]
    Json(#[from] JsonError),
    /// There is no global variable of this name.
    #[error("section {section} has no variable `{name}`")]
    NoVariable {
        /// Name of the section.
        section: String,
        /// The name.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// A value for a CPU that the run does not have.
    #[error("there is no cpu {cpu}: CPUs are numbered from 0, and the run has {cpus}")]
    Cpu {
        /// The CPU.
        cpu: u64,
        /// CPUs there are.
        cpus: usize,
    },
    /// An entry of a program array that names no program.
    #[error("an entry of a program array is the name of a program, or null")]
    NoName,
    /// A map for an entry of a map of maps cannot be made.
    #[error("{0}")]
    NotMade(CreateError),
    /// An entry of a map of maps that is none.
    #[error("an entry of a map of maps is the name of a map of the object, a list of elements, or null")]
    NoMapName,
    /// An entry of a map of maps names a map that there is not.
    #[error("the object has no map `{name}`")]
    NoInnerMap {
        /// The name.
        name: String,
        /// The names there are.
        names: Vec<String>,
    },
    /// A map that a map of maps cannot hold.
    #[error("map {name} cannot be an entry: {mismatch}")]
    Inner {
        /// Name of the map.
        name: String,
        /// Cause.
        mismatch: Mismatch,
    },
    /// A program array does not take the program.
    #[error(transparent)]
    Entry(EntryError),
    /// Values by CPU for a map that has one.
    #[error("only per-CPU maps have `values`, this one has a `value`")]
    NotPerCpu,
    /// The map refuses the element.
    #[error("{}", Refusal { errno: *.errno, kind: *.kind, entries: *.entries })]
    Refused {
        /// As the kernel would.
        errno: Errno,
        /// Kind of the map.
        kind: MapKind,
        /// Number of elements that it can hold.
        entries: u32,
    },
}

impl ContentsProblem {
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
            _ => match reason(*errno, *kind) {
                Some(reason) => f.write_str(reason),
                None => write!(f, "the {kind} map does not take it ({errno})"),
            },
        }
    }
}

/// The meaning of an error number that a kind of map has for a reason of its own.
fn reason(errno: Errno, kind: MapKind) -> Option<&'static str> {
    Some(match (kind, errno) {
        (MapKind::CpuMap, Errno::ENODEV) => "the run has no such CPU: its CPUs are numbered from 0",
        (MapKind::CpuMap, Errno::EOVERFLOW) => "the queue of a CPU has at most 16384 packets",
        (MapKind::CpuMap, Errno::ENOMEM) => "the program of a CPU must be one of section xdp/cpumap",
        (MapKind::DevMap | MapKind::DevMapHash, Errno::EINVAL) => {
            "it is no interface (the index is 0), or names a program that is none of section xdp/devmap"
        }
        (MapKind::LpmTrie, Errno::EINVAL) => "the length of the prefix exceeds the bits of the key",
        (MapKind::SockMap | MapKind::SockHash, _) => "it is no socket, by its number from 1",
        (MapKind::PerfEventArray, _) => {
            "the entries are perf events, which no file can give: events are received without them"
        }
        (_, Errno::ENOTSUPP | Errno::EOPNOTSUPP) => {
            "a map of this kind cannot be filled from outside of programs"
        }
        (_, Errno::ENOMEM) => "there is no memory for it",
        _ => return None,
    })
}
