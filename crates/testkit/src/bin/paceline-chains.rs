//! Random chains of random programs on all ways to run them, which must leave the same:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-chains -- --count 10000 --runs 64
//! cargo run --release -p paceline-testkit --bin paceline-chains -- --seed 17 --count 1      # that chain again
//! ```
//!
//! A chain that two ways differ on is printed, and the run ends with exit status 1.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command")]

use std::process::ExitCode;

use lexopt::{Arg, ValueExt};
use paceline_testkit::compare::{ChainSubject, ChainWay, Workshop, compare_chains};
use paceline_testkit::kernel;
use paceline_testkit::random::maps;

const HELP: &str = "usage: paceline-chains [--seed N] [--count N] [--runs N]

  --seed N    seed of the first chain (0)
  --count N   chains (10000)
  --runs N    packets each of them is run on (64)";

struct Options {
    seed: u64,
    count: u64,
    runs: usize,
}

fn parse() -> Result<Option<Options>, lexopt::Error> {
    let mut options = Options { seed: 0, count: 10_000, runs: 64 };
    let mut parser = lexopt::Parser::from_env();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("seed") => options.seed = parser.value()?.parse()?,
            Arg::Long("count") => options.count = parser.value()?.parse()?,
            Arg::Long("runs") => options.runs = parser.value()?.parse()?,
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
            ExitCode::FAILURE
        }
        Ok(None) => {
            println!("{HELP}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("paceline-chains: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, String> {
    let pinned = kernel::pin();
    let mut subjects = Vec::new();
    for way in ChainWay::ALL {
        subjects.extend(ChainSubject::new(way, pinned.cpu())?);
    }
    let shop = Workshop::new(maps());
    let (mut chains, mut differences) = (0_u64, 0_u64);
    for seed in options.seed..options.seed.saturating_add(options.count) {
        let Some(work) = shop.chain(seed, options.runs) else { continue };
        chains += 1;
        if let Err(difference) = compare_chains(&mut subjects, &work) {
            differences += 1;
            println!("DIFFERENCE seed {seed}: {difference}");
        }
    }
    let runs = chains * options.runs as u64;
    println!(
        "{chains} chains from seed {}, {runs} packets on each of {} ways, {differences} differences",
        options.seed,
        subjects.len()
    );
    Ok(if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
