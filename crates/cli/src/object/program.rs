//! Programs of loaded objects.

use paceline::{Collection, EntryError, Meaning, NoProgram, Object, Program, Refused, VerifiedProgram};
use serde_json::Value as Json;

use super::hints::program_hint;
use crate::common::failure::CommandError;
use crate::diagnosis::{Diagnosis, refused_to_json, render};

/// The reason why an object does not give a program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramError {
    /// The verifier refuses it.
    #[error("{0}")]
    Refused(Box<Diagnosis>),
    #[error("{name}: {source}")]
    NotLoaded { name: String, source: Box<NoProgram> },
}

impl ProgramError {
    /// Makes a diagnosis if a program is not safe: the one that is asked for, or one that it would tail call.
    pub(crate) fn new(name: &str, object: &Object, error: NoProgram) -> Self {
        let diagnosis = |refused: &Refused| Diagnosis::new(name, object, refused);
        match &error {
            NoProgram::Refused(refused) => return Self::Refused(Box::new(diagnosis(refused))),
            NoProgram::Entry { map, index, source } => {
                if let EntryError::Program(NoProgram::Refused(refused)) = &**source {
                    return Self::Refused(Box::new(diagnosis(refused).of_entry(map, *index)));
                }
            }
            _ => {}
        }
        Self::NotLoaded { name: name.to_owned(), source: Box::new(error) }
    }
}

impl CommandError for ProgramError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(diagnosis) => Some(diagnosis.way_out()),
            Self::NotLoaded { name, source } => program_hint(name, source),
        }
    }

    fn render(&self, color: bool) -> Option<String> {
        match self {
            Self::Refused(diagnosis) => Some(render(diagnosis, color)),
            Self::NotLoaded { .. } => None,
        }
    }

    fn refused(&self) -> Option<Json> {
        match self {
            Self::Refused(diagnosis) => Some(refused_to_json(diagnosis)),
            Self::NotLoaded { .. } => None,
        }
    }
}

/// A program of a collection.
pub(crate) fn program_of(
    collection: &Collection,
    name: Option<&str>,
    unverified: bool,
) -> Result<Program, NoProgram> {
    match unverified {
        true => collection.program_unverified(name),
        false => collection.program(name).map(VerifiedProgram::into_program),
    }
}

/// A program is no XDP program.
#[derive(Debug, thiserror::Error)]
#[error("{name}: program {program} is a socket filter, and `run` takes XDP programs and TC classifiers")]
pub(crate) struct NotXdp {
    name: String,
    program: String,
}

impl CommandError for NotXdp {}

/// Refuses filters: they return how many bytes to keep, and no XDP action to be counted and acted on.
pub(crate) fn check_action(name: &str, program: &Program) -> Result<(), NotXdp> {
    match program.spec().kind.rules().meaning {
        Meaning::Verdict | Meaning::Action(_) => Ok(()),
        Meaning::BytesKept => Err(NotXdp { name: name.to_owned(), program: program.spec().name.clone() }),
    }
}
