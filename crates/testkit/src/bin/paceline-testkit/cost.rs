//! `cost`: cost of verification and compilation, on expensive programs.

use std::process::ExitCode;
use std::time::Duration;

use paceline_testkit::child::{self, Ended};
use paceline_testkit::cost::{Cost, Excess, Family, excess, growth, measure};
use paceline_testkit::say;
use paceline_verifier::Options as VerifierOptions;

use crate::Outcome;

/// Time limit of a process, including time that it waits for a processor.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Families to measure; all if none is given
    families: Vec<String>,
    /// Seed of the random graphs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many seeds, this one and those that follow
    #[arg(long, default_value_t = 1)]
    count: u64,
    /// Divide all sizes by this
    #[arg(long, default_value_t = 1)]
    divide: usize,
    /// Instructions that the verifier may simulate
    #[arg(long, default_value_t = paceline_verifier::MAX_INSTRUCTIONS)]
    budget: usize,
    /// Measure this one size of one family here and print what it cost
    #[arg(long, hide = true)]
    size: Option<usize>,
}

pub(crate) fn run(options: &Options) -> Outcome {
    let named = |name: &String| Family::named(name).ok_or_else(|| format!("there is no family {name}"));
    let families: Vec<Family> = match options.families[..] {
        [] => Family::ALL.to_vec(),
        ref names => names.iter().map(named).collect::<Result<_, _>>()?,
    };
    if let (Some(size), [family]) = (options.size, &families[..]) {
        let limits = VerifierOptions::default().max_instructions(options.budget);
        say!("{}", measure(&family.item(size, options.seed), &limits)?);
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{:16} {:>7} {:>9} {:>8} {:>9} {:>11} {:>10} {:>7} {:>11} {:>9} {:>9}",
        "family",
        "size",
        "verdict",
        "slots",
        "simulated",
        "steps",
        "verify ms",
        "ns each",
        "threaded ms",
        "jit ms",
        "KiB"
    );
    let mut failures = 0;
    for seed in options.seed..options.seed.saturating_add(options.count) {
        for family in &families {
            failures += check(family, seed, options)?;
        }
    }
    if failures == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    eprintln!("{failures} too much");
    Ok(ExitCode::FAILURE)
}

/// Measures three sizes of a family; returns the number of exceeded bounds.
fn check(family: &Family, seed: u64, options: &Options) -> Result<usize, String> {
    let mut costs = Vec::new();
    let mut failures = 0;
    let mut report = |size: usize, found: Vec<Excess>| {
        found.iter().for_each(|excess| say!("  {} {size} seed {seed}: {excess}", family.name));
        failures += found.len();
    };
    for size in [1, 2, 4].map(|factor| (family.size * factor / options.divide).max(2)) {
        match in_child(family, size, seed, options.budget)? {
            Some(cost) => {
                print(family, size, &cost);
                report(size, excess(&cost));
                costs.push(cost);
            }
            None => {
                let time = PATIENCE.as_nanos() as u64;
                report(size, vec![Excess::Time("everything", time, time)]);
                return Ok(failures);
            }
        }
    }
    if let [small, .., large] = &costs[..] {
        report(family.size, growth(small, large));
    }
    Ok(failures)
}

fn print(family: &Family, size: usize, cost: &Cost) {
    let ms = |time: u64| time as f64 / 1e6;
    let verdict = if cost.accepted { "accepted" } else { "refused" };
    let each = cost.verify / (cost.slots + cost.instructions).max(1);
    say!(
        "{:16} {size:>7} {verdict:>9} {:>8} {:>9} {:>11} {:>10.1} {each:>7} {:>11.1} {:>9.1} {:>9}",
        family.name,
        cost.slots,
        cost.instructions,
        cost.steps,
        ms(cost.verify),
        ms(cost.threaded),
        ms(cost.jit),
        cost.peak
    );
}

/// Measures in a separate process, because memory is that of a process; `None` if it exceeds the time limit.
fn in_child(family: &Family, size: usize, seed: u64, budget: usize) -> Result<Option<Cost>, String> {
    let mut command = child::command()?;
    command.args(["cost", family.name, "--size", &size.to_string(), "--seed", &seed.to_string()]);
    command.args(["--budget", &budget.to_string()]);
    let mut text = String::new();
    let ran = child::run(&mut command, PATIENCE, |line| {
        text.push_str(line);
        true
    })?;
    match ran.ended {
        Ended::Exit(0) => {}
        Ended::Late(_) => return Ok(None),
        _ => return Err(format!("{} of size {size}, seed {seed}: {ran} {}", family.name, ran.errors)),
    }
    text.parse().map(Some).map_err(|error| format!("{error} in {text:?}"))
}
