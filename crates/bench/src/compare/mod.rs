//! Comparison of our figures before and after a change.

mod builds;

use std::error::Error;
use std::fs;
use std::path::Path;

pub(crate) use builds::builds;

use crate::record;
use crate::report::{Figure, Row, Unit};

/// Times below this are not significant, in nanoseconds: as large counts what is smaller, so that differences that are zero
/// can be compared.
const RESOLUTION: f64 = 0.1;

/// Mark of a row that is slower.
const SLOWER: &str = "SLOWER";

/// Our figure of one row; amounts have equal ones.
#[derive(Clone, Debug, PartialEq)]
struct Ours {
    /// The table and the row.
    name: String,
    unit: &'static str,
    min: f64,
    median: f64,
}

impl Ours {
    fn new(table: &str, row: &Row) -> Self {
        let (unit, min, median) = match row.figure {
            Figure::Time { ours, .. } => ("ns", ours.min, ours.median),
            Figure::Size { ours, unit, .. } => (size_unit(unit), ours as f64, ours as f64),
        };
        Self { name: format!("{table}: {}", row.name), unit, min, median }
    }
}

const fn size_unit(unit: Unit) -> &'static str {
    unit.name()
}

/// Our figures of all rows, one per name: rows of one name differ in what they are compared with.
fn ours(text: &str) -> Result<Vec<Ours>, Box<dyn Error>> {
    let mut all: Vec<Ours> = Vec::new();
    for (table, row) in record::rows(text)? {
        let ours = Ours::new(&table, &row);
        if all.iter().all(|other| (&other.name, other.unit) != (&ours.name, ours.unit)) {
            all.push(ours);
        }
    }
    Ok(all)
}

/// One row before and after: ratios above 1 are slower, or larger.
#[derive(Clone, Debug)]
struct Change {
    before: Ours,
    after: Ours,
    by_best: f64,
    by_median: f64,
}

impl Change {
    fn new(before: Ours, after: Ours) -> Self {
        let least = if before.unit == "ns" { RESOLUTION } else { 1.0 };
        let ratio = |before: f64, after: f64| after.max(least) / before.max(least);
        let (by_best, by_median) = (ratio(before.min, after.min), ratio(before.median, after.median));
        Self { before, after, by_best, by_median }
    }
}

/// The rows of two runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comparison {
    /// Rows of both, the slowest first.
    changes: Vec<Change>,
    /// Rows of one alone: their names, and the run that has them.
    alone: Vec<(String, &'static str)>,
}

/// Compares two files: records, or what `--json` printed.
///
/// # Errors
/// Input, and the line that is no row.
pub(crate) fn files(before: &Path, after: &Path) -> Result<Comparison, Box<dyn Error>> {
    let read = |file: &Path| -> Result<Vec<Ours>, Box<dyn Error>> {
        let named = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
        ours(&fs::read_to_string(file).map_err(|error| named(&error))?).map_err(|error| named(&error).into())
    };
    Ok(Comparison::new(read(before)?, read(after)?))
}

impl Comparison {
    fn new(before: Vec<Ours>, mut after: Vec<Ours>) -> Self {
        let mut comparison = Self::default();
        for before in before {
            let same = |after: &Ours| (&after.name, after.unit) == (&before.name, before.unit);
            match after.iter().position(same) {
                Some(index) => comparison.changes.push(Change::new(before, after.remove(index))),
                None => comparison.alone.push((before.name, "before")),
            }
        }
        comparison.alone.extend(after.into_iter().map(|after| (after.name, "after")));
        comparison.changes.sort_by(|a, b| b.by_best.total_cmp(&a.by_best));
        comparison
    }

    /// Number of rows that are slower by more than this percentage.
    fn slower(&self, percent: f64) -> usize {
        self.changes.iter().filter(|change| change.word(percent) == SLOWER).count()
    }

    /// Prints the comparison. Returns whether there are rows to compare and none is slower by more than a percentage.
    pub(crate) fn print(&self, percent: f64) -> bool {
        println!("{}", self.text(percent));
        !self.changes.is_empty() && self.slower(percent) == 0
    }

