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
use paceline::{Object, ProgramSpec, Refused};
use serde_json::{Value as Json, json};

use crate::args::{Target, VerifyArgs};
use crate::console;
use crate::dump::chosen;
use crate::failure::Failure;
use crate::object;
pub(crate) use diagnosis::Diagnosis;
#[cfg(test)]
pub(crate) use json::refused as verdict_to_json;
use log::Log;
pub(crate) use render::render;

/// Verifies programs and says why those are refused that are.
pub(crate) fn verify(args: &VerifyArgs) -> Result<ExitCode, Failure> {
    let target = Target::parse(&args.target, Path::exists);
    let object = object::open(&target.path)?;
    let name = target.path.display().to_string();
    let programs = chosen(&object, target.program.as_deref())
        .map_err(|source| Failure::Program { name: name.clone(), source: Box::new(source) })?;
    let mut all_accepted = true;
    let mut verdicts = Vec::new();
    for spec in programs {
        if args.log {
            log(&object, spec)?;
        }
        let verdict = Verdict::of(&name, &object, spec);
        all_accepted &= verdict.outcome.is_ok();
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

/// What the verifier says of a program.
struct Verdict {
    program: String,
    outcome: Result<Stats, Box<Diagnosis>>,
    time: Duration,
}

impl Verdict {
    fn of(name: &str, object: &Object, spec: &ProgramSpec) -> Self {
        let start = Instant::now();
        let verified = object.verify(spec);
        let time = start.elapsed();
        let diagnose = |refused: Refused| Box::new(Diagnosis::new(name, object, &refused));
        let outcome = verified.map(|verified| *verified.stats()).map_err(diagnose);
        Self { program: spec.name.clone(), outcome, time }
    }

    fn to_json(&self) -> Json {
        match &self.outcome {
            Ok(stats) => json::accepted(&self.program, stats, self.time),
            Err(diagnosis) => json::refused(diagnosis, self.time),
        }
    }

    /// Refusals go where errors go.
    fn tell(&self, name: &str) -> Result<(), Failure> {
        let (program, time) = (&self.program, self.time);
        match &self.outcome {
            Ok(stats) => console::print(|out| {
                let Stats { instructions, peak_states, peak_branches, peak_bytes, .. } = stats;
                writeln!(
                    out,
                    "{name}: {program}: accepted; {instructions} instructions simulated, at most {peak_states} \
                     states kept and {peak_branches} branches waiting ({} KiB), in {time:.3?}",
                    peak_bytes.div_ceil(1024)
                )
            })
            .map(drop),
            Err(diagnosis) => {
                console::diagnosis(diagnosis);
                Ok(())
            }
        }
    }
}
