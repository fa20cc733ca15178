//! `chains`: random chains of random programs on all ways to run them, which must leave the same:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- chains --count 10000 --runs 64
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- chains --seed 17 --count 1      # that chain again
//! ```
//!
//! A chain on which two ways differ is printed, and the run ends with exit status 1. Chains run in child processes: a chain
//! that ends its process is reported, and the others continue.

use std::process::ExitCode;

use paceline_testkit::child::{self, Totals};
use paceline_testkit::compare::{ChainSubject, ChainWay, Workshop, compare_chains};
use paceline_testkit::kernel;
use paceline_testkit::random::maps;
use paceline_testkit::say;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seed of the first chain; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Chains
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Packets that each chain is run on
    #[arg(long, default_value_t = 64)]
    runs: usize,
    /// Run here and not in a child process
    #[arg(long, hide = true)]
    child: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
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

fn run_here(options: &Options) -> Outcome {
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