    fn text(&self, percent: f64) -> String {
        let mut text =
            "| | before, best (median) | after | ratio | of medians | |\n|---|---|---|---|---|---|\n"
                .to_owned();
        for change in &self.changes {
            let Change { before, after, by_best, by_median } = change;
            let figure = |ours: &Ours| format!("{:.2} ({:.2}) {}", ours.min, ours.median, ours.unit);
            text += &format!(
                "| {} | {} | {} | {by_best:.3} | {by_median:.3} | {} |\n",
                before.name,
                figure(before),
                figure(after),
                change.word(percent)
            );
        }
        for (name, run) in &self.alone {
            text += &format!("only {run}: {name}\n");
        }
        let (all, slower) = (self.changes.len(), self.slower(percent));
        text + &format!("\n{slower} of {all} rows are slower by more than {percent}%")
    }
}

impl Change {
    /// A row is slower if best rounds and medians both are: one lucky round moves the best, a slow spell of the machine the
    /// medians.
    fn word(&self, percent: f64) -> &'static str {
        let (most, least) = (1.0 + percent / 100.0, 1.0 - percent / 100.0);
        match (self.by_best > most, self.by_median > most) {
            (true, true) => SLOWER,
            (true, false) => "best rounds only",
            (false, true) => "medians only",
            (false, false) if self.by_best < least && self.by_median < least => "faster",
            (false, false) => "",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As commits before records print it.
    fn line(row: &str, median: f64, min: f64) -> String {
        format!(
            r#"{{"table":"maps","row":"{row}","ours_ns":{median},"ours_min_ns":{min},"against":null,"against_ns":null,"against_min_ns":null,"ratio":null,"bar":1.0,"bar_is":"most of ours","reach":0.5,"met":true}}"#
        )
    }

    fn compared(before: &[String], after: &[String]) -> Comparison {
        Comparison::new(ours(&before.join("\n")).unwrap(), ours(&after.join("\n")).unwrap())
    }

    #[test]
    fn rows_slower_than_the_threshold_are_told() {
        let rows = |rows: [(&str, f64, f64); 5]| rows.map(|(row, median, min)| line(row, median, min));
        let before = ["same", "slow", "noisy", "lucky", "fast"].map(|row| (row, 12.0, 10.0));
        let after = [
            ("noisy", 15.0, 10.1),
            ("same", 12.2, 10.2),
            ("slow", 12.4, 10.3),
            ("lucky", 12.0, 11.0),
            ("fast", 11.0, 9.0),
        ];
        let comparison = compared(&rows(before), &rows(after));
        assert_eq!((comparison.slower(2.0), comparison.slower(3.5), comparison.slower(1.5)), (1, 0, 2));
        let words: Vec<_> = comparison.changes.iter().map(|c| (&c.before.name[6..], c.word(2.0))).collect();
        let slowest_first =
            [("lucky", "best rounds only"), ("slow", "SLOWER"), ("same", ""), ("noisy", "medians only")];
        assert_eq!(words[..4], slowest_first);
        assert_eq!(words[4], ("fast", "faster"));
        assert!(!comparison.print(2.0) && comparison.print(3.5));
        assert!(comparison.text(2.0).ends_with("1 of 5 rows are slower by more than 2%"));
        assert!(!compared(&[], &[]).print(2.0), "nothing was compared");
    }

    #[test]
    fn rows_of_one_run_alone_are_named() {
        let comparison = compared(
            &[line("a", 1.0, 1.0), line("b", 1.0, 1.0)],
            &[line("b", 1.0, 1.0), line("c", 1.0, 1.0)],
        );
        assert_eq!(comparison.alone, [("maps: a".to_owned(), "before"), ("maps: c".to_owned(), "after")]);
        assert_eq!(comparison.changes.len(), 1);
    }

    #[test]
    fn figures_near_zero_are_equal() {
        let comparison = compared(&[line("a", 0.0, -0.01)], &[line("a", 0.09, 0.05)]);
        assert_eq!((comparison.changes[0].by_best, comparison.changes[0].by_median), (1.0, 1.0));
    }

    #[test]
    fn amounts_are_compared_too() {
        let size = |bytes: u64| vec![format!(r#"{{"table":"maps","row":"memory","ours_bytes":{bytes}}}"#)];
        assert_eq!(compared(&size(100), &size(150)).changes[0].by_best, 1.5);
    }
}
