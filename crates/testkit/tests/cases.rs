//! Every text case in `tests/cases`, on every engine: one test each, named `PATH::CASE`.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use libtest_mimic::{Arguments, Failed, Trial};
use paceline_testkit::case::{Case, find_files, read_file};
use paceline_testkit::engine::{Engine, available};
use paceline_testkit::runner;

type Engines = Arc<Vec<Box<dyn Engine>>>;

/// Number of cases that an engine did not run, by reason.
type Skipped = Arc<Mutex<BTreeMap<(String, String), usize>>>;

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    // A case waits for the kernel's grace periods most of its time.
    arguments.test_threads.get_or_insert(4 * std::thread::available_parallelism().map_or(1, usize::from));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let files = match find_files(&root) {
        Ok(files) => files,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let engines = if arguments.list { Arc::default() } else { engines() };
    let skipped = Skipped::default();
    let trials = files.into_iter().flat_map(|file| trials(&root, &file, &engines, &skipped)).collect();
    let conclusion = libtest_mimic::run(&arguments, trials);
    for ((engine, reason), cases) in skipped.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        eprintln!("SKIP {engine}: {cases} cases: {reason}");
    }
    conclusion.exit_code()
}

/// All engines, or those in `PACELINE_ENGINES`.
fn engines() -> Engines {
    let mut engines = available();
    if let Ok(wanted) = std::env::var("PACELINE_ENGINES") {
        let wanted: Vec<&str> = wanted.split(',').collect();
        engines.retain(|engine| wanted.contains(&engine.name()));
    }
    Arc::new(engines)
}

/// The tests of a file: one for each case, or a failing one if the file is invalid.
fn trials(root: &Path, file: &Path, engines: &Engines, skipped: &Skipped) -> Vec<Trial> {
    let name = file.strip_prefix(root).unwrap_or(file).with_extension("").to_string_lossy().into_owned();
    let path = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let cases = match read_file(&path) {
        Ok(cases) => cases,
        Err(error) => return vec![Trial::test(name, move || Err(error.to_string().into()))],
    };
    let path = Arc::new(path);
    let trial = |case: Case| {
        let (engines, path, skipped) = (engines.clone(), path.clone(), skipped.clone());
        let name = format!("{name}::{}", case.name);
        Trial::test(name, move || run(&case, &path, &engines, &skipped))
    };
    cases.into_iter().map(trial).collect()
}

fn run(case: &Case, path: &Path, engines: &[Box<dyn Engine>], skipped: &Skipped) -> Result<(), Failed> {
    let report = runner::run(case, engines);
    for reason in &report.skipped {
        *skipped.lock().unwrap_or_else(PoisonError::into_inner).entry(reason.clone()).or_default() += 1;
    }
    if std::env::var_os("PACELINE_TRACE").is_some() {
        eprintln!("{}::{}\n{}", path.display(), case.name, runner::listing(case));
        for (engine, outcome) in &report.outcomes {
            eprintln!("{engine}: {outcome:#x?}");
        }
        for (engine, reason) in &report.skipped {
            eprintln!("{engine}: skipped: {reason}");
        }
    }
    if report.failures.is_empty() {
        return Ok(());
    }
    Err(format!("{}:{}\n{}", path.display(), case.line, report.failures.join("\n")).into())
}
