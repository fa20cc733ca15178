//! `staged`: bursts with look-ups ahead against bursts without and packets one by one, on programs that insert, delete and evict what the next
//! packets of the burst look up:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- staged --count 100000
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- staged --seed 17 --count 1      # that trial again
//! ```

use std::process::ExitCode;

use paceline_testkit::child::{self, Totals};
use paceline_testkit::{say, staged};

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seed of the first trial; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Trials; 64 of them have bursts of every length
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Run here and not in a child process
    #[arg(long, hide = true)]
    child: bool,
}

pub(crate) fn run(options: &Options) -> Outcome {
    if options.child {
        return run_here(options);
    }
    let (totals, crashes) = child::run_seeds(options.seed, options.count)?;
    let differences = totals.get("differences");
    say!(
        "{} trials from seed {}, {} packets, {differences} differences, {} crashes",
        totals.get("trials"),
        options.seed,
        totals.get("packets"),
        crashes.len()
    );
    let failed = differences != 0 || !crashes.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_here(options: &Options) -> Outcome {
    let mut different = false;
    for seed in options.seed..options.seed.saturating_add(options.count) {
        child::begin(seed);
        let mut totals = Totals::default();
        totals.add("trials", 1, seed);
        match staged::trial(seed) {
            Ok(packets) => totals.add("packets", packets, seed),
            Err(difference) => {
                totals.add("differences", 1, seed);
                different = true;
                say!("DIFFERENCE seed {seed}: {difference}");
            }
        }
        totals.send();
    }
    child::finish();
    Ok(if different { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
