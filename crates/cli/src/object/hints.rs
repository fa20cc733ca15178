//! Hints for objects and programs that cannot be loaded.

use std::sync::Arc;

use paceline::{
    CreateError, CreateErrorKind, Engine, EntryError, ProgramError, SetupError, SkippedProgram,
    section_tells_type,
};

use crate::common::suggest::closest_program;

/// Whether the section's name gives the program another type.
fn tells_type(program: &SkippedProgram) -> bool {
    section_tells_type(&program.section)
}

/// Types of `--type`.
const TYPES: &str = "xdp, tc for a TC classifier, or socket for a socket filter";

/// The way to make a function a program.
fn in_section(function: &SkippedProgram) -> String {
    format!("a section before it makes a function a program: `SEC(\"xdp\") int {}(...)`", function.name)
}

/// Whether no section makes it a program.
fn is_in_text(program: &SkippedProgram) -> bool {
    program.section == ".text"
}

/// The options that would let maps be created, in one line.
fn setup_hints(name: &str, errors: &[Arc<SetupError>]) -> String {
    let zero = |error: &Arc<SetupError>| match &**error {
        SetupError::Map(CreateError { name, cause: CreateErrorKind::ZeroEntries, .. }) => Some(name.clone()),
        _ => None,
    };
    let sized: Option<Vec<String>> = errors.iter().map(zero).collect();
    match (errors, sized) {
        ([], _) => needs(name),
        ([only], _) => setup_hint(name, only),
        (_, Some(maps)) => {
            let options: Vec<_> = maps.iter().map(|map| format!("--map {map}=entries:N")).collect();
            format!("its loader sets how many entries they have; here `{}` does", options.join(" "))
        }
        ([first, ..], None) => setup_hint(name, first),
    }
}

/// The option that would let a map be created.
pub(super) fn setup_hint(name: &str, error: &SetupError) -> String {
    match error {
        SetupError::Map(CreateError { name: map, cause, .. }) => map_hint(map, cause),
        SetupError::Unnamed(error) => Some(setup_hint(name, error)),
        _ => None,
    }
    .unwrap_or_else(|| needs(name))
}

fn map_hint(map: &str, cause: &CreateErrorKind) -> Option<String> {
    match cause {
        CreateErrorKind::Memory { .. } => Some("--map-memory SIZE sets the limit".to_owned()),
        CreateErrorKind::ZeroEntries | CreateErrorKind::RingSize { entries: 0, .. } => {
            Some(format!("its loader sets how many entries it has; here `--map {map}=entries:N` does"))
        }
        CreateErrorKind::NoInner => Some(format!(
            "its loader sets what they look like; here `--map {map}=inner:MAP` does, as map MAP of the object"
        )),
        CreateErrorKind::Inner(cause) => map_hint(&format!("{map}.inner"), cause),
        _ => None,
    }
}

fn needs(name: &str) -> String {
    format!("`paceline inspect {name}` shows all that it needs")
}

/// The option or command that helps with a program that cannot be loaded.
pub(super) fn program_hint(name: &str, error: &ProgramError) -> Option<String> {
    match error {
        ProgramError::Several(names) => Some(format!("say `{name}:{}`", names.first()?)),
        ProgramError::None => Some(format!("`paceline inspect {name}` shows what it has")),
        ProgramError::OtherTypes(skipped) if skipped.iter().all(tells_type) => None,
        ProgramError::OtherTypes(skipped) => {
            let taken =
                format!("`--type TYPE {name}:PROGRAM` takes one of them for a program of that type: {TYPES}");
            let forgotten = skipped.iter().find(|skipped| is_in_text(skipped)).map(in_section);
            Some(forgotten.map_or(taken.clone(), |forgotten| format!("{taken}; {forgotten}")))
        }
        ProgramError::Skipped(skipped) if is_in_text(skipped) => Some(in_section(skipped)),
        ProgramError::Skipped(skipped) if tells_type(skipped) => None,
        ProgramError::Skipped(SkippedProgram { name: program, error: None, .. }) => {
            Some(format!("`--type TYPE {name}:{program}` takes it for a program of that type: {TYPES}"))
        }
        ProgramError::Skipped(_) => None,
        ProgramError::Maps { sources, .. } => Some(setup_hints(name, sources)),
        ProgramError::Unknown { .. } => closest_program(error),
        ProgramError::Malformed { .. } => Some(needs(name)),
        ProgramError::Engine { .. } => Some(format!("`--engine {}` runs everywhere", Engine::Threaded)),
        ProgramError::Entry { source, .. } => match &**source {
            EntryError::Program(error) => program_hint(name, error),
            _ => None,
        },
        _ => None,
    }
}
