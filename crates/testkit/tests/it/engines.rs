//! Random programs on all engines of this machine, a fixed number; `paceline-testkit engines` runs any number.

use paceline_testkit::AnyEngine;
use paceline_testkit::Contents;
use paceline_testkit::case::parse_file;
use paceline_testkit::compare::{
    Comparator, Comparison, EngineSubject, KernelSubject, Left, Stopped, Subject, Work, Workshop,
};
use paceline_testkit::kernel;
use paceline_testkit::random::maps;

const PROGRAMS: u64 = 1500;
const RUNS: usize = 8;

fn plain(cpu: usize) -> Box<dyn Subject> {
    Box::new(EngineSubject::new(AnyEngine::Plain, cpu).expect("small maps"))
}

#[test]
fn engines_and_kernel_agree() {
    let pinned = kernel::pin();
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    for engine in AnyEngine::ALL.into_iter().filter(|&engine| engine != AnyEngine::Plain) {
        if EngineSubject::probe(engine).is_ok() {
            subjects.push(Box::new(EngineSubject::new(engine, pinned.cpu()).expect("small maps")));
            subjects.push(Box::new(EngineSubject::in_bursts(engine, pinned.cpu()).expect("small maps")));
            if engine == AnyEngine::Jit {
                subjects.push(Box::new(EngineSubject::in_stages(pinned.cpu()).expect("small maps")));
            }
        }
    }
    let kernel = kernel::available_for("engines_and_kernel_agree")
        .then(|| KernelSubject::new(pinned.cpu()).expect("small maps"));
    let mut comparator = Comparator::new(subjects, kernel, pinned.cpu()).expect("small maps");
    let shop = Workshop::new(maps());
    let mut accepted = 0;
    for seed in 0..PROGRAMS {
        let Ok((_, work)) = shop.work(seed, RUNS) else { continue };
        accepted += 1;
        if let Comparison::Different(difference) = comparator.compare(&work) {
            panic!("paceline-testkit engines --kernel --seed {seed} --count 1: {}", difference.text);
        }
    }
    assert!(accepted > PROGRAMS * 95 / 100, "only {accepted} of {PROGRAMS} were accepted");
}

/// An engine with a fault in redirects.
struct Broken(Box<dyn Subject>);

impl Subject for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn run(&mut self, work: &Work, left: &mut [Left]) -> Result<Vec<Option<Contents>>, Stopped> {
        let maps = self.0.run(work, left)?;
        for left in left.iter_mut().filter(|left| left.redirect.is_some_and(|to| to.is_some())) {
            left.data.push(0);
        }
        Ok(maps)
    }
}

#[test]
fn a_broken_engine_is_found_and_its_program_shrinks() {
    let broken: Box<dyn Subject> = Box::new(Broken(plain(0)));
    let mut comparator = Comparator::new(vec![broken], None, 0).expect("small maps");
    let shop = Workshop::new(maps());
    let found = (0..PROGRAMS).find_map(|seed| {
        let (candidate, work) = shop.work(seed, RUNS).ok()?;
        matches!(comparator.compare(&work), Comparison::Different(_)).then_some((candidate, work))
    });
    let (candidate, work) = found.expect("some program redirects");
    let small = comparator.shrink(&candidate, &work, &shop).program().expect("as large at most");
    assert!(small.insns.len() <= 8, "{}", small.insns.len());
    // The printed text is a case for tests/cases.
    let work = shop.with_program(&work, small).expect("accepted");
    let text = comparator.to_case("redirected", &work, &shop);
    let cases = parse_file(&text).expect("a good case");
    assert_eq!(cases[0].runs.len(), RUNS);
}

/// Bursts of every length in stages, on programs whose packets change what the next ones look up; longer runs are the campaign `staged`.
#[test]
fn look_ups_ahead_change_nothing() {
    if EngineSubject::probe(AnyEngine::Jit).is_err() {
        return;
    }
    for seed in 0..256 {
        if let Err(difference) = paceline_testkit::staged::trial(seed) {
            panic!("paceline-testkit staged --seed {seed} --count 1: {difference}");
        }
    }
}
