//! The tests of an object, run and judged.

use std::path::Path;
use std::time::{Duration, Instant};

use paceline::Engine;
use paceline::coverage::Counts;
use paceline::explain::Writes;

use super::find::TestInC;
use super::log::text;
use super::machines::{InKernel, OnEngine, Setup, Watching};
use super::result::{LogLine, RESULTS, SuiteResult, parse};
use super::stages::{self, Machine, Status};
use crate::common::failure::Failure;
use crate::object::Opener;

/// Maps that are zeroed after each test.
const CLEARED: [&str; 2] = [RESULTS, "mock_skb_meta_map"];

/// Tests of an object, to be run in their order: they share its maps.
pub(crate) struct Suite<'a> {
    pub(crate) path: &'a Path,
    pub(crate) opener: &'a Opener,
    pub(crate) tests: Vec<&'a TestInC>,
    pub(crate) unverified: bool,
}

/// The end of a test.
pub(crate) struct Ended {
    pub(crate) outcome: EndedAs,
    pub(crate) time: Duration,
}

/// The outcome of a test, with the lines of its log.
pub(crate) enum EndedAs {
    Passed,
    Skipped(Vec<String>),
    Failed(Vec<String>),
    /// It could not be run.
    Error(Vec<String>),
}

/// Outcome of a check program.
struct Checked {
    code: u32,
    result: SuiteResult,
}

impl Suite<'_> {
    /// Runs the tests on an engine.
    pub(crate) fn run(&self, engine: Engine, coverage: &mut Vec<Counts>) -> Vec<Ended> {
        let setup = Setup { path: self.path, opener: self.opener, engine, unverified: self.unverified };
        let programs: Vec<_> = self.tests.iter().flat_map(|test| test.programs()).collect();
        let mut machine = match OnEngine::new(&setup, &programs) {
            Ok(machine) => machine,
            Err(error) => return self.none_runs(&error),
        };
        let checked = self.check_all(&mut machine);
        coverage.extend(machine.coverage());
        let has_failed = checked.iter().any(|(checked, _)| checked.as_ref().is_ok_and(Checked::has_failed));
        let writes = if has_failed { self.writes(&setup, &programs) } else { Vec::new() };
        let writes = writes.iter().map(Some).chain(std::iter::repeat(None));
        let left_out = machine.left_out();
        let end = |((checked, time), writes): ((_, _), Option<&Writes>)| {
            let mut outcome = end(checked, writes);
            if let EndedAs::Failed(lines) | EndedAs::Error(lines) = &mut outcome {
                lines.extend_from_slice(&left_out);
            }
            Ended { outcome, time }
        };
        checked.into_iter().zip(writes).map(end).collect()
    }

    /// Runs the tests in the running kernel.
    pub(crate) fn run_in_kernel(&self) -> Vec<Ended> {
        let engine = Engine::Plain;
        let setup = Setup { path: self.path, opener: self.opener, engine, unverified: self.unverified };
        let programs = self.tests.iter().flat_map(|test| test.programs());
        match InKernel::new(&setup, &programs.collect::<Vec<_>>()) {
            Err(error) => self.none_runs(&error),
            Ok(mut machine) => {
                let checked = self.check_all(&mut machine).into_iter();
                checked.map(|(checked, time)| Ended { outcome: end(checked, None), time }).collect()
            }
        }
    }

    fn none_runs(&self, error: &Failure) -> Vec<Ended> {
        let end = |_| Ended { outcome: EndedAs::Error(error.lines()), time: Duration::ZERO };
        self.tests.iter().map(end).collect()
    }

    fn check_all<M: Machine>(&self, machine: &mut M) -> Vec<(Result<Checked, Failure>, Duration)> {
        let check = |test: &&TestInC| {
            let start = Instant::now();
            let checked = checked(machine, test);
            (checked, start.elapsed())
        };
        self.tests.iter().map(check).collect()
    }

    /// Runs the tests again, and notes which lines wrote the results of each. A test that cannot run again has none.
    fn writes(&self, setup: &Setup<'_>, programs: &[&str]) -> Vec<Writes> {
        let Ok(machine) = OnEngine::new(setup, programs) else { return Vec::new() };
        let mut watching = Watching::new(machine, RESULTS);
        let writes = |test: &&TestInC| {
            watching.check = Some(test.check.clone());
            let _ = checked(&mut watching, test);
            std::mem::take(&mut watching.writes)
        };
        self.tests.iter().map(writes).collect()
    }
}

/// Runs a test, and takes what it wrote.
fn checked<M: Machine>(machine: &mut M, test: &TestInC) -> Result<Checked, Failure> {
    let code = stages::run(machine, test);
    let value = machine.value(RESULTS);
    CLEARED.iter().try_for_each(|map| machine.clear(map))?;
    let (code, value) = (code?, value?.unwrap_or_default());
    Ok(Checked { code, result: parse(&value)? })
}

impl Checked {
    fn status(&self) -> Option<Status> {
        let parts = self.result.parts.iter().map(|part| Status::of(part.status));
        let of_code = Status::of(self.code.into());
        let is_bad = |status: &Option<Status>| !matches!(status, Some(Status::Passed | Status::Skipped));
        parts.filter(is_bad).chain([of_code]).next().flatten()
    }

    fn has_failed(&self) -> bool {
        !matches!(self.status(), Some(Status::Passed | Status::Skipped))
    }

    /// The lines of the parts with a status that counts, and those outside of any part.
    fn lines(&self, writes: Option<&Writes>) -> Vec<String> {
        let mut lines = Vec::new();
        for part in self.result.parts.iter().filter(|part| Status::of(part.status) != Some(Status::Passed)) {
            if part.log.is_empty() {
                lines.push(format!("{}: no line was logged", part.name));
            }
            lines.extend(part.log.iter().map(|line| format!("{}: {}", part.name, placed(line, writes))));
        }
        lines.extend(self.result.log.iter().map(|line| placed(line, writes)));
        match Status::of(self.code.into()) {
            None => lines.push(format!("the check program returned {}, which is no status", self.code)),
            Some(_) if lines.is_empty() => {
                lines.push(format!("the check program returned {}; no line was logged", self.code));
            }
            Some(_) => {}
        }
        lines
    }
}

/// The text of a line, after the place in the source that logged it.
fn placed(line: &LogLine, writes: Option<&Writes>) -> String {
    let text = text(&line.format, &line.args);
    match writes.and_then(|writes| writes.line(line.at)) {
        Some(at) => format!("{}:{}: {text}", at.file, at.line),
        None => text,
    }
}

fn end(checked: Result<Checked, Failure>, writes: Option<&Writes>) -> EndedAs {
    match checked {
        Err(error) => EndedAs::Error(error.lines()),
        Ok(checked) => match checked.status() {
            Some(Status::Passed) => EndedAs::Passed,
            Some(Status::Skipped) => EndedAs::Skipped(checked.lines(writes)),
            Some(Status::Failed | Status::Error) | None => EndedAs::Failed(checked.lines(writes)),
        },
    }
}
