//! Campaigns over seeds: each seed is a job, and children send counts.

use std::process::Command;
use std::time::Duration;

use super::jobs::{Event, Jobs, supervise};
use super::process::{Ended, command, run};
use super::totals::Totals;
use crate::say;

/// Time limit of a child for one seed.
const LIMIT: Duration = Duration::from_secs(60);

/// Command for this program with its own arguments and additional ones, as a child.
fn with(arguments: &[String]) -> Result<Command, String> {
    let mut command = command()?;
    command.args(std::env::args_os().skip(1)).args(arguments).arg("--child");
    Ok(command)
}

/// Runs seeds in children with this program's arguments, their own `--seed` and `--count`, and `--child`. Prints their
/// output. Returns the sum of their counts, and the seeds on which a child ended.
///
/// # Errors
/// As [`supervise`].
pub fn run_seeds(first: u64, count: u64) -> Result<(Totals, Vec<u64>), String> {
    let end = first.saturating_add(count);
    let (mut totals, mut crashes) = (Totals::default(), Vec::new());
    let seeds = |first: u64| {
        let range = ["--seed".to_owned(), first.to_string(), "--count".to_owned(), (end - first).to_string()];
        with(&range)
    };
    supervise(Jobs { first, end, limit: LIMIT }, seeds, |event| {
        match event {
            Event::Line(line) => {
                if let Err(line) = totals.receive(&line) {
                    say!("{line}");
                }
            }
            Event::Failed(seed, ran) => {
                say!("CRASH seed {seed}: {ran}");
                crashes.push(seed);
            }
        }
        true
    })?;
    Ok((totals, crashes))
}

/// Whether a child with this program's arguments and additional ones ends prematurely.
///
/// # Errors
/// The child cannot be started.
pub fn crashes(arguments: &[String]) -> Result<bool, String> {
    let ran = run(&mut with(arguments)?, LIMIT, |_| true)?;
    Ok(!matches!(ran.ended, Ended::Exit(0 | 1)))
}
