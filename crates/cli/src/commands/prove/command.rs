//! Proofs of the programs of an object.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::prove::{Options, ProveError};
use paceline::{Engine, Object, ProgramSpec};

use super::args::ProveArgs;
use super::told::{Report, Told};
use crate::common::console;
use crate::common::failure::{CommandError, Failure};
use crate::common::files::Opened;
use crate::common::report;
use crate::inputs::{Bar, Words, only_variables};
use crate::maps::identities;
use crate::object::{NamedObject, ObjectError, Opener, ProgramError, load, load_options};

/// Most inputs of a program that are told.
const MOST: usize = 5;

/// Nothing was found out about a program, for a reason that the verifier does not tell.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
struct ProofFailure {
    name: String,
    source: ProveError,
}

impl CommandError for ProofFailure {}

/// Proves a property of programs, or finds inputs with which it does not hold.
pub(crate) fn prove(args: &ProveArgs) -> Result<ExitCode, Failure> {
    let opener = Opener::new(&args.how);
    let named = NamedObject::open(&args.target, &opener)?;
    let programs: Vec<_> = named.programs()?.into_iter().map(|spec| spec.name.clone()).collect();
    let NamedObject { name, object, file, .. } = named;
    only_variables(&args.how.files(), &object)?;
    let mut taken: Vec<_> = file.into_iter().chain(identities(&args.how.files())).collect();
    let test = args.test.as_ref().map(|path| Opened::open_text(path, "--test", &mut taken)).transpose()?;
    let options = load_options(paceline::DEFAULT_BUDGET, Engine::Plain, &args.how, 1);
    let collection = load(&opener, &name, object, Vec::new(), &options, true)?;
    let object = collection.object();
    let bar = Bar::new(programs.len(), Words { reached: "inputs", open: "open" });
    let told = programs.iter().filter_map(|program| object.program(program)).map(|program| {
        let told = one(object, program, args, &bar);
        bar.done();
        told
    });
    let told = told.collect::<Result<Vec<_>, _>>().map_err(|error| failed(&name, object, error));
    bar.finish();
    let report = Report { property: &args.property, name: &name, object, told: told?, most: MOST };
    if let (Some(test), Some(path)) = (test, &args.test)
        && let Some(text) = report.test(path, &args.how)?
    {
        test.write_text(&text)?;
        console::note(format_args!("{}: the first input", path.display()));
    }
    report::print(|out| match args.json {
        true => writeln!(out, "{}", report.to_json()),
        false => report.write_text(out),
    })?;
    Ok(if report.is_proved() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn one(object: &Object, program: &ProgramSpec, args: &ProveArgs, bar: &Bar) -> Result<Told, ProveError> {
    let start = Instant::now();
    let options = Options {
        time: Duration::from_secs(args.limit),
        length: (Options::default().length.0, args.length),
        ..Options::default()
    };
    let tell = &mut |progress| bar.tell(&program.name, progress);
    let proof = paceline::prove::prove(object, program, &args.property, &options, MOST, tell)?;
    Ok(Told { program: program.clone(), proof, time: start.elapsed() })
}

/// An error about an object's program.
fn failed(name: &str, object: &Object, error: ProveError) -> Failure {
    use paceline::generate::GenerateError;
    match error {
        ProveError::Program(GenerateError::Refused(refused)) => {
            ProgramError::new(name, object, paceline::NoProgram::Refused(refused)).into()
        }
        ProveError::Program(GenerateError::Setup(source)) => ObjectError::setup(name, source).into(),
        source => ProofFailure { name: name.to_owned(), source }.into(),
    }
}
