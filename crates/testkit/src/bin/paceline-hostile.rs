//! The verifier on instructions that no compiler wrote: it must not panic, must end soon, and what it accepts must run
//! within what it said.
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-hostile -- --count 1000000                    # arbitrary bytes
//! cargo run --release -p paceline-testkit --bin paceline-hostile -- --count 100000 --kernel examples/*.o   # changed objects
//! ```
//!
//! Input n of a run has seed `--seed` + n. Exit status 1 if an input made the verifier panic or a run go wrong.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fastrand::Rng;
use lexopt::{Arg, ValueExt};
use paceline::Object;
use paceline_isa::disassemble;
use paceline_spec::ProgramSpec;
use paceline_testkit::verdict::{Judge, arbitrary, mutated, reason_class};

const HELP: &str = "\
usage: paceline-hostile [--seed N] [--count N] [--runs N] [--limit N] [--kernel] [--show] [OBJECT...]

  --seed N    seed of the first input (0)
  --count N   inputs (100000)
  --runs N    packets each accepted program is run on (2)
  --limit N   instructions that are simulated at most (1000000)
  --kernel    compare verdicts with the kernel's
  --show      print each input
  OBJECT      change instructions of these objects' programs; without any, inputs are arbitrary bytes";

struct Options {
    seed: u64,
    count: u64,
    runs: usize,
    limit: usize,
    kernel: bool,
    show: bool,
    objects: Vec<String>,
}

fn main() -> ExitCode {
    match parse() {
        Ok(Some(options)) => run(&options).unwrap_or_else(|error| {
            eprintln!("paceline-hostile: {error}");
            ExitCode::FAILURE
        }),
        Ok(None) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("paceline-hostile: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options {
        seed: 0,
        count: 100_000,
        runs: 2,
        limit: 1_000_000,
        kernel: false,
        show: false,
        objects: Vec::new(),
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("seed") => options.seed = parser.value()?.parse()?,
            Arg::Long("count") => options.count = parser.value()?.parse()?,
            Arg::Long("runs") => options.runs = parser.value()?.parse()?,
            Arg::Long("limit") => options.limit = parser.value()?.parse()?,
            Arg::Long("kernel") => options.kernel = true,
            Arg::Long("show") => options.show = true,
            Arg::Long("help") => return Ok(None),
            Arg::Value(path) => options.objects.push(path.string()?),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}

/// Programs to change, with the judge over their object's maps; no programs for arbitrary bytes.
struct Source {
    judge: Judge,
    programs: Vec<ProgramSpec>,
}

fn sources(options: &Options) -> Result<Vec<Source>, String> {
    let mut sources = Vec::new();
    for path in &options.objects {
        let object = Object::open(path).map_err(|error| format!("{path}: {error}"))?;
        match Judge::over(object.maps.clone()) {
            Ok(judge) => sources.push(Source { judge, programs: object.programs.clone() }),
            Err(error) => eprintln!("{path} is left out: {error}"),
        }
    }
    sources.retain(|source| !source.programs.is_empty());
    if options.objects.is_empty() {
        sources.push(Source { judge: Judge::new()?, programs: Vec::new() });
    }
    if sources.is_empty() { Err("no object with programs".to_owned()) } else { Ok(sources) }
}

#[derive(Default)]
struct Tally {
    accepted: u64,
    runs: usize,
    compared: u64,
    failures: u64,
    slowest: (Duration, u64),
    both_accept: u64,
    /// By kind: how often, and the first seed.
    disagreements: BTreeMap<String, (u64, u64)>,
}

fn run(options: &Options) -> Result<ExitCode, String> {
    let mut sources = sources(options)?;
    for source in &mut sources {
        source.judge.limit(options.limit);
    }
    let mut tally = Tally::default();
    for seed in options.seed..options.seed.saturating_add(options.count) {
        let mut rng = Rng::with_seed(seed);
        let index = rng.usize(..sources.len());
        let source = &mut sources[index];
        let program = match rng.choice(&source.programs) {
            Some(program) => mutated(program, &mut rng),
            None => arbitrary(&mut rng),
        };
        if options.show {
            show(&program);
        }
        let judged =
            catch_unwind(AssertUnwindSafe(|| judge(&mut tally, options, &mut source.judge, &program, seed)));
        match judged {
            Ok(Ok(())) => continue,
            Ok(Err(wrong)) => println!("FAULT seed {seed}: {wrong}"),
            Err(_) => println!("PANIC seed {seed}"),
        }
        tally.failures += 1;
        show(&program);
    }
    report(options, &tally);
    Ok(if tally.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn judge(
    tally: &mut Tally,
    options: &Options,
    judge: &mut Judge,
    program: &ProgramSpec,
    seed: u64,
) -> Result<(), String> {
    let start = Instant::now();
    let ours = judge.ours(program);
    tally.slowest = tally.slowest.max((start.elapsed(), seed));
    if options.kernel {
        let kernel = judge.kernel(program);
        let kind = match (&ours, kernel) {
            (Ok(_), Err(error)) => format!("only we accept: {}", reason_class(error.reason())),
            (Err(refusal), Ok(())) => {
                format!("only the kernel accepts: {}", reason_class(&refusal.cause.to_string()))
            }
            (Ok(_), Ok(())) => {
                tally.both_accept += 1;
                String::new()
            }
            (Err(_), Err(_)) => String::new(),
        };
        if !kind.is_empty() {
            tally.disagreements.entry(kind).or_insert((0, seed)).0 += 1;
        }
    }
    if ours.is_err() {
        return Ok(());
    }
    tally.accepted += 1;
    let ran = judge.run(program, &mut Rng::with_seed(seed), options.runs)?;
    tally.runs += ran.runs;
    tally.compared += u64::from(ran.compared);
    Ok(())
}

fn report(options: &Options, tally: &Tally) {
    println!(
        "{} inputs from seed {}: {} accepted, {} runs, {} compared with exact states, {} failures; slowest {:.1?} (seed {}), \
         most memory {}",
        options.count,
        options.seed,
        tally.accepted,
        tally.runs,
        tally.compared,
        tally.failures,
        tally.slowest.0,
        tally.slowest.1,
        peak_memory().unwrap_or_else(|| "unknown".to_owned())
    );
    if options.kernel {
        let disagreements: u64 = tally.disagreements.values().map(|(count, _)| count).sum();
        println!("the kernel accepts {} of them as well; {disagreements} disagreements", tally.both_accept);
        let mut kinds: Vec<_> = tally.disagreements.iter().collect();
        kinds.sort_by_key(|(_, (count, _))| std::cmp::Reverse(*count));
        for (kind, (count, seed)) in kinds {
            println!("{count:8} x {kind} (seed {seed})");
        }
    }
}

/// The process's most resident memory, as Linux tells it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| line.strip_prefix("VmHWM:")).map(|rest| rest.trim().to_owned())
}

fn show(program: &ProgramSpec) {
    for line in disassemble(&program.insns) {
        println!("    {line}");
    }
}
