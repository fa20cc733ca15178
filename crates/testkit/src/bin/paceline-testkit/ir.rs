//! `ir`: random functions in SSA form, before and after each set of passes:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- ir --count 1000000
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- ir --seed 17 --count 1    # that module again
//! ```
//!
//! Module number n of a run has seed `--seed` + n. It is run on memory of its own, before and after each pass alone, all passes, and all
//! but one. A difference is printed with the module's text, and the run ends with exit status 1.

use std::process::ExitCode;
use std::time::Instant;

use paceline_compiler::ir::Passes;
use paceline_compiler::ir::random::{compare, pass_sets};
use paceline_testkit::child::{self, Totals};
use paceline_testkit::say;

use crate::Outcome;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Seed of the first module; the others follow
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Modules
    #[arg(long, default_value_t = 10_000)]
    count: u64,
    /// Inputs that each module is run on
    #[arg(long, default_value_t = 3)]
    inputs: u64,
    /// Differences that are printed
    #[arg(long, default_value_t = 3)]
    most: u64,
    /// Run here and not in a child process
    #[arg(long, hide = true)]
    child: bool,
}

/// Number of seeds after which a child sends its counts.
const TOLD: u64 = 1024;

pub(crate) fn run(options: &Options) -> Outcome {
    let sets = pass_sets();
    if options.child {
        return Ok(run_here(options, &sets));
    }
    let start = Instant::now();
    let (totals, crashes) = child::run_seeds(options.seed, options.count)?;
    let (differences, modules) = (totals.get("differences"), totals.get("modules"));
    say!(
        "{modules} modules from seed {}, {} sets of passes: {differences} differences, {} crashes; {:.1} s",
        options.seed,
        sets.len(),
        crashes.len(),
        start.elapsed().as_secs_f64()
    );
    let failed = differences != 0 || !crashes.is_empty();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn run_here(options: &Options, sets: &[(String, Passes)]) -> ExitCode {
    let mut totals = Totals::default();
    let mut differences = 0;
    for seed in options.seed..options.seed.saturating_add(options.count) {
        child::begin(seed);
        totals.add("modules", 1, seed);
        for (name, passes) in sets {
            if let Err(difference) = compare(seed, passes, options.inputs) {
                totals.add("differences", 1, seed);
                differences += 1;
                if differences <= options.most {
                    say!("DIFFERENCE {name}: {difference}");
                }
            }
        }
        if seed % TOLD == 0 {
            totals.send();
        }
    }
    totals.send();
    child::finish();
    if differences == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
