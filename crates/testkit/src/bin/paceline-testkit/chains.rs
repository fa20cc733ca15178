//! `chains`: random chains of random programs on all ways to run them, which must leave the same:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- chains --count 10000 --runs 64
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- chains --seed 17 --count 1      # that chain again
//! ```
//!
//! A chain on which two ways differ is printed, and the run ends with exit status 1. Chains run in child processes: a chain
//! that ends its process is reported, and the others continue.

use std::time::Duration;

use paceline_testkit::child::Totals;
use paceline_testkit::compare::{ChainSubject, ChainWay, Workshop, compare_chains};
use paceline_testkit::kernel;
use paceline_testkit::random::maps;
use paceline_testkit::say;

use crate::campaign::{Campaign, Seeds};

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) seeds: Seeds,
    /// Packets that each chain is run on
    #[arg(long, default_value_t = 64)]
    runs: usize,
}

/// The ways to run a chain, and what makes chains. The process stays on its CPU.
pub(crate) struct Bench {
    subjects: Vec<ChainSubject>,
    shop: Workshop,
    _pinned: kernel::Pinned,
}

impl Campaign for Options {
    type Bench = Bench;

    fn bench(&self) -> Result<Bench, String> {
        let pinned = kernel::pin();
        let subject = |way| ChainSubject::new(way, pinned.cpu());
        let subjects: Vec<_> = ChainWay::ALL.into_iter().map(subject).collect::<Result<_, _>>()?;
        Ok(Bench {
            subjects: subjects.into_iter().flatten().collect(),
            shop: Workshop::new(maps()),
            _pinned: pinned,
        })
    }

    fn attempt(&self, bench: &mut Bench, seed: u64, totals: &mut Totals) {
        let Some(work) = bench.shop.chain(seed, self.runs) else { return };
        totals.add("chains", 1, seed);
        totals.add("runs", work.work.inputs.len() as u64, seed);
        if let Err(difference) = compare_chains(&mut bench.subjects, &work) {
            totals.add("differences", 1, seed);
            say!("DIFFERENCE seed {seed}: {difference}");
        }
    }

    fn report(&self, totals: &Totals, crashes: &[u64], _: Duration) -> Result<(), String> {
        say!(
            "{} chains from seed {}, {} packets on each of {} ways, {} differences, {} crashes",
            totals.get("chains"),
            self.seeds.first,
            totals.get("runs"),
            ChainWay::ALL.len(),
            totals.get("differences"),
            crashes.len()
        );
        Ok(())
    }
}
