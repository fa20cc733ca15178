//! One test: its programs and maps made, its packets run.

use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use paceline::contents::MapContents;
use paceline::coverage::{Counting, Counts};
use paceline::explain::ChainExplainer;
use paceline::scenario::{Origin, SessionError};
use paceline::{Arrival, Engine, FrameMeta, Host};

use super::args::TestArgs;
use super::case::{Case, MapSource, Step, Test, TestFile};
use super::check::{Actual, as_expected, check};
use super::in_c::{Ended, EndedAs, Suite, TestInC};
use super::kernel;
use super::mismatch::Mismatch;
use crate::chain::{LoadHow, SourceArgs};
use crate::common::failure::Failure;
use crate::kernel_side::KernelSide;

use crate::object::Opener;
use crate::session::Session;
use crate::subject::Subject;
use crate::world::{Seed, World, WorldArgs};

/// The result of a test.
#[derive(Debug)]
pub(super) struct TestResult {
    /// Counts of the programs that it loaded, if they have counters.
    pub(super) coverage: Vec<Counts>,
    pub(super) time: Duration,
    pub(super) outcome: Outcome,
}

#[derive(Debug)]
pub(super) enum Outcome {
    Passed,
    Failed(Vec<StepFailure>),
    /// A test in C failed: the lines of its log.
    CheckFailed(Vec<String>),
    /// A test in C says that it does not apply here.
    Skipped(Vec<String>),
    /// The test could not be run: the cause, in lines.
    Error(Vec<String>),
}

/// A step whose expectations are not met.
#[derive(Debug)]
pub(super) struct StepFailure {
    /// Index of the step.
    pub(super) step: usize,
    /// By the index of the expectation.
    pub(super) mismatches: Vec<(usize, Mismatch)>,
    /// The sentence that explains the packet's verdict.
    pub(super) why: Option<String>,
    /// Expectations to be written where a step has none.
    pub(super) missing: Vec<(&'static str, String)>,
}

/// Runs tests, on one thread.
pub(super) struct Tester<'a> {
    args: &'a TestArgs,
    opener: Rc<Opener>,
}

impl<'a> Tester<'a> {
    pub(super) fn new(args: &'a TestArgs) -> Self {
        let counting = args.coverage.as_ref().map(|_| Counting::Plain);
        Self { args, opener: Rc::new(Opener::new(&args.object).counting(counting).explaining(true)) }
    }

