//! `paceline verify`.

mod advice;
mod diagnosis;
mod history;
mod json;
mod log;
mod render;

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::verifier::{Options, Stats};
use paceline::{Collection, Engine, Object, ProgramSpec};
use serde_json::{Value as Json, json};

use crate::args::{Target, VerifyArgs};
use crate::console;
use crate::failure::Failure;
use crate::object::{Opener, load, load_options};
pub(crate) use diagnosis::Diagnosis;
#[cfg(test)]
pub(crate) use json::refused as verdict_to_json;
pub(crate) use json::refused_to_json;
use log::Log;
pub(crate) use render::render;

/// Loads programs as a run would, and says why those are refused that are.
pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let target = Target::parse(&args.target, Path::exists);
    let opener = Opener::new(&args.how);
    let object = opener.open(&target.path, target.program.as_deref())?;
    let name = target.path.display().to_string();
    let programs = object.programs_named(target.program.as_deref());
    let programs =
        programs.map_err(|source| Failure::Program { name: name.clone(), source: Box::new(source) })?;
    let programs: Vec<_> = programs.into_iter().map(|spec| spec.name.clone()).collect();
    let options = load_options(
        paceline::DEFAULT_BUDGET,
        Engine::best(),
        args.how.map_memory,
        paceline::LoadOptions::default().limits.cpus,
    );
    let collection = load(&opener, &name, object, Vec::new(), &options, false)?;
    let mut all_accepted = true;
    let mut verdicts = Vec::new();
    for program in programs {
        if let Some(spec) = collection.object().program(&program).filter(|_| args.log) {
            log(collection.object(), spec)?;
        }
        let verdict = Verdict::of(&name, &collection, program);
        all_accepted &= matches!(verdict, Verdict::Accepted { .. });
        if args.json {
            verdicts.push(verdict.to_json());
        } else {
            verdict.tell(&name)?;
        }
    }
    if args.json {
        console::print(|out| {
            let report = json!({ "object": name, "programs": verdicts });
            serde_json::to_writer(&mut *out, &report)?;
            writeln!(out)
        })?;
    }
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Walks the program for the log alone: writing takes longer than verifying.
fn log(object: &Object, spec: &ProgramSpec) -> Result<(), Failure> {
    console::print(|out| {
        let mut log = Log::new(object, spec, out);
        let _ = object.verify_observed(spec, &Options::default(), &mut log);
        log.finish()
    })
    .map(drop)
}

/// The outcome for a program.
enum Verdict {
    Accepted {
        program: String,
        stats: Stats,
        time: Duration,
    },
    /// It is not safe, or needs what Paceline does not have.
    Refused {
        diagnosis: Box<Diagnosis>,
        time: Duration,
    },
    /// It cannot be loaded for another reason.
    NotLoaded {
        program: String,
        unsupported: bool,
        failure: Box<Failure>,
    },
}

impl Verdict {
    fn of(name: &str, collection: &Collection, program: String) -> Self {
        let start = Instant::now();
        match collection.program(Some(&program)) {
            Ok(verified) => Self::Accepted {
                program,
                stats: *verified.verified().stats(),
                time: verified.verification_time(),
            },
            Err(error) => {
                let (time, unsupported) = (start.elapsed(), error.is_unsupported());
                match Failure::no_program(name, collection.object(), error) {
                    Failure::Refused(diagnosis) => Self::Refused { diagnosis, time },
                    failure => Self::NotLoaded { program, unsupported, failure: Box::new(failure) },
                }
            }
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Self::Accepted { program, stats, time } => json::accepted(program, stats, *time),
            Self::Refused { diagnosis, time } => json::refused(diagnosis, *time),
            Self::NotLoaded { program, unsupported, failure } => {
                json::not_loaded(program, *unsupported, &failure.to_string())
            }
        }
    }

    /// Refusals go where errors go.
    fn tell(&self, name: &str) -> Result<(), Failure> {
        match self {
            Self::Accepted { program, stats, time } => console::print(|out| {
                let Stats { instructions, peak_states, peak_branches, peak_bytes, .. } = stats;
                writeln!(
                    out,
                    "{name}: {program}: accepted; {instructions} instructions simulated, at most {peak_states} \
                     states kept and {peak_branches} branches waiting ({} KiB), in {time:.3?}",
                    peak_bytes.div_ceil(1024)
                )
            })
            .map(drop),
            Self::Refused { diagnosis, .. } => {
                console::diagnosis(diagnosis);
                Ok(())
            }
            Self::NotLoaded { failure, .. } => {
                failure.tell();
                Ok(())
            }
        }
    }
}
