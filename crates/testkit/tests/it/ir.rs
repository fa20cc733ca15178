//! The form of `paceline-compiler` against the plain interpreter, on random programs: verdicts, packets and maps.

use paceline_compiler::ir::{Pass, Passes};
use paceline_testkit::compare::{Comparator, Comparison, EngineSubject, Subject, Workshop};
use paceline_testkit::kernel;
use paceline_testkit::random::maps;

/// Programs, unless `PACELINE_IR_PROGRAMS` says how many.
const PROGRAMS: u64 = 600;
const RUNS: usize = 6;

fn programs() -> u64 {
    std::env::var("PACELINE_IR_PROGRAMS").map_or(PROGRAMS, |count| count.parse().expect("a number"))
}

fn subject(name: &'static str, passes: Passes, cpu: usize) -> Box<dyn Subject> {
    Box::new(EngineSubject::of_ir(name, passes, cpu).expect("small maps"))
}

/// Compares random programs on some subjects; returns how many were accepted.
fn compare(subjects: Vec<Box<dyn Subject>>, cpu: usize, seeds: std::ops::Range<u64>) -> u64 {
    let mut comparator = Comparator::new(subjects, None, cpu).expect("small maps");
    let shop = Workshop::new(maps());
    let mut accepted = 0;
    for seed in seeds {
        let Ok((candidate, work)) = shop.work(seed, RUNS) else { continue };
        accepted += 1;
        if let Comparison::Different(difference) = comparator.compare(&work) {
            let small = comparator.shrink(&candidate, &work, &shop);
            let work = small.program().and_then(|small| shop.with_program(&work, small)).unwrap_or(work);
            let text = comparator.to_case("different", &work, &shop);
            panic!("seed {seed}: {}\n{text}", difference.text);
        }
    }
    accepted
}

#[test]
fn programs_do_the_same_in_the_form_before_and_after_all_passes() {
    let pinned = kernel::pin();
    let subjects = vec![
        subject("ir without passes", Passes::none(), pinned.cpu()),
        subject("ir", Passes::default().checked(true), pinned.cpu()),
    ];
    let accepted = compare(subjects, pinned.cpu(), 0..programs());
    assert!(accepted > programs() * 95 / 100, "only {accepted} were accepted");
}

#[test]
fn programs_do_the_same_after_each_pass_alone() {
    let pinned = kernel::pin();
    // Most passes need constant offsets to find anything.
    let alone = |pass: Pass| {
        let passes = Passes::none().with(Pass::Fold, true).with(pass, true).checked(true);
        subject(pass.name(), passes, pinned.cpu())
    };
    let subjects = Pass::ALL.into_iter().map(alone).collect();
    compare(subjects, pinned.cpu(), programs()..programs() * 4 / 3);
}
