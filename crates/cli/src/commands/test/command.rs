//! Running tests.

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use paceline::Engine;
use paceline::coverage::Report;

use super::args::TestArgs;
use super::case::{Test, TestFile, Tests};
use super::discover::tests;
use super::error::TestError;
use super::report::{Reported, Status, to_json, write_result, write_summary};
use super::run::{TestResult, Tester};
use super::{junit, update};
use crate::common::console;
use crate::common::failure::Failure;
use crate::common::files::{Opened, Taken};
use crate::common::report;
use crate::coverage::CoverageFile;
use crate::object::{self, Opener};

/// Tests that run one after the other: a test of a test file, or those of an object, which share its maps.
struct Planned<'a> {
    file: &'a TestFile,
    tests: Vec<Test<'a>>,
    engine: Engine,
}

/// Runs tests.
pub(crate) fn test(args: &TestArgs) -> Result<ExitCode, Failure> {
    let files = tests(&args.paths, &Opener::new(&args.object))?;
    let mut planned = planned(args, &files)?;
    if args.list {
        return list(&planned);
    }
    let mut taken = inputs(&files);
    let junit =
        args.junit.as_deref().map(|path| Opened::open_text(path, "--junit", &mut taken)).transpose()?;
    let coverage = args.coverage.as_deref().map(|path| CoverageFile::open(path, &mut taken)).transpose()?;
    let seed = args.shuffle.map(|seed| seed.unwrap_or_else(|| fastrand::u64(..1_000_000)));
    if let Some(seed) = seed {
        console::note(format_args!("in the order of --shuffle={seed}"));
        fastrand::Rng::with_seed(seed).shuffle(&mut planned);
    }
    let start = Instant::now();
    let mut results = run_all(args, &planned, |reported| match args.json {
        true => Ok(()),
        false => report::print(|out| write_result(out, reported, args.update)).map(drop),
    })?;
    // Reports have the order of the files, whatever the order of the run.
    let place = |reported: &Reported<'_>| files.iter().position(|file| file.name == reported.file);
    // Tests in C have the order of their names.
    let within = |reported: &Reported<'_>| match reported.test {
        Test::Case(case) => (case.at.line, case.at.column),
        Test::InC(_) => (0, 0),
    };
    results.sort_by_key(|reported| (place(reported), within(reported)));
    if let Some(junit) = junit {
        let (mut file, name) = junit.start_text()?;
        junit::write(&mut file, &results).map_err(|source| TestError::Write { name, source })?;
    }
    let time = start.elapsed();
    report::print(|out| match args.json {
        true => writeln!(out, "{}", to_json(&results, seed)),
        false if args.update => Ok(()),
        false => write_summary(out, &results, time),
    })?;
    // Without a program that was loaded, the errors say why there is nothing to report.
    let counts = || results.iter().flat_map(|reported| &reported.result.coverage);
    if let Some(file) = coverage.filter(|_| counts().next().is_some() || !has_errors(&results)) {
        file.write(&Report::new(counts()), "paceline")?;
    }
    if args.update {
        return update_files(&files, &results);
    }
    let has_failed = results.iter().any(|reported| reported.status().is_failure());
    Ok(if has_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The test files and their objects, which no output may replace.
fn inputs(files: &[TestFile]) -> Vec<Taken> {
    let targets = files.iter().flat_map(TestFile::cases).flat_map(|case| &case.setup.targets);
    let mut targets: Vec<_> = targets.collect();
    targets.sort();
    targets.dedup();
    let tests = files.iter().map(|file| Taken::of_path(&file.path, &format!("the test file {}", file.name)));
    let objects = targets.iter().map(|path| object::taken(path.as_os_str()));
    tests.chain(objects).flatten().collect()
}

/// The tests that are asked for, on each engine.
fn planned<'a>(args: &TestArgs, files: &'a [TestFile]) -> Result<Vec<Planned<'a>>, TestError> {
    let best = [Engine::best()];
    let engines = if args.engine.is_empty() { &best[..] } else { &args.engine };
    let is_wanted = |file: &TestFile, test: &Test<'_>| {
        args.filter.is_empty()
            || args.filter.iter().any(|text| test.name().contains(text) || file.name.contains(text))
    };
    let mut planned = Vec::new();
    for file in files {
        let wanted: Vec<_> = file.all().into_iter().filter(|test| is_wanted(file, test)).collect();
        let together = match file.tests {
            Tests::Cases(..) => 1,
            Tests::InC(_) => wanted.len().max(1),
        };
        for tests in wanted.chunks(together) {
            planned.extend(engines.iter().map(|&engine| Planned { file, tests: tests.to_vec(), engine }));
        }
    }
    match (planned.is_empty(), args.filter.first()) {
        (true, Some(filter)) => Err(TestError::NoTests(filter.clone())),
        (true, None) => Err(TestError::Empty),
        (false, _) => Ok(planned),
    }
}

