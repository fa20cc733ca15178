//! Programs of loaded objects.

use paceline::diagnosis::{Diagnosis, refused_to_json, render};
use paceline::{Collection, Meaning, Object, Program, ProgramError, UnfilledEntry, VerifiedProgram};
use serde_json::Value as Json;

use super::hints::program_hint;
use crate::common::console;
use crate::common::failure::CommandError;

/// The reason why an object does not give a program.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NamedProgramError {
    /// The verifier refuses it.
    #[error("{0}")]
    Refused(Box<Diagnosis>),
    #[error("{name}")]
    NotLoaded { name: String, source: Box<ProgramError> },
}

impl NamedProgramError {
    /// Makes a diagnosis if a program is not safe: the one that is asked for, or one that it would tail call.
    pub(crate) fn new(name: &str, object: &Object, error: ProgramError) -> Self {
        match Diagnosis::of(name, object, &error) {
            Some(diagnosis) => Self::Refused(Box::new(diagnosis)),
            None => Self::NotLoaded { name: name.to_owned(), source: Box::new(error) },
        }
    }
}

/// The option that runs a program all the same.
fn way_out(diagnosis: &Diagnosis) -> String {
    match diagnosis.is_unsupported() {
        true => format!("`paceline inspect {}` shows all that it needs", diagnosis.object()),
        false => {
            "`paceline run --unverified` runs it on the interpreter that checks every access at run time"
                .to_owned()
        }
    }
}

impl CommandError for NamedProgramError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Refused(diagnosis) => Some(way_out(diagnosis)),
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
) -> Result<Program, ProgramError> {
    noting_unfilled(collection, || match unverified {
        true => collection.program_unverified(name),
        false => collection.program(name).map(VerifiedProgram::into_program),
    })
}

/// Loads a program, and notes the entries of program arrays that stay empty for it.
pub(crate) fn noting_unfilled<T>(collection: &Collection, load: impl FnOnce() -> T) -> T {
    let known = collection.unfilled().len();
    let loaded = load();
    note_unfilled(collection, known);
    loaded
}

/// Notes the entries of program arrays that stay empty, but for so many that are known.
pub(crate) fn note_unfilled(collection: &Collection, known: usize) {
    for UnfilledEntry { map, index, program, error } in collection.unfilled().iter().skip(known) {
        let reason = match &**error {
            ProgramError::Refused(refused) => format!("program {program}: {}", refused.refusal.cause),
            error => paceline::with_causes(error),
        };
        console::note(format_args!(
            "entry {index} of map {map} stays empty, so that tail calls to it fail: {reason}"
        ));
    }
}

/// A program is no XDP program.
#[derive(Debug, thiserror::Error)]
#[error(
    "{name}: program {program} is a socket filter, and chains and `scan` take XDP programs and TC classifiers"
)]
pub(crate) struct NotXdp {
    name: String,
    program: String,
}

impl CommandError for NotXdp {}

impl NotXdp {
    pub(crate) fn new(name: &str, program: &str) -> Self {
        Self { name: name.to_owned(), program: program.to_owned() }
    }
}

/// Refuses filters, which return how many bytes to keep: in a chain no edge is for that.
pub(crate) fn check_action(name: &str, program: &Program) -> Result<(), NotXdp> {
    match program.spec().kind.rules().meaning {
        Meaning::Verdict | Meaning::Action(_) => Ok(()),
        Meaning::BytesKept => Err(NotXdp::new(name, &program.spec().name)),
    }
}
