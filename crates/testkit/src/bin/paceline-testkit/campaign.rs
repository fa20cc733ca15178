//! Campaigns that try one seed after the other, in child processes.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use paceline_testkit::child::{self, Totals};

use crate::Outcome;

/// The seeds of a campaign.
#[derive(clap::Args)]
pub(crate) struct Seeds<const COUNT: u64 = 10_000> {
    /// The first seed; the others follow
    #[arg(long = "seed", value_name = "SEED", default_value_t = 0)]
    pub(crate) first: u64,
    /// How many seeds
    #[arg(long, default_value_t = COUNT)]
    pub(crate) count: u64,
    /// Run here and not in a child process
    #[arg(long, hide = true)]
    child: bool,
}

/// What a campaign does with a seed. A seed that ends the process is reported, and the others continue.
pub(crate) trait Campaign {
    /// What all seeds of a process use.
    type Bench;

    /// Number of seeds after which a child sends its counts.
    const TOLD: u64 = 1;

    /// What is counted for seeds that fail.
    const FAILURES: &str = "differences";

    fn bench(&self) -> Result<Self::Bench, String>;

    /// Tries a seed, and counts what becomes of it.
    fn attempt(&self, bench: &mut Self::Bench, seed: u64, totals: &mut Totals);

    /// Tells what became of all, and the seeds on which a child ended.
    fn report(&self, totals: &Totals, crashes: &[u64], time: Duration) -> Result<(), String>;
}

impl<const COUNT: u64> Seeds<COUNT> {
    /// Runs a campaign, or in a child its seeds.
    pub(crate) fn run<C: Campaign>(&self, campaign: &C) -> Outcome {
        let failed = if self.child { self.attempt_all(campaign)? } else { self.supervise(campaign)? };
        Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    fn supervise<C: Campaign>(&self, campaign: &C) -> Result<bool, String> {
        let start = Instant::now();
        let (totals, crashes) = child::run_seeds(self.first, self.count)?;
        campaign.report(&totals, &crashes, start.elapsed())?;
        Ok(!crashes.is_empty() || totals.get(C::FAILURES) != 0)
    }

    fn attempt_all<C: Campaign>(&self, campaign: &C) -> Result<bool, String> {
        let (mut bench, mut totals, mut failed) = (campaign.bench()?, Totals::default(), false);
        for seed in self.first..self.first.saturating_add(self.count) {
            child::begin(seed);
            campaign.attempt(&mut bench, seed, &mut totals);
            failed |= totals.get(C::FAILURES) != 0;
            if seed % C::TOLD == 0 {
                totals.send();
            }
        }
        totals.send();
        child::finish();
        Ok(failed)
    }
}
