//! What an object would need that Paceline does not have.

use std::sync::Arc;

use paceline::{CreateErrorKind, LoadOptions, Map, Object, Program, SetupError, has_helper};

use paceline::kfunc::{Kfunc, would_take};

use super::survey::ProgramSurvey;

/// Something missing, and who needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// `program x` or `map y`
    pub(super) user: String,
    /// What is missing or wrong.
    pub(super) what: String,
}

/// Everything that keeps maps from being made and programs from being loaded.
pub(super) fn find(object: &Object, programs: &[ProgramSurvey<'_>], options: &LoadOptions) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut maps = Vec::new();
    for spec in &object.maps {
        match Map::create(spec, &options.limits) {
            Ok(map) => maps.push(map),
            Err(error) => {
                let what = match &error.cause {
                    CreateErrorKind::Unsupported(kind) => needs("map type", kind.name(), kind.would_take()),
                    cause => cause.to_string(),
                };
                missing.push(Missing { user: format!("map {}", spec.name), what });
            }
        }
    }
    let all_made = maps.len() == object.maps.len();
    if all_made && let Err(error) = object.load(options) {
        missing.push(setup(error));
    }
    for program in programs {
        missing.extend(of_program(program, all_made.then_some(&maps)));
    }
    missing
}

fn setup(error: SetupError) -> Missing {
    match error {
        SetupError::Map(error) => {
            Missing { user: format!("map {}", error.name), what: error.cause.to_string() }
        }
        SetupError::Fill { map, source } => Missing { user: format!("map {map}"), what: source.to_string() },
        SetupError::Inner { map, inner, source } => {
            Missing { user: format!("map {map}"), what: format!("map {inner} as a value: {source}") }
        }
        other => Missing { user: "object".to_owned(), what: other.to_string() },
    }
}

/// What is not there, and what it would take.
fn needs(what: &str, name: &str, take: &str) -> String {
    format!("{what} {name}: it would take {take}")
}

fn of_program(program: &ProgramSurvey<'_>, maps: Option<&Vec<Arc<Map>>>) -> Vec<Missing> {
    let user = format!("program {}", program.spec.name);
    let helpers = program.helpers.iter().filter(|helper| !has_helper(helper.id));
    let helpers = helpers.map(|helper| needs("helper", helper.name, helper.would_take()));
    let kfuncs = program.kfuncs.iter().filter(|kfunc| !kfunc.weak && Kfunc::from_name(&kfunc.name).is_none());
    let kfuncs = kfuncs.map(|kfunc| needs("kernel function", &kfunc.name, would_take(&kfunc.name)));
    let mut missing: Vec<_> =
        helpers.chain(kfuncs).map(|what| Missing { user: user.clone(), what }).collect();
    // The loader stops at the first, so it is asked only where the lists above have nothing.
    if missing.is_empty()
        && let Some(maps) = maps
        && let Err(error) = Program::new(Arc::new(program.spec.clone()), maps.clone())
    {
        missing.push(Missing { user, what: error.to_string() });
    }
    missing
}
