//! Rows of a table as the measurements give them, with their bars.

use crate::measure::Timing;

/// The figure of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Figure {
    /// Time for one unit of work, in nanoseconds.
    Time { ours: Timing, against: Option<Timing> },
    /// An amount.
    Size { ours: u64, against: Option<u64>, unit: Unit },
}

impl Figure {
    /// The same with medians instead of the best rounds.
    fn by_medians(self) -> Self {
        let median = |t: Timing| Timing { min: t.median, ..t };
        match self {
            Self::Time { ours, against } => Self::Time { ours: median(ours), against: against.map(median) },
            size @ Self::Size { .. } => size,
        }
    }
}

/// Unit of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Bytes,
    KiB,
}

impl Unit {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::KiB => "KiB",
        }
    }
}

/// The bar of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Bar {
    /// Minimum ratio.
    Ratio(f64),
    /// Maximum of our figure, in nanoseconds or its unit.
    Most(f64),
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    /// The measured work.
    pub(crate) name: String,
    /// The contender that it is compared with, and its version; empty if none.
    pub(crate) against: String,
    pub(crate) figure: Figure,
    pub(crate) bar: Option<Bar>,
    /// The goal beyond the bar.
    pub(crate) reach: Option<Bar>,
    /// Whether the report's matrix has both figures; the text then has the row only if it has a bar.
    pub(crate) in_matrix: bool,
}

impl Row {
    /// A row without a bar.
    pub(crate) fn new(name: impl Into<String>, against: impl Into<String>, figure: Figure) -> Self {
        Self { name: name.into(), against: against.into(), figure, bar: None, reach: None, in_matrix: false }
    }

    /// The same with a bar.
    pub(crate) fn with_bar(self, bar: Option<Bar>) -> Self {
        Self { bar, ..self }
    }

    /// Whether the bar is met, by the best rounds and by the medians; `None` without a bar.
    pub(crate) fn met(&self) -> Option<bool> {
        self.bar.and_then(|bar| self.meets(bar))
    }

    /// Whether a bar is met, by the best rounds and by the medians; `None` if there is nothing to compare with.
    pub(crate) fn meets(&self, bar: Bar) -> Option<bool> {
        let by_medians = Self { figure: self.figure.by_medians(), ..self.clone() };
        Some(self.best_meets(bar)? && by_medians.best_meets(bar)?)
    }

    /// Whether the best rounds alone meet a bar.
    pub(crate) fn best_meets(&self, bar: Bar) -> Option<bool> {
        match (bar, self.figure) {
            // Rounded as printed, because differences below a hundredth are not significant.
            (Bar::Ratio(least), _) => self.ratio().map(|ratio| hundredths(ratio) >= hundredths(least)),
            (Bar::Most(most), Figure::Time { ours, .. }) => Some(ours.min <= most),
            (Bar::Most(most), Figure::Size { ours, .. }) => Some(ours as f64 <= most),
        }
    }

    /// Ratio of the other's figure to ours: above 1 if ours is faster or smaller.
    pub(crate) fn ratio(&self) -> Option<f64> {
        match self.figure {
            Figure::Time { ours, against } => against.map(|other| ours.ratio(other)),
            Figure::Size { ours, against, .. } => against.map(|other| other as f64 / ours as f64),
        }
    }
}

/// Results of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Report {
    /// Figures in a matrix.
    pub(crate) matrix: Option<Matrix>,
    /// Comparisons.
    pub(crate) rows: Vec<Row>,
}

impl From<Vec<Row>> for Report {
    fn from(rows: Vec<Row>) -> Self {
        Self { rows, ..Self::default() }
    }
}

/// A matrix of figures: one line per contender, one column per workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Matrix {
    pub(crate) columns: Vec<String>,
    /// Contenders, each with a figure per column; columns without a figure may be left out at the end.
    pub(crate) lines: Vec<(String, Vec<Option<Timing>>)>,
}

impl Matrix {
    /// Starts a column.
    pub(crate) fn column(&mut self, name: impl Into<String>) {
        self.columns.push(name.into());
    }

    /// Sets a figure of the last column.
    pub(crate) fn set(&mut self, line: &str, timing: Timing) {
        let index = self.lines.iter().position(|(name, _)| name == line).unwrap_or_else(|| {
            self.lines.push((line.to_owned(), Vec::new()));
            self.lines.len() - 1
        });
        let cells = &mut self.lines[index].1;
        cells.resize(self.columns.len(), None);
        if let Some(last) = cells.last_mut() {
            *last = Some(timing);
        }
    }
}

fn hundredths(ratio: f64) -> f64 {
    (ratio * 100.0).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64, other: f64, bar: Bar) -> Row {
        let timing = |ns| Timing::new(ns, ns);
        let figure = Figure::Time { ours: timing(ours), against: Some(timing(other)) };
        Row { reach: Some(Bar::Ratio(3.0)), ..Row::new("row", "other 1", figure).with_bar(Some(bar)) }
    }

    #[test]
    fn a_ratio_above_one_is_in_our_favor() {
        let faster = row(2.0, 5.0, Bar::Ratio(2.0));
        assert_eq!((faster.ratio(), faster.met()), (Some(2.5), Some(true)));
        assert_eq!(row(2.0, 3.9, Bar::Ratio(2.0)).met(), Some(false));
        assert_eq!(row(2.0, 3.995, Bar::Ratio(2.0)).met(), Some(true), "it is printed as 2.00");
        assert_eq!(row(2.0, 1.0, Bar::Most(2.0)).met(), Some(true));
        assert_eq!(row(2.0, 1.0, Bar::Most(1.9)).met(), Some(false));
    }

    #[test]
    fn a_bar_is_for_medians_too() {
        let steady = Timing::new(3.0, 3.0);
        let figure = Figure::Time { ours: Timing::new(1.0, 2.0), against: Some(steady) };
        let met = |bar| Row::new("row", "other", figure).with_bar(Some(bar)).met();
        assert_eq!((met(Bar::Ratio(1.5)), met(Bar::Ratio(1.6))), (Some(true), Some(false)));
        assert_eq!((met(Bar::Most(2.0)), met(Bar::Most(1.9))), (Some(true), Some(false)));
    }

    #[test]
    fn what_costs_nothing_is_faster_without_bound() {
        for nothing in [0.0, -0.001, 0.001] {
            let row = row(nothing, 3.0, Bar::Ratio(8.0));
            assert_eq!(row.met(), Some(true), "{nothing}");
            assert!(row.ratio().is_some_and(|ratio| ratio.abs() > 1e3), "{nothing}");
        }
        let mixed = Timing::new(-0.001, 2.0);
        let figure = Figure::Time { ours: mixed, against: Some(Timing::new(3.0, 3.0)) };
        let row = Row::new("row", "other", figure).with_bar(Some(Bar::Ratio(2.0)));
        assert_eq!((row.met(), row.ratio()), (Some(false), Some(f64::INFINITY)));
    }
}
