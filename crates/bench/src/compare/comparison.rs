//! The rows of two runs, and which are slower.

use std::error::Error;

use crate::record;
use crate::report::{Figure, Row, Unit};

/// Times below this are not significant, in nanoseconds: as large counts what is smaller, so that differences that are zero
/// can be compared.
pub(super) const RESOLUTION: f64 = 0.1;

/// Mark of a row that is slower.
pub(super) const SLOWER: &str = "SLOWER";

/// Our figure of one row; amounts have equal ones.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ours {
    /// The table and the row.
    pub(super) name: String,
    pub(super) unit: &'static str,
    pub(super) min: f64,
    pub(super) median: f64,
}

impl Ours {
    pub(super) fn new(table: &str, row: &Row) -> Self {
        let (unit, min, median) = match row.figure {
            Figure::Time { ours, .. } => ("ns", ours.min, ours.median),
            Figure::Size { ours, unit, .. } => (size_unit(unit), ours as f64, ours as f64),
        };
        Self { name: format!("{table}: {}", row.name), unit, min, median }
    }
}

pub(super) const fn size_unit(unit: Unit) -> &'static str {
    unit.name()
}

/// Our figures of all rows, one per name: rows of one name differ in what they are compared with.
pub(super) fn ours(text: &str) -> Result<Vec<Ours>, Box<dyn Error>> {
    let mut all: Vec<Ours> = Vec::new();
    for (table, row) in record::json::rows(text)? {
        let ours = Ours::new(&table, &row);
        if all.iter().all(|other| (&other.name, other.unit) != (&ours.name, ours.unit)) {
            all.push(ours);
        }
    }
    Ok(all)
}

/// One row before and after: ratios above 1 are slower, or larger.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) before: Ours,
    pub(super) after: Ours,
    pub(super) by_best: f64,
    pub(super) by_median: f64,
}

impl Change {
    pub(super) fn new(before: Ours, after: Ours) -> Self {
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
    pub(super) changes: Vec<Change>,
    /// Rows of one alone: their names, and the run that has them.
    pub(super) alone: Vec<(String, &'static str)>,
}

impl Comparison {
    pub(super) fn new(before: Vec<Ours>, mut after: Vec<Ours>) -> Self {
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
    pub(super) fn slower(&self, percent: f64) -> usize {
        self.changes.iter().filter(|change| change.word(percent) == SLOWER).count()
    }

    /// Prints the comparison. Returns whether there are rows to compare and none is slower by more than a percentage.
    pub(crate) fn print(&self, percent: f64) -> bool {
        println!("{}", self.text(percent));
        !self.changes.is_empty() && self.slower(percent) == 0
    }

    pub(super) fn text(&self, percent: f64) -> String {
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
    pub(super) fn word(&self, percent: f64) -> &'static str {
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
