//! Random chains of random programs on all ways to run them, which must leave the same:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-chains -- --count 10000 --runs 64
//! cargo run --release -p paceline-testkit --bin paceline-chains -- --seed 17 --count 1      # that chain again
//! ```
//!
//! A chain that two ways differ on is printed, and the run ends with exit status 1. Chains run in a child process: one that
//! ends it is told, and the others go on.
#![allow(clippy::print_stderr, reason = "a command")]

use std::process::ExitCode;

use lexopt::{Arg, ValueExt};
use paceline_testkit::child::{self, Totals};
use paceline_testkit::compare::{ChainSubject, ChainWay, Workshop, compare_chains};
use paceline_testkit::kernel;
use paceline_testkit::random::maps;
use paceline_testkit::say;

const HELP: &str = "usage: paceline-chains [--seed N] [--count N] [--runs N]

  --seed N    seed of the first chain (0)
  --count N   chains (10000)
  --runs N    packets each of them is run on (64)
  --child     run here and not in a child process";

struct Options {
    seed: u64,
    count: u64,
    runs: usize,
    child: bool,
}

fn parse() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options { seed: 0, count: 10_000, runs: 64, child: false };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("seed") => options.seed = parser.value()?.parse()?,
            Arg::Long("count") => options.count = parser.value()?.parse()?,
            Arg::Long("runs") => options.runs = parser.value()?.parse()?,
            Arg::Long("child") => options.child = true,
            Arg::Long("help") => return Ok(None),
            other => return Err(other.unexpected()),
        }
    }
    Ok(Some(options))
}

fn main() -> ExitCode {
    match parse().map(|options| options.map(|options| run(&options))) {
        Ok(Some(Ok(code))) => code,
        Ok(Some(Err(error))) => {
            eprintln!("paceline-chains: {error}");
            ExitCode::from(2)
        }
        Ok(None) => {
            say!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("paceline-chains: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, String> {
    child::attach()?;
    if options.child {
        return run_here(options);
    }
    let (totals, crashes) = child::run_seeds(options.seed, options.count)?;
    let (chains, differences) = (totals.get("chains"), totals.get("differences"));
    say!(
        "{chains} chains from seed {}, {} packets on each of {} ways, {differences} differences, {} crashes",
        options.seed,
        totals.get("runs"),
        ChainWay::ALL.len(),
        crashes.len()
    );
    let failed = differences != 0 || !crashes.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_here(options: &Options) -> Result<ExitCode, String> {
    let pinned = kernel::pin();
    let mut subjects = Vec::new();
    for way in ChainWay::ALL {
        subjects.extend(ChainSubject::new(way, pinned.cpu())?);
    }
    let shop = Workshop::new(maps());
    let mut different = false;
    for seed in options.seed..options.seed.saturating_add(options.count) {
        child::begin(seed);
        let Some(work) = shop.chain(seed, options.runs) else { continue };
        let mut totals = Totals::default();
        totals.add("chains", 1, seed);
        totals.add("runs", work.work.inputs.len() as u64, seed);
        if let Err(difference) = compare_chains(&mut subjects, &work) {
            totals.add("differences", 1, seed);
            different = true;
            say!("DIFFERENCE seed {seed}: {difference}");
        }
        totals.send();
    }
    child::finish();
    Ok(if different { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
