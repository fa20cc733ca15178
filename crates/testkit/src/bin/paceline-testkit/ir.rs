//! `ir`: random functions in SSA form, before and after each set of passes:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- ir --count 1000000
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- ir --seed 17 --count 1    # that module again
//! ```
//!
//! Module number n of a run has seed `--seed` + n. It is run on memory of its own, before and after each pass alone, all passes, and all
//! but one. A difference is printed with the module's text, and the run ends with exit status 1.

use std::time::Duration;

use paceline_compiler::ir::Passes;
use paceline_compiler::ir::random::{compare, pass_sets};
use paceline_testkit::child::Totals;
use paceline_testkit::say;

use crate::campaign::{Campaign, Seeds};

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) seeds: Seeds,
    /// Inputs that each module is run on
    #[arg(long, default_value_t = 3)]
    inputs: u64,
    /// Differences that are printed
    #[arg(long, default_value_t = 3)]
    most: u64,
}

/// The sets of passes, and the number of differences so far.
pub(crate) struct Bench {
    sets: Vec<(String, Passes)>,
    differences: u64,
}

impl Campaign for Options {
    type Bench = Bench;

    const TOLD: u64 = 1024;

    fn bench(&self) -> Result<Bench, String> {
        Ok(Bench { sets: pass_sets(), differences: 0 })
    }

    fn attempt(&self, bench: &mut Bench, seed: u64, totals: &mut Totals) {
        totals.add("modules", 1, seed);
        for (name, passes) in &bench.sets {
            if let Err(difference) = compare(seed, passes, self.inputs) {
                totals.add("differences", 1, seed);
                bench.differences += 1;
                if bench.differences <= self.most {
                    say!("DIFFERENCE {name}: {difference}");
                }
            }
        }
    }

    fn report(&self, totals: &Totals, crashes: &[u64], time: Duration) -> Result<(), String> {
        say!(
            "{} modules from seed {}, {} sets of passes: {} differences, {} crashes; {:.1} s",
            totals.get("modules"),
            self.seeds.first,
            pass_sets().len(),
            totals.get("differences"),
            crashes.len(),
            time.as_secs_f64()
        );
        Ok(())
    }
}
