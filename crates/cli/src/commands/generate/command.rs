//! Inputs for all sides of branches.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::generate::{GenerateError, Options, Progress, generate_watched};
use paceline::{Engine, Object, ProgramSpec};
use serde_json::json;

use super::args::GenerateArgs;
use super::found::Found;
use super::workers::each;
use super::{capture, json, table, tests_of};
use crate::common::console;
use crate::common::failure::{CommandError, Failure};
use crate::common::files::Opened;
use crate::common::report;
use crate::inputs::only_variables;
use crate::maps::identities;
use crate::object::{NamedObject, ObjectError, Opener, ProgramError, load, load_options};

/// Nothing was found out about a program, for a reason that the verifier does not tell.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
struct ProgramFailure {
    name: String,
    source: GenerateError,
}

impl CommandError for ProgramFailure {}

/// A map is to have another shape, which test files cannot say.
#[derive(Debug, thiserror::Error)]
#[error("--tests: test files cannot say the shape that --map gives {0}")]
struct Shaped(String);

impl CommandError for Shaped {}

/// Refuses maps that are given contents, but for variables, and shapes that tests would lack.
fn check_maps(args: &GenerateArgs, object: &Object) -> Result<(), Failure> {
    only_variables(&args.how.files(), object)?;
    match args.how.shaped().filter(|_| args.tests.is_some()) {
        Some(map) => Err(Shaped(map.to_owned()).into()),
        None => Ok(()),
    }
}

/// Generates inputs for the programs of an object.
pub(crate) fn generate(args: &GenerateArgs) -> Result<ExitCode, Failure> {
    let opener = Opener::new(&args.how);
    let named = NamedObject::open(&args.target, &opener)?;
    let programs: Vec<_> = named.programs()?.into_iter().map(|spec| spec.name.clone()).collect();
    let NamedObject { name, object, file, .. } = named;
    check_maps(args, &object)?;
    let mut taken: Vec<_> = file.into_iter().chain(identities(&args.how.files())).collect();
    let out = args.out.as_ref().map(|path| Opened::open(path, "--out", &mut taken)).transpose()?;
    let options = load_options(paceline::DEFAULT_BUDGET, Engine::Plain, &args.how, 1);
    // Variables are set in the object, which is what is explored.
    let collection = load(&opener, &name, object, Vec::new(), &options, true)?;
    let object = collection.object();
    let programs: Vec<_> = programs.iter().filter_map(|program| object.program(program)).collect();
    let all = each(&programs, args.workers.into(), |program, tell| found(object, program, args, tell))
        .map_err(|error| failed(&name, object, error))?;
    if let Some(out) = out {
        capture::write(&all, out.start_text()?)?;
    }
    if let Some(folder) = &args.tests {
        let files = tests_of::write(folder, &PathBuf::from(&name), &args.how, object, &all)?;
        console::note(format_args!("{files} files in {}", folder.display()));
    }
    report::print(|out| match args.json {
        true => {
            let programs: Vec<_> = all.iter().map(|found| json::of(object, found)).collect();
            writeln!(out, "{}", json!({ "object": name, "programs": programs }))
        }
        false => table::write(out, &name, &all),
    })?;
    let is_sound = all.iter().all(|found| found.generated.failures.is_empty());
    Ok(if is_sound { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn found(
    object: &Object,
    program: &ProgramSpec,
    args: &GenerateArgs,
    tell: &mut dyn FnMut(Progress),
) -> Result<Found, GenerateError> {
    let start = Instant::now();
    let options = Options {
        time: Duration::from_secs(args.limit),
        goals: args.goals(),
        boundaries: !args.few,
        length: (Options::default().length.0, args.length),
        ..Options::default()
    };
    let generated = generate_watched(object, program, &options, tell)?;
    Ok(Found { program: program.clone(), generated, goals: options.goals, time: start.elapsed() })
}

/// An error about an object's program.
fn failed(name: &str, object: &Object, error: GenerateError) -> Failure {
    match error {
        GenerateError::Refused(refused) => {
            ProgramError::new(name, object, paceline::NoProgram::Refused(refused)).into()
        }
        GenerateError::Setup(source) => ObjectError::setup(name, source).into(),
        source => ProgramFailure { name: name.to_owned(), source }.into(),
    }
}
