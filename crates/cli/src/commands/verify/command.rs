//! The verdicts of the verifier, as text or JSON.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline::diagnosis::{Diagnosis, refused, render};
use paceline::verifier::{Options, Stats};
use paceline::{Collection, Engine, Object, ProgramSpec};
use serde_json::{Value as Json, json};

use super::args::VerifyArgs;
use super::json;
use super::log::Log;
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::report;
use crate::object::{NamedObject, NamedProgramError, Opener, load, load_options, noting_unfilled};

/// Loads programs as a run does, and reports refusals.
pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let opener = Opener::new(&args.how);
    let named = NamedObject::open(&args.target, &opener)?;
    let programs: Vec<_> = named.programs()?.into_iter().map(|spec| spec.name.clone()).collect();
    let NamedObject { name, object, .. } = named;
    let options = load_options(Engine::best(), &args.how, paceline::LoadOptions::default().limits.cpus);
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
        report::print(|out| {
            let json = json!({ "object": name, "programs": verdicts });
            serde_json::to_writer(&mut *out, &json)?;
            writeln!(out)
        })?;
    }
    Ok(if all_accepted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Walks the program for the log alone: writing takes longer than verifying.
fn log(object: &Object, spec: &ProgramSpec) -> Result<(), Failure> {
    report::print(|out| {
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
    /// Unsafe, or needs an unsupported feature.
    Refused {
        diagnosis: Box<Diagnosis>,
        time: Duration,
    },
    /// Loading fails for another cause.
    NotLoaded {
        program: String,
        unsupported: bool,
        failure: Failure,
    },
}

impl Verdict {
    fn of(name: &str, collection: &Collection, program: String) -> Self {
        let start = Instant::now();
        match noting_unfilled(collection, || collection.program(Some(&program))) {
            Ok(verified) => Self::Accepted {
                program,
                stats: *verified.verified().stats(),
                time: verified.verification_time(),
            },
            Err(error) => {
                let (time, unsupported) = (start.elapsed(), error.is_unsupported());
                match NamedProgramError::new(name, collection.object(), error) {
                    NamedProgramError::Refused(diagnosis) => Self::Refused { diagnosis, time },
                    error => Self::NotLoaded { program, unsupported, failure: error.into() },
                }
            }
        }
    }

    fn to_json(&self) -> Json {
        match self {
            Self::Accepted { program, stats, time } => json::accepted(program, stats, *time),
            Self::Refused { diagnosis, time } => refused(diagnosis, *time),
            Self::NotLoaded { program, unsupported, failure } => {
                json::not_loaded(program, *unsupported, &failure.to_string())
            }
        }
    }

    /// Refusals go where errors go.
    fn tell(&self, name: &str) -> Result<(), Failure> {
        match self {
            Self::Accepted { program, stats, time } => report::print(|out| {
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
                console::drawn(&render(diagnosis, console::stderr_has_color()));
                Ok(())
            }
            Self::NotLoaded { failure, .. } => {
                failure.tell();
                Ok(())
            }
        }
    }
}
