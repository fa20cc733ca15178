//! Chain files: from the path to programs with their maps.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use paceline::chain::{ChainFileCause, ChainFileError, ChainLoadOptions, ChainSource, LoadedChain};
use paceline::coverage::Counting;
use paceline::{LiveChain, LoadOptions};
use pyo3::prelude::*;

use crate::coverage::Watched;
use crate::error::{Class, Failure};
use crate::shared::Shared;
use crate::source::os_error;
use crate::subject::Part;
use crate::worker::Workers;

/// How the objects of a chain file are loaded.
pub(crate) struct How {
    pub(crate) options: LoadOptions,
    pub(crate) verifies: bool,
    /// Whether programs get counters of coverage.
    pub(crate) counts: bool,
}

/// A chain file cannot be loaded.
pub(crate) enum Refused {
    File(ChainFileError),
    /// Counters cannot be put into an object.
    Coverage {
        file: Option<String>,
        cause: String,
    },
}

/// The chain of a file, and its programs with what they share.
pub(crate) fn load(path: &Path, how: &How) -> Result<(LiveChain, Vec<Part>), Refused> {
    let source = ChainSource::read(path).map_err(Refused::File)?;
    let opened = source.open_with(|object, file| {
        let opened = source.open_object(object).map_err(Refused::File)?;
        match how.counts {
            true => opened.with_coverage(Counting::Plain).map_err(|error| Refused::Coverage {
                file: file.map(shown),
                cause: paceline::with_causes(&error),
            }),
            false => Ok(opened),
        }
    })?;
    let options =
        ChainLoadOptions { load: how.options, verifies: how.verifies, ..ChainLoadOptions::default() };
    let loaded = opened.load(&options).map_err(Refused::File)?;
    let live = loaded.live().map_err(Refused::File)?;
    let parts = parts(&loaded, how);
    Ok((live, parts))
}

fn shown(path: PathBuf) -> String {
    path.display().to_string()
}

/// The programs of the chain; those of one object share it.
fn parts(loaded: &LoadedChain, how: &How) -> Vec<Part> {
    let source = loaded.source();
    let objects = &source.file().objects;
    let shared: Vec<(&str, Arc<Shared>)> = loaded
        .parts
        .iter()
        .zip(objects)
        .map(|(part, object)| {
            let file = source.path_of(object).map(shown);
            let (collection, counts) = (part.collection.clone(), Watched::of(&part.collection));
            let workers = Workers::new(how.options.limits.cpus);
            let shared = Shared { collection, file, workers, verifies: how.verifies, _counts: counts };
            (part.name.as_str(), Arc::new(shared))
        })
        .collect();
    let of_member = |member: &paceline::Member| {
        let part = loaded.part(member.name());
        let found = shared.iter().find(|(name, _)| part.is_some_and(|part| part.name == *name));
        Part { program: member.program().clone(), shared: found.map(|(_, shared)| Arc::clone(shared)) }
    };
    loaded.members.iter().map(of_member).collect()
}

impl Refused {
    /// The exception: an `OSError` if the chain file cannot be read, a `VerifierError` if a program is refused.
    pub(crate) fn into_python(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Coverage { file, cause } => {
                Failure::new(Class::Program, cause).in_file(file.as_deref()).into()
            }
            Self::File(ChainFileError::Read { file, source }) => os_error(py, &source, &shown(file)),
            Self::File(error) => failure(error).into(),
        }
    }
}

fn failure(error: ChainFileError) -> Failure {
    match error {
        ChainFileError::File { file, error } => {
            Failure::of(Class::Chain, &error.problem).in_text(&shown(file), error.at)
        }
        ChainFileError::At { file, at, cause } => match *cause {
            ChainFileCause::Program { path, object, source, .. } if is_refusal(&source) => {
                Failure::no_program(path.map(shown).as_deref(), &object, &source)
            }
            cause => Failure::of(Class::Chain, &cause).in_text(&shown(file), at),
        },
        ChainFileError::Contents(error) => {
            let failure = Failure::of(Class::Chain, &error.cause).in_file(Some(&error.name));
            match error.place() {
                Some((line, column)) => failure.at(format!("{line}:{column}")),
                None => failure,
            }
        }
        ChainFileError::NotText { file, format: Some(format), .. } => {
            Failure::new(Class::Chain, format_args!("not a text file but {format}"))
                .in_file(Some(&shown(file)))
        }
        ChainFileError::NotText { file, at, format: None } => {
            Failure::new(Class::Chain, "not valid UTF-8").in_text(&shown(file), at)
        }
        ChainFileError::Change { file, at, source } => {
            let failure = Failure::of(Class::Chain, &source);
            match at {
                Some(at) => failure.in_text(&shown(file), at),
                None => failure.in_file(Some(&shown(file))),
            }
        }
        error => Failure::of(Class::Chain, &error),
    }
}

fn is_refusal(error: &paceline::ProgramError) -> bool {
    use paceline::{EntryError, ProgramError};
    match error {
        ProgramError::Refused(_) => true,
        ProgramError::Entry { source, .. } => {
            matches!(&**source, EntryError::Program(ProgramError::Refused(_)))
        }
        _ => false,
    }
}
