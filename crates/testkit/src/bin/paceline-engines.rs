//! Random programs that the verifier accepts, on all engines, which must leave the same:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-engines -- --count 100000 --runs 16
//! cargo run --release -p paceline-testkit --bin paceline-engines -- --seed 17 --count 1 --kernel   # that program again
//! ```
//!
//! Program number n of a run has seed `--seed` + n, so that work can be split by seeds. A program on which engines differ is
//! shrunk and printed as a text case to put below `tests/cases`, and the run ends with exit status 1.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Instant;

use lexopt::{Arg, ValueExt};
use paceline::Engine;
use paceline_isa::disassemble;
use paceline_testkit::compare::{
    Comparator, Comparison, Difference, EngineSubject, KernelSubject, Subject, Work, Workshop,
};
use paceline_testkit::kernel;
use paceline_testkit::random::{Candidate, Purpose, Variety, candidate, maps};
use paceline_testkit::verdict::reason_class;

const HELP: &str = "\
usage: paceline-engines [--seed N] [--count N] [--runs N] [--engines NAME,...] [--bursts] [--kernel] [--stats] [--show] [--most N]

  --seed N       seed of the first program (0)
  --count N      programs (10000)
  --runs N       packets each of them is run on (16)
  --engines ...  of plain, threaded, jit, checked-jit; all that there are
  --bursts       the engines, the plain interpreter left out, once more with packets in bursts of 1 to 64
  --kernel       the kernel as well
  --stats        print what the programs consist of
  --show         print each program, and why the verifier refuses it if it does
  --most N       differences that are shrunk and printed (3)";

struct Options {
    seed: u64,
    count: u64,
    runs: usize,
    engines: Vec<Engine>,
    bursts: bool,
    kernel: bool,
    stats: bool,
    show: bool,
    most: u64,
}

fn main() -> ExitCode {
    match parse().map(|options| options.map(|options| run(&options))) {
        Ok(Some(Ok(code))) => code,
        Ok(Some(Err(error))) => {
            eprintln!("paceline-engines: {error}");
            ExitCode::FAILURE
        }
        Ok(None) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("paceline-engines: {error}");
            ExitCode::from(2)
        }
    }
}

fn parse() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        seed: 0,
        count: 10_000,
        runs: 16,
        engines: Vec::new(),
        bursts: false,
        kernel: false,
        stats: false,
        show: false,
        most: 3,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("seed") => options.seed = parser.value()?.parse()?,
            Arg::Long("count") => options.count = parser.value()?.parse()?,
            Arg::Long("runs") => options.runs = parser.value()?.parse()?,
            Arg::Long("engines") => {
                let names = parser.value()?.string()?;
                options.engines = names
                    .split(',')
                    .map(|name| name.parse::<Engine>().map_err(|e| e.to_string()))
                    .collect::<Result<_, _>>()?;
            }
            Arg::Long("bursts") => options.bursts = true,
            Arg::Long("kernel") => options.kernel = true,
            Arg::Long("stats") => options.stats = true,
            Arg::Long("show") => options.show = true,
            Arg::Long("most") => options.most = parser.value()?.parse()?,
            Arg::Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}

/// The engines asked for, the plain interpreter first: it is what the others are compared with.
fn subjects(options: &Options, cpu: usize) -> Result<Vec<Box<dyn Subject>>, String> {
    let mut engines = options.engines.clone();
    if engines.is_empty() {
        engines = Engine::ALL.into_iter().filter(|&engine| EngineSubject::probe(engine).is_ok()).collect();
    }
    engines.sort_by_key(|engine| *engine != Engine::Plain);
    engines.dedup();
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    for engine in engines {
        EngineSubject::probe(engine).map_err(|error| format!("{engine}: {error}"))?;
        subjects.push(Box::new(EngineSubject::new(engine, cpu)?));
        if options.bursts && engine != Engine::Plain {
            subjects.push(Box::new(EngineSubject::in_bursts(engine, cpu)?));
        }
    }
    if options.kernel {
        subjects.push(Box::new(KernelSubject::new(cpu).map_err(|error| format!("kernel: {error}"))?));
    }
    Ok(subjects)
}

