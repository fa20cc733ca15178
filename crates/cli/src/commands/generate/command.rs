//! Inputs for all sides of branches.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use paceline::generate::{GenerateError, Options, Progress, generate_watched};
use serde_json::json;

use super::args::GenerateArgs;
use super::found::Found;
use super::{capture, json, table, tests_of};
use crate::common::console;
use crate::common::failure::{CommandError, Failure};
use crate::common::files::Opened;
use crate::common::report;
use crate::inputs::{Subjects, Unexplored, Words, each};
use crate::object::Opener;

/// A map is to have another shape, which test files cannot say.
#[derive(Debug, thiserror::Error)]
#[error("--tests: test files cannot say the shape that --map gives {0}")]
struct Shaped(String);

impl CommandError for Shaped {}

/// Generates inputs for the programs of an object.
pub(crate) fn generate(args: &GenerateArgs) -> Result<ExitCode, Failure> {
    let subjects = Subjects::open(&args.target, &Opener::new(&args.how))?;
    if let Some(map) = args.how.shaped().filter(|_| args.tests.is_some()) {
        return Err(Shaped(map.to_owned()).into());
    }
    let mut taken = subjects.taken.clone();
    let out = args.out.as_ref().map(|path| Opened::open(path, "--out", &mut taken)).transpose()?;
    let words = Words { reached: "reached", open: "open" };
    let results = each(&subjects.programs, args.search.workers(), words, String::as_str, |program, tell| {
        found(&subjects, program, args, tell)
    });
    let (mut all, mut unexplored) = (Vec::new(), Vec::new());
    for (program, result) in subjects.programs.iter().zip(results) {
        match result {
            Ok(found) => all.push(found),
            Err(error) => unexplored.push(subjects.unexplored(program, error)),
        }
    }
    unexplored.extend(subjects.skipped());
    unexplored.iter().for_each(Unexplored::tell);
    if let Some(out) = out {
        capture::write(&all, out.start_text()?)?;
    }
    let (object, name) = (subjects.object(), &subjects.name);
    if let Some(folder) = &args.tests {
        let files = tests_of::write(folder, &PathBuf::from(name), &args.how, object, &all)?;
        console::note(format_args!("{files} files in {}", folder.display()));
    }
    report::print(|out| match args.json {
        true => {
            let explored = all.iter().map(|found| json::of(object, found));
            let programs: Vec<_> = explored.chain(unexplored.iter().map(Unexplored::to_json)).collect();
            writeln!(out, "{}", json!({ "object": name, "programs": programs }))
        }
        false => table::write(out, name, &all),
    })?;
    let is_sound = all.iter().all(|found| found.generated.failures.is_empty());
    Ok(if is_sound && unexplored.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn found(
    subjects: &Subjects,
    program: &str,
    args: &GenerateArgs,
    tell: &mut dyn FnMut(Progress),
) -> Result<Found, GenerateError> {
    let start = Instant::now();
    let program = subjects.program(program)?;
    let options = Options { goals: args.goals(), boundaries: !args.few, ..args.search.options() };
    let generated = generate_watched(subjects.object(), program, &options, tell)?;
    Ok(Found { program: program.clone(), generated, goals: options.goals, time: start.elapsed() })
}
