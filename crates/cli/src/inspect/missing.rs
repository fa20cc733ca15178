//! What keeps an object from being loaded: what Paceline does not have, and what is wrong with the object.

use std::sync::Arc;

use paceline::{CreateErrorKind, LoadOptions, Map, Object, Program, ProgramError, SetupError, has_helper};

use paceline::kfunc::{Kfunc, would_take};

use super::survey::ProgramSurvey;

/// Something missing or wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    /// `program x` or `map y`
    pub(super) user: String,
    /// What is missing or wrong.
    pub(super) what: String,
    /// Whether Paceline lacks it, rather than the object being wrong.
    pub(super) unsupported: bool,
}

/// Everything that keeps maps from being made and programs from being loaded.
pub(super) fn find(object: &Object, programs: &[ProgramSurvey<'_>], options: &LoadOptions) -> Vec<Missing> {
    let mut missing = Vec::new();
    let mut maps = Vec::new();
    for spec in &object.maps {
        match Map::create(spec, &options.limits) {
            Ok(map) => maps.push(map),
            Err(error) => {
                let (what, unsupported) = match &error.cause {
                    CreateErrorKind::Unsupported(kind) => {
                        (needs("map type", kind.name(), kind.would_take()), true)
                    }
                    cause => (cause.to_string(), false),
                };
                missing.push(Missing { user: format!("map {}", spec.name), what, unsupported });
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
    let (user, what) = match error {
        SetupError::Map(error) => (format!("map {}", error.name), error.cause.to_string()),
        SetupError::Fill { map, source } => (format!("map {map}"), source.to_string()),
        SetupError::Inner { map, inner, source } => {
            (format!("map {map}"), format!("map {inner} as a value: {source}"))
        }
        other => ("object".to_owned(), other.to_string()),
    };
    Missing { user, what, unsupported: false }
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
        helpers.chain(kfuncs).map(|what| Missing { user: user.clone(), what, unsupported: true }).collect();
    // The loader stops at the first, so it is asked only where the lists above have nothing.
    if missing.is_empty()
        && let Some(maps) = maps
        && let Err(error) = Program::new(Arc::new(program.spec.clone()), maps.clone())
    {
        let unsupported = matches!(
            error,
            ProgramError::UnsupportedHelper { .. }
                | ProgramError::UnsupportedKfunc { .. }
                | ProgramError::UnsupportedInsn { .. }
        );
        missing.push(Missing { user, what: error.to_string(), unsupported });
    }
    missing
}
