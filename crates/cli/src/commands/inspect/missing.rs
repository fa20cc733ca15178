//! Obstacles to loading an object: features that Paceline lacks, and errors in the object.

use paceline::with_causes;
use paceline::{
    Collection, CreateError, CreateErrorKind, LoadOptions, MissingMap, Object, ProgramError, SetupError,
};

use paceline::kfunc::{Kfunc, needs};

use super::program::ProgramSurvey;

/// Something missing or wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// `program x` or `map y`
    pub(super) user: String,
    /// The missing feature or the error.
    pub(super) what: String,
    /// Whether Paceline lacks it, rather than the object being wrong.
    pub(super) unsupported: bool,
}

/// Everything that keeps maps from being made and programs from being loaded.
pub(super) fn find(object: &Object, programs: &[ProgramSurvey<'_>], options: &LoadOptions) -> Vec<Missing> {
    let collection = match object.load(options) {
        Ok(collection) => collection,
        Err(SetupError::Unnamed(error)) => return vec![missing_map(map_of(&error), &error)],
        Err(error) => return vec![missing_map(map_of(&error), &error)],
    };
    let maps = collection.missing().iter().map(|MissingMap { name, error, .. }| missing_map(name, error));
    let programs = programs.iter().flat_map(|program| of_program(program, &collection));
    maps.chain(programs).collect()
}

fn missing_map(name: &str, error: &SetupError) -> Missing {
    Missing { user: format!("map {name}"), what: of_map(error), unsupported: error.is_unsupported() }
}

/// The map that an error is about, where it is about one.
fn map_of(error: &SetupError) -> &str {
    match error {
        SetupError::Map(error) => &error.name,
        SetupError::Fill { map, .. } | SetupError::Inner { map, .. } => map,
        _ => "",
    }
}

fn of_map(error: &SetupError) -> String {
    match error {
        SetupError::Map(CreateError { cause: CreateErrorKind::Unsupported(kind), .. }) => {
            format!("map type {kind}: needs {}", kind.needs().unwrap_or("an implementation"))
        }
        SetupError::Map(error) => error.cause.to_string(),
        SetupError::Fill { source, .. } => with_causes(source),
        SetupError::Inner { inner, source, .. } => format!("map {inner} as a value: {}", with_causes(source)),
        other => with_causes(other),
    }
}

/// The message for a feature that Paceline lacks.
fn lacks(what: &str, name: &str, take: &str) -> String {
    format!("{what} {name}: needs {take}")
}

fn of_program(program: &ProgramSurvey<'_>, collection: &Collection) -> Vec<Missing> {
    let name = &program.spec.name;
    let user = format!("program {name}");
    let helpers = program.helpers.iter().filter_map(|helper| Some((helper.name, helper.needs()?)));
    let helpers = helpers.map(|(name, take)| lacks("helper", name, take));
    let kfuncs = program.kfuncs.iter().filter(|kfunc| !kfunc.weak && Kfunc::from_name(&kfunc.name).is_none());
    let kfuncs = kfuncs.map(|kfunc| lacks("kernel function", &kfunc.name, needs(&kfunc.name)));
    let missing: Vec<_> =
        helpers.chain(kfuncs).map(|what| Missing { user: user.clone(), what, unsupported: true }).collect();
    if !missing.is_empty() {
        // Unreached instructions need nothing.
        return if collection.program(Some(name)).is_ok() { Vec::new() } else { missing };
    }
    match collection.program_unverified(Some(name)) {
        // The map is listed.
        Ok(_) | Err(ProgramError::Maps { .. }) => Vec::new(),
        Err(ProgramError::Malformed { source, .. }) if collection.program(Some(name)).is_err() => {
            let error = ProgramError::Malformed { name: name.clone(), source: source.clone() };
            vec![Missing { user, what: with_causes(&source), unsupported: error.is_unsupported() }]
        }
        Err(ProgramError::Malformed { .. }) => Vec::new(),
        Err(error) => vec![Missing { user, what: with_causes(&error), unsupported: error.is_unsupported() }],
    }
}