#[derive(Default)]
struct Tally {
    accepted: u64,
    not_valid: u64,
    differences: u64,
    runs: u64,
    variety: Variety,
    /// What engines did not take, by engine and reason: how often, and the first seed.
    refused: BTreeMap<(&'static str, String), (u64, u64)>,
}

fn run(options: &Options) -> Result<ExitCode, String> {
    // Programs can ask which CPU they run on.
    let pinned = kernel::pin();
    let subjects = subjects(options, pinned.cpu())?;
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name()).collect();
    println!("engines: {}", names.join(", "));
    let first = subjects.first().map(|subject| subject.name().parse()).and_then(Result::ok);
    let twin = EngineSubject::twin(first.unwrap_or(Engine::Plain), pinned.cpu())?;
    let mut comparator = Comparator::new(subjects, Box::new(twin));
    let shop = Workshop::new(maps());
    let mut tally = Tally::default();
    let start = Instant::now();
    for seed in options.seed..options.seed.saturating_add(options.count) {
        if options.show {
            show(seed);
        }
        let (candidate, work) = match shop.work(seed, options.runs) {
            Ok(made) => made,
            Err(refusal) => {
                tally.not_valid += 1;
                if options.show
                    && let Some(refusal) = &refusal
                {
                    println!("refused: {refusal}");
                }
                let reason = refusal.map_or_else(|| "a jump is too long".to_owned(), |r| r.cause.to_string());
                tally.refused.entry(("verifier:", reason_class(&reason))).or_insert((0, seed)).0 += 1;
                continue;
            }
        };
        tally.accepted += 1;
        tally.runs += work.inputs.len() as u64;
        if options.stats
            && let Some(main) = work.programs.first()
        {
            tally.variety.add(main.program(), shop.specs(), main);
        }
        match comparator.compare(&work) {
            Comparison::Same(refused) => {
                for (name, reason) in refused {
                    tally.refused.entry((name, reason_class(&reason))).or_insert((0, seed)).0 += 1;
                }
            }
            Comparison::Different(difference) => {
                tally.differences += 1;
                let pure = if comparator.is_pure(&work) {
                    ""
                } else {
                    " (it depends on addresses or random numbers)"
                };
                println!("DIFFERENCE seed {seed}: {}{pure}", headline(&difference));
                if tally.differences <= options.most {
                    print_smallest(&mut comparator, &shop, &candidate, &work, seed);
                }
            }
        }
    }
    report(options, &tally, start.elapsed().as_secs_f64());
    Ok(if tally.differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(seed: u64) {
    println!("seed {seed}:");
    let program = candidate(seed, Purpose::Run).program();
    for line in disassemble(&program.map(|program| program.insns).unwrap_or_default()) {
        println!("    {line}");
    }
}

fn headline(difference: &Difference) -> String {
    let [one, other] = difference.engines;
    match difference.run {
        Some(run) => format!("{one} and {other} on packet {run}"),
        None => format!("{one} and {other} in a map"),
    }
}

fn print_smallest(
    comparator: &mut Comparator,
    shop: &Workshop,
    candidate: &Candidate,
    work: &Work,
    seed: u64,
) {
    let small = comparator.shrink(candidate, work, shop);
    let Some(work) = small.program().and_then(|program| shop.with_program(work, program)) else { return };
    // Fewer packets, if fewer show it.
    let single = (0..work.inputs.len())
        .map(|run| Work { inputs: work.inputs[run..=run].to_vec(), ..work.clone() })
        .find(|single| matches!(comparator.compare(single), Comparison::Different(_)));
    let work = single.unwrap_or(work);
    if let Comparison::Different(difference) = comparator.compare(&work) {
        print!("{}", difference.text);
    }
    println!("{}", comparator.to_case(&format!("seed_{seed}"), &work, shop));
}

fn report(options: &Options, tally: &Tally, seconds: f64) {
    println!(
        "{} programs from seed {}: {} accepted, {} not, {} differences; {} runs on each engine in {seconds:.1} s, {:.0} a second",
        options.count,
        options.seed,
        tally.accepted,
        tally.not_valid,
        tally.differences,
        tally.runs,
        tally.runs as f64 / seconds.max(1e-9)
    );
    for ((name, reason), (count, seed)) in &tally.refused {
        println!("{count:8} x {name} {reason} (seed {seed})");
    }
    if options.stats {
        print!("{}", tally.variety);
    }
}
