//! Proofs of the programs of an object.

use std::process::ExitCode;
use std::time::Instant;

use paceline::generate::Progress;
use paceline::prove::ProveError;

use super::args::ProveArgs;
use super::told::{Report, Told};
use crate::common::console;
use crate::common::failure::{CommandError, Failure};
use crate::common::files::Opened;
use crate::common::report;
use crate::inputs::{Subjects, Unexplored, Words, each};
use crate::object::Opener;

/// Most inputs of a program that are told.
const MOST: usize = 5;

/// The property is about something that the object does not have.
#[derive(Debug, thiserror::Error)]
#[error("{name}")]
struct PropertyFailure {
    name: String,
    source: paceline::prove::PropertyError,
}

impl CommandError for PropertyFailure {}

/// Proves a property of programs, or finds inputs with which it does not hold.
pub(crate) fn prove(args: &ProveArgs) -> Result<ExitCode, Failure> {
    let subjects = Subjects::open(&args.target, &Opener::new(&args.how))?;
    let mut taken = subjects.taken.clone();
    let test = args.test.as_ref().map(|path| Opened::open_text(path, "--test", &mut taken)).transpose()?;
    let words = Words { reached: "inputs", open: "open" };
    let results = each(&subjects.programs, args.search.workers(), words, String::as_str, |program, tell| {
        one(&subjects, program, args, tell)
    });
    let (mut told, mut unexplored) = (Vec::new(), Vec::new());
    for (program, result) in subjects.programs.iter().zip(results) {
        match result {
            Ok(one) => told.push(one),
            Err(ProveError::Program(error)) => unexplored.push(subjects.unexplored(program, error)),
            Err(ProveError::Property(source)) => {
                return Err(PropertyFailure { name: subjects.name.clone(), source }.into());
            }
        }
    }
    unexplored.extend(subjects.skipped());
    unexplored.iter().for_each(Unexplored::tell);
    let (name, object) = (subjects.name.as_str(), subjects.object());
    let report = Report { property: &args.property, name, object, told, unexplored, most: MOST };
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

fn one(
    subjects: &Subjects,
    program: &str,
    args: &ProveArgs,
    tell: &mut dyn FnMut(Progress),
) -> Result<Told, ProveError> {
    let start = Instant::now();
    let (object, program) = (subjects.object(), subjects.program(program)?);
    let proof = paceline::prove::prove(object, program, &args.property, &args.search.options(), MOST, tell)?;
    Ok(Told { program: program.clone(), proof, time: start.elapsed() })
}
