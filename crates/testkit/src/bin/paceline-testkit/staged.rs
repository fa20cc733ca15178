//! `staged`: bursts with look-ups ahead against bursts without and packets one by one, on programs that insert, delete and evict what the next
//! packets of the burst look up:
//!
//! ```sh
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- staged --count 100000
//! cargo run --release -p paceline-testkit --bin paceline-testkit -- staged --seed 17 --count 1      # that trial again
//! ```

use std::time::Duration;

use paceline_testkit::child::Totals;
use paceline_testkit::{say, staged};

use crate::campaign::{Campaign, Seeds};

#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(flatten)]
    pub(crate) seeds: Seeds,
}

impl Campaign for Options {
    type Bench = ();

    fn bench(&self) -> Result<(), String> {
        Ok(())
    }

    fn attempt(&self, (): &mut (), seed: u64, totals: &mut Totals) {
        totals.add("trials", 1, seed);
        match staged::trial(seed) {
            Ok(packets) => totals.add("packets", packets, seed),
            Err(difference) => {
                totals.add("differences", 1, seed);
                say!("DIFFERENCE seed {seed}: {difference}");
            }
        }
    }

    fn report(&self, totals: &Totals, crashes: &[u64], _: Duration) -> Result<(), String> {
        say!(
            "{} trials from seed {}, {} packets, {} differences, {} crashes",
            totals.get("trials"),
            self.seeds.first,
            totals.get("packets"),
            totals.get("differences"),
            crashes.len()
        );
        Ok(())
    }
}