fn list(planned: &[Planned<'_>]) -> Result<ExitCode, Failure> {
    report::print(|out| {
        let tests = planned.iter().flat_map(|plan| plan.tests.iter().map(move |test| (plan.file, test)));
        let mut tests = tests;
        tests.try_for_each(|(file, test)| {
            let file = console::shown(&file.name);
            match test.source() {
                None => writeln!(out, "{file}:{}: {}", test.place().0, console::shown(test.name())),
                Some(source) => {
                    let (name, line) = (console::shown(test.name()), test.place().0);
                    writeln!(out, "{file}: {name} ({}:{line})", console::shown(source))
                }
            }
        })
    })
}

/// Runs tests on several threads; `tell` gets each result in the order of the plan.
fn run_all<'a>(
    args: &TestArgs,
    planned: &[Planned<'a>],
    mut tell: impl FnMut(&Reported<'a>) -> Result<(), Failure>,
) -> Result<Vec<Reported<'a>>, Failure> {
    let jobs = args.jobs.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let next = AtomicUsize::new(0);
    let (send, receive) = mpsc::channel::<(usize, Vec<TestResult>)>();
    thread::scope(|scope| {
        for _ in 0..jobs.min(planned.len()) {
            let (send, next) = (send.clone(), &next);
            scope.spawn(move || {
                let tester = Tester::new(args);
                while let Some((index, plan)) = take(planned, next) {
                    let results = tester.run(plan.file, &plan.tests, plan.engine);
                    if send.send((index, results)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(send);
        let mut results: Vec<Option<Vec<TestResult>>> = planned.iter().map(|_| None).collect();
        let (mut reported, mut told) = (Vec::new(), 0);
        for (index, of_plan) in receive {
            if let Some(place) = results.get_mut(index) {
                *place = Some(of_plan);
            }
            while let Some((plan, results)) =
                planned.get(told).zip(results.get_mut(told).and_then(Option::take))
            {
                let engine = (args.engine.len() > 1).then_some(plan.engine);
                for (&test, result) in plan.tests.iter().zip(results) {
                    let one = Reported { file: &plan.file.name, test, engine, result };
                    tell(&one)?;
                    reported.push(one);
                }
                told += 1;
            }
        }
        Ok(reported)
    })
}

fn take<'p, 'a>(planned: &'p [Planned<'a>], next: &AtomicUsize) -> Option<(usize, &'p Planned<'a>)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, planned.get(index)?))
}

/// Writes files anew where expectations are not met; errors stay errors.
fn update_files(files: &[TestFile], results: &[Reported<'_>]) -> Result<ExitCode, Failure> {
    let mut is_unchanged = true;
    for file in files {
        let Tests::Cases(text, _) = &file.tests else { continue };
        let of_file = results.iter().filter(|reported| reported.file == file.name);
        let of_file: Vec<_> =
            of_file.filter_map(|reported| Some((reported.test.case()?, &reported.result))).collect();
        let updated = update::update(file, text, &of_file)?;
        is_unchanged &= updated.changes + updated.disputed == 0;
        if updated.changes > 0 {
            console::note(format_args!("{}: {} expectations written", file.name, updated.changes));
        }
        if updated.disputed > 0 {
            console::note(format_args!(
                "{}: {} expectations left: the cases of a test need different ones",
                file.name, updated.disputed
            ));
        }
    }
    let has_errors = has_errors(results);
    if is_unchanged && !has_errors {
        console::note("all expectations are met: no file changes");
    }
    Ok(if has_errors { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Whether a test could not be run.
fn has_errors(results: &[Reported<'_>]) -> bool {
    results.iter().any(|reported| reported.status() == Status::Error)
}
