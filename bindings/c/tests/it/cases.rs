//! Every text case that is a program over packets gives through the C library what it gives in Rust.

use std::path::Path;
use std::sync::Mutex;

use paceline_c::paceline_engine;
use paceline_testkit::case::{find_files, read_file};
use paceline_testkit::engine::{Engine, OurEngine};
use paceline_testkit::runner;

use crate::engine::{LibraryEngine, Way};

fn engines() -> Vec<Box<dyn Engine>> {
    let of = |name, like, number, verifies, way| -> Box<dyn Engine> {
        Box::new(LibraryEngine { name, like, number, verifies, way })
    };
    let mut engines: Vec<Box<dyn Engine>> = vec![
        Box::new(OurEngine::plain()),
        of("C, jit", "jit", paceline_engine::Jit, true, Way::Alone),
        of("C, threaded, bursts in place", "threaded-burst", paceline_engine::Threaded, true, Way::Placed),
    ];
    // The rest takes as long again, for what differs less.
    if std::env::var_os("PACELINE_REQUIRE_ALL").is_some() {
        engines.extend([
            of("C, unverified", "plain", paceline_engine::Plain, false, Way::Alone),
            of("C, threaded", "threaded", paceline_engine::Threaded, true, Way::Alone),
            of("C, jit, bursts", "jit-burst", paceline_engine::Jit, true, Way::Pushed),
        ]);
    }
    engines
}

/// Outcomes of cases.
#[derive(Default)]
struct Total {
    cases: usize,
    runs: usize,
    failures: Vec<String>,
}

#[test]
fn text_cases_give_what_they_give_in_rust() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/cases");
    let files = Mutex::new(find_files(&root).expect("there are cases"));
    let total = Mutex::new(Total::default());
    let next = || files.lock().expect("no thread panics with it").pop();
    let work = || {
        while let Some(file) = next() {
            run_file(&file, &engines(), &total);
        }
    };
    // Many wait, for timers.
    std::thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(work))));
    let Total { cases, runs, failures } = total.into_inner().expect("no thread panics with it");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert!(cases > 3000 && runs > 2 * cases, "{cases} cases, {runs} runs");
}

fn run_file(file: &Path, engines: &[Box<dyn Engine>], total: &Mutex<Total>) {
    let cases = read_file(file).unwrap_or_else(|error| panic!("{error}"));
    // Chains of cases are ordered by edges, which C has not.
    for case in cases.iter().filter(|case| case.chain.is_none()) {
        let report = runner::run(case, engines);
        let place = format!("{}:{} {}", file.display(), case.line, case.name);
        let mut total = total.lock().expect("no thread panics with it");
        total.cases += 1;
        total.runs += engines.len() - report.skipped.len();
        total.failures.extend(report.failures.iter().map(|failure| format!("{place}: {failure}")));
    }
}
