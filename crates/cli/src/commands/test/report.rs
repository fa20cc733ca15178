//! Results for people, and as JSON.

use std::io::{self, Write};
use std::time::Duration;

use paceline::Engine;
use serde_json::{Value as Json, json};

use super::case::Test;
use super::run::{Outcome, StepFailure, TestResult};
use crate::common::console::shown;

/// A test with its result.
pub(super) struct Reported<'a> {
    pub(super) file: &'a str,
    pub(super) test: Test<'a>,
    /// The engine, where there are several.
    pub(super) engine: Option<Engine>,
    pub(super) result: TestResult,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Passed,
    Skipped,
    Failed,
    Error,
}

impl Status {
    pub(super) fn is_failure(self) -> bool {
        matches!(self, Self::Failed | Self::Error)
    }
}

impl Reported<'_> {
    pub(super) fn status(&self) -> Status {
        match &self.result.outcome {
            Outcome::Passed => Status::Passed,
            Outcome::Skipped(_) => Status::Skipped,
            Outcome::Failed(_) | Outcome::CheckFailed(_) => Status::Failed,
            Outcome::Error(_) => Status::Error,
        }
    }

    /// The test's name, with the engine where there are several.
    pub(super) fn name(&self) -> String {
        let engine = self.engine.map_or_else(String::new, |engine| format!(" ({engine})"));
        format!("{}{engine}", self.test.name())
    }

    /// The failure in one line: expected and actual values, and the sentence that explains the verdict.
    pub(super) fn reason(&self) -> String {
        let Outcome::Failed(failures) = &self.result.outcome else {
            return self.lines().into_iter().next().unwrap_or_default();
        };
        let of = |failure: &StepFailure| {
            let differences = failure.mismatches.iter().flat_map(|(_, mismatch)| mismatch.lines.clone());
            differences
                .chain(failure.why.as_ref().map(|why| format!("the packet was {why}")))
                .collect::<Vec<_>>()
        };
        failures.iter().flat_map(of).map(|line| line.trim().to_owned()).collect::<Vec<_>>().join("; ")
    }

    /// The failure, in lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let failures = match &self.result.outcome {
            Outcome::Passed => return Vec::new(),
            Outcome::Error(lines) | Outcome::CheckFailed(lines) | Outcome::Skipped(lines) => {
                return lines.clone();
            }
            Outcome::Failed(failures) => failures,
        };
        let Some(case) = self.test.case() else { return Vec::new() };
        let mut lines = Vec::new();
        for failure in failures {
            let at = case.steps.get(failure.step).map_or(case.at, |step| step.at);
            let step = match case.steps.len() {
                1 => String::new(),
                _ => format!("step {}, ", failure.step + 1),
            };
            lines.push(format!("{step}{}:{}:{}", self.file, at.line, at.column));
            let differences = failure.mismatches.iter().flat_map(|(_, mismatch)| &mismatch.lines);
            lines.extend(differences.map(|line| format!("  {line}")));
            lines.extend(failure.why.as_ref().map(|why| format!("  the packet was {why}")));
        }
        lines
    }
}

/// Writes the line of a test, and its failure.
pub(super) fn write_result(out: &mut dyn Write, reported: &Reported<'_>, updates: bool) -> io::Result<()> {
    let word = match reported.status() {
        Status::Passed => "ok    ",
        Status::Skipped => "SKIP  ",
        Status::Failed if updates => "CHANGE",
        Status::Failed => "FAILED",
        Status::Error => "ERROR ",
    };
    writeln!(out, "{word} {}: {}", shown(reported.file), shown(&reported.name()))?;
    reported.lines().iter().try_for_each(|line| writeln!(out, "       {}", shown(line)))
}

/// Writes the counts.
pub(super) fn write_summary(out: &mut dyn Write, results: &[Reported<'_>], time: Duration) -> io::Result<()> {
    let of = |wanted: Status| results.iter().filter(|result| result.status() == wanted).count();
    let errors = match of(Status::Error) {
        0 => String::new(),
        errors => format!(", {errors} not run"),
    };
    let skipped = match of(Status::Skipped) {
        0 => String::new(),
        skipped => format!(", {skipped} skipped"),
    };
    let (passed, failed) = (of(Status::Passed), of(Status::Failed));
    writeln!(out, "{passed} passed, {failed} failed{skipped}{errors} in {:.2} s", time.as_secs_f64())
}

/// All results as one JSON object.
pub(super) fn to_json(results: &[Reported<'_>], seed: Option<u64>) -> Json {
    let test = |reported: &Reported<'_>| {
        json!({
            "file": reported.file,
            "source": reported.test.source(),
            "line": reported.test.place().0,
            "name": reported.test.name(),
            "engine": reported.engine.map(Engine::name),
            "status": match reported.status() {
                Status::Passed => "passed",
                Status::Skipped => "skipped",
                Status::Failed => "failed",
                Status::Error => "error",
            },
            "seconds": reported.result.time.as_secs_f64(),
            "messages": reported.lines(),
        })
    };
    let of = |wanted: Status| results.iter().filter(|result| result.status() == wanted).count();
    json!({
        "passed": of(Status::Passed),
        "failed": of(Status::Failed),
        "skipped": of(Status::Skipped),
        "errors": of(Status::Error),
        "seed": seed,
        "tests": results.iter().map(test).collect::<Vec<_>>(),
    })
}