    /// Runs tests of a file, one after the other.
    pub(super) fn run(&self, file: &TestFile, tests: &[Test<'_>], engine: Engine) -> Vec<TestResult> {
        let in_c: Vec<_> = tests.iter().filter_map(|test| test.in_c()).collect();
        match in_c.is_empty() {
            true => tests
                .iter()
                .filter_map(|test| Some(self.run_case(test.case()?, &file.name, engine)))
                .collect(),
            false => self.run_in_c(&file.path, in_c, engine),
        }
    }

    /// Runs tests of an object.
    fn run_in_c(&self, path: &Path, tests: Vec<&TestInC>, engine: Engine) -> Vec<TestResult> {
        let suite = Suite { path, opener: &self.opener, tests, unverified: self.args.unverified };
        let mut coverage = Vec::new();
        let ended = match self.args.kernel {
            true => suite.run_in_kernel(),
            false => suite.run(engine, &mut coverage),
        };
        let result = |Ended { outcome, time }| {
            let outcome = match outcome {
                EndedAs::Passed => Outcome::Passed,
                EndedAs::Skipped(lines) => Outcome::Skipped(lines),
                EndedAs::Failed(lines) => Outcome::CheckFailed(lines),
                EndedAs::Error(lines) => Outcome::Error(lines),
            };
            // The programs of an object count together.
            TestResult { coverage: std::mem::take(&mut coverage), time, outcome }
        };
        ended.into_iter().map(result).collect()
    }

    fn run_case(&self, case: &Case, file: &str, engine: Engine) -> TestResult {
        let start = Instant::now();
        let mut coverage = Vec::new();
        let outcome = match self.failures(case, file, engine, &mut coverage) {
            Ok(failures) if failures.is_empty() => Outcome::Passed,
            Ok(failures) => Outcome::Failed(failures),
            Err(error) => Outcome::Error(error.lines()),
        };
        TestResult { coverage, time: start.elapsed(), outcome }
    }

    fn failures(
        &self,
        case: &Case,
        file: &str,
        engine: Engine,
        coverage: &mut Vec<Counts>,
    ) -> Result<Vec<StepFailure>, Failure> {
        let mut failures = Vec::new();
        let mut bench = Bench::new(self, case, file, engine)?;
        let kernel = self.args.kernel.then(|| KernelSide::new(&bench.session.subject)).transpose()?;
        for (index, step) in case.steps.iter().enumerate() {
            let actual = match &kernel {
                Some(kernel) => kernel::step(kernel, &bench.session.subject, step, &bench.packet(step)?)?,
                None => bench.step(step)?,
            };
            let is_shown = |what| kernel.is_none() || kernel::shows(what);
            let checked = step.expected.iter().enumerate().filter(|(_, expected)| is_shown(&expected.what));
            let mismatches: Vec<_> = checked
                .filter_map(|(number, expected)| {
                    Some((number, check(&expected.what, &actual, &bench.session.subject)?))
                })
                .collect();
            let missing = match self.args.update && step.expected.is_empty() {
                true => as_expected(&actual),
                false => Vec::new(),
            };
            if !mismatches.is_empty() || !missing.is_empty() {
                failures.push(StepFailure { step: index, mismatches, why: None, missing });
            }
        }
        coverage.extend(bench.session.subject.parts.iter().flat_map(|(_, part)| part.coverage()));
        // The kernel does not explain what it did.
        let explained =
            failures.iter_mut().filter(|failure| kernel.is_none() && !failure.mismatches.is_empty());
        for failure in explained {
            let why = self.why(case, file, failure.step);
            failure.why =
                Some(why.unwrap_or_else(|error| format!("not explained: {}", error.lines().join(" "))));
        }
        Ok(failures)
    }

    /// Runs the test again up to a step, and explains that.
    fn why(&self, case: &Case, file: &str, index: usize) -> Result<String, Failure> {
        let mut bench = Bench::new(self, case, file, Engine::Plain)?;
        let mut explainer = bench.session.subject.explainer();
        let last = &case.steps[index];
        for step in &case.steps[..index] {
            let packet = bench.packet(step)?;
            run(&mut explainer, &packet, bench.session.host(), step.repeat)?;
        }
        let packet = bench.packet(last)?;
        run(&mut explainer, &packet, bench.session.host(), last.repeat - 1)?;
        let explanation = explainer.explain(&packet, bench.session.host()).map_err(SessionError::from)?;
        Ok(explanation.sentence())
    }
}

/// Runs a packet several times.
fn run(
    explainer: &mut ChainExplainer,
    packet: &Arrival<'_>,
    host: &mut Host,
    times: u64,
) -> Result<(), SessionError> {
    for _ in 0..times {
        explainer.run(packet, host)?;
        host.fire_timers().map_err(SessionError::Timer)?;
    }
    Ok(())
}

/// The programs and maps of one test.
struct Bench {
    session: Session,
    world: World,
    world_args: WorldArgs,
}

fn meta(step: &Step) -> FrameMeta {
    FrameMeta { timestamp_ns: step.time_ns, original_len: step.packet.len() as u32, interface: 0 }
}

impl Bench {
    fn new(tester: &Tester<'_>, case: &Case, file: &str, engine: Engine) -> Result<Self, Failure> {
        let args = tester.args;
        let how = LoadHow {
            engine: if args.unverified { Engine::Plain } else { engine },
            unverified: args.unverified,
            opener: Rc::clone(&tester.opener),
            ..LoadHow::of(&args.object)
        };
        let targets = case.setup.targets.iter().map(|target| target.clone().into_os_string()).collect();
        let source = SourceArgs::of(targets, args.object.clone());
        let subject = Subject::load_with(&source, &how, contents(case, file)?)?;
        let world_args = WorldArgs {
            network: case.network.as_ref().or(case.setup.network.as_ref()).cloned(),
            ingress: case.setup.ingress.clone(),
            seed: Seed(Some(case.setup.seed)),
            ..WorldArgs::default()
        };
        let world = World::new(&world_args)?;
        Ok(Self { session: Session::new(subject, &world), world, world_args })
    }

    /// Where a step's packet comes from.
    fn origin(&self, step: &Step) -> Result<Origin, Failure> {
        let of_file = self.world.origin();
        let origin = match &step.ingress {
            None => of_file,
            Some(ingress) => {
                let args = WorldArgs { ingress: Some(ingress.clone()), ..self.world_args.clone() };
                World::new(&args)?.origin()
            }
        };
        Ok(origin.queue(step.queue).context(step.context))
    }

    /// The packet of a step.
    fn packet<'s>(&self, step: &'s Step) -> Result<Arrival<'s>, Failure> {
        Ok(self.origin(step)?.arrival(&step.packet, meta(step)))
    }

    fn step(&mut self, step: &Step) -> Result<Actual, Failure> {
        let packet = self.packet(step)?;
        for _ in 1..step.repeat {
            self.session.run(&packet)?;
        }
        let outcome = self.session.run(&packet)?;
        Ok(Actual { input: step.packet.clone(), outcome, events: self.session.events() })
    }
}

/// The contents of maps that a file and a test give.
fn contents(case: &Case, file: &str) -> Result<Vec<MapContents>, Failure> {
    let mut contents = Vec::new();
    for map in case.setup.maps.iter().chain(&case.maps) {
        match &map.from {
            MapSource::Inline(json) => {
                let place = (map.at.line, map.at.column);
                contents.push(MapContents::inline(&map.map, file, json.to_string(), place));
            }
            MapSource::File(path) => {
                contents.push(MapContents::read(&map.map, path)?);
            }
        }
    }
    Ok(contents)
}
