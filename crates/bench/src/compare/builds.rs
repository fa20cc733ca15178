//! Comparison of two builds, whose processes run by turns, so that a slow spell of the machine meets both.

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};

use super::comparison::{Comparison, Ours, ours};
use crate::settings::Settings;

/// Runs another build and this one, a round of each table after the other, and compares the best and the median of the
/// rounds. Each process chooses its core by itself ([`crate::machine::pin`]).
///
/// # Errors
/// A process that fails.
pub(crate) fn builds(
    against: &Path,
    tables: &[String],
    rounds: usize,
    settings: Settings,
) -> Result<Comparison, Box<dyn Error>> {
    let this = std::env::current_exe()?;
    let mut found = [Vec::new(), Vec::new()];
    for table in tables {
        for round in 0..rounds {
            // The order changes each round, so that neither always follows the other.
            for turn in [round % 2, 1 - round % 2] {
                let build = [against, &this][turn];
                eprintln!("round {} of {rounds}: {table}, {}", round + 1, ["before", "after"][turn]);
                found[turn].extend(once(build, table, settings)?);
            }
        }
    }
    let [before, after] = found;
    Ok(Comparison::new(over_rounds(before), over_rounds(after)))
}

/// One run of a table.
fn once(build: &Path, table: &str, settings: Settings) -> Result<Vec<Ours>, Box<dyn Error>> {
    let named = |error: &dyn std::fmt::Display| format!("{} {table}: {error}", build.display());
    let mut command = Command::new(build);
    command.args([table, "--json"]).args(settings.smoke.then_some("--smoke")).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| named(&error))?;
    if !output.status.success() {
        return Err(named(&output.status).into());
    }
    ours(&String::from_utf8(output.stdout)?).map_err(|error| named(&error).into())
}

/// The best of the best rounds, and the median of the medians, of each row.
fn over_rounds(found: Vec<Ours>) -> Vec<Ours> {
    let mut rows: Vec<(Ours, Vec<f64>)> = Vec::new();
    for ours in found {
        match rows.iter_mut().find(|(row, _)| (&row.name, row.unit) == (&ours.name, ours.unit)) {
            Some((row, medians)) => {
                row.min = row.min.min(ours.min);
                medians.push(ours.median);
            }
            None => {
                let medians = vec![ours.median];
                rows.push((ours, medians));
            }
        }
    }
    rows.into_iter().map(|(row, medians)| Ours { median: median(medians), ..row }).collect()
}

/// The median of at least one figure.
fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_give_the_best_and_the_median() {
        let row = |name: &str, min, median| Ours { name: name.to_owned(), unit: "ns", min, median };
        let found = vec![row("a", 2.0, 5.0), row("b", 1.0, 1.0), row("a", 1.0, 9.0), row("a", 3.0, 4.0)];
        assert_eq!(over_rounds(found), [row("a", 1.0, 5.0), row("b", 1.0, 1.0)]);
    }
}
