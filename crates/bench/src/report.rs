//! Rows and their output.

use serde_json::{Value, json};

use crate::measure::Timing;

/// The figure of a row.
#[derive(Clone, Copy, Debug)]
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
    const fn name(self) -> &'static str {
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
#[derive(Clone, Debug)]
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

    fn meets(&self, bar: Bar) -> Option<bool> {
        let by_medians = Self { figure: self.figure.by_medians(), ..self.clone() };
        Some(self.best_meets(bar)? && by_medians.best_meets(bar)?)
    }

    fn best_meets(&self, bar: Bar) -> Option<bool> {
        match (bar, self.figure) {
            // Rounded as printed, because differences below a hundredth are not significant.
            (Bar::Ratio(least), _) => self.ratio().map(|ratio| hundredths(ratio) >= hundredths(least)),
            (Bar::Most(most), Figure::Time { ours, .. }) => Some(ours.min <= most),
            (Bar::Most(most), Figure::Size { ours, .. }) => Some(ours as f64 <= most),
        }
    }

    /// Ratio of the other's figure to ours: above 1 if ours is faster or smaller.
    fn ratio(&self) -> Option<f64> {
        match self.figure {
            Figure::Time { ours, against } => against.map(|other| ours.ratio(other)),
            Figure::Size { ours, against, .. } => against.map(|other| other as f64 / ours as f64),
        }
    }

    /// One JSON object. Times are medians, `_min` the best rounds, which the ratio compares.
    pub(crate) fn json(&self, table: &str) -> Value {
        let against = (!self.against.is_empty()).then_some(&self.against);
        let mut object = json!({ "table": table, "row": self.name });
        match self.figure {
            Figure::Time { ours, against: other } => {
                object["ours_ns"] = json!(ours.median);
                object["ours_min_ns"] = json!(ours.min);
                object["against"] = json!(against);
                object["against_ns"] = json!(other.map(|t| t.median));
                object["against_min_ns"] = json!(other.map(|t| t.min));
            }
            Figure::Size { ours, against: other, unit } => {
                let unit = unit.name().to_lowercase();
                object[format!("ours_{unit}")] = json!(ours);
                object["against"] = json!(against);
                object[format!("against_{unit}")] = json!(other);
            }
        }
        object["ratio"] = json!(self.ratio());
        let value = |bar: Option<Bar>| bar.map(|(Bar::Ratio(value) | Bar::Most(value))| value);
        object["bar"] = json!(value(self.bar));
        object["bar_is"] = json!(self.bar.map(|bar| match bar {
            Bar::Ratio(_) => "least ratio",
            Bar::Most(_) => "most of ours",
        }));
        object["reach"] = json!(value(self.reach));
        object["met"] = json!(self.met());
        object
    }

    fn cells(&self) -> [String; 7] {
        let or_none = |text: Option<String>| text.unwrap_or_default();
        let size = |size: u64, unit: Unit| format!("{size} {}", unit.name());
        let (ours, other) = match self.figure {
            Figure::Time { ours, against } => (time(ours), or_none(against.map(time))),
            Figure::Size { ours, against, unit } => {
                (size(ours, unit), or_none(against.map(|other| size(other, unit))))
            }
        };
        let bar = |bar: Bar| match (bar, self.figure) {
            (Bar::Ratio(least), _) => format!("{least:.2}"),
            (Bar::Most(most), Figure::Time { .. }) => {
                let (by, unit) = scale(most);
                format!("{} {unit}", most / by)
            }
            (Bar::Most(most), Figure::Size { unit, .. }) => format!("{most:.0} {}", unit.name()),
        };
        let asked = match (self.bar, self.reach) {
            (Some(asked), Some(reach)) => format!("{} ({})", bar(asked), bar(reach)),
            (None, Some(reach)) => format!("({})", bar(reach)),
            (asked, None) => or_none(asked.map(bar)),
        };
        let is_reached = self.reach.and_then(|reach| self.meets(reach));
        let met = match self.met() {
            Some(true) if is_reached == Some(true) => "yes, reached",
            Some(true) => "yes",
            Some(false) if self.bar.is_some_and(|bar| self.best_meets(bar) == Some(true)) => {
                "best rounds only"
            }
            Some(false) => "NO",
            None => match is_reached {
                Some(true) => "reached",
                Some(false) => "not reached",
                None => "",
            },
        };
        let ratio = or_none(self.ratio().map(|ratio| match ratio {
            // A ratio to a figure near zero is not significant.
            1e3.. => "> 1000".to_owned(),
            ratio => format!("{ratio:.2}"),
        }));
        [self.name.clone(), ours, self.against.clone(), other, ratio, asked, met.to_owned()]
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
#[derive(Clone, Debug, Default)]
pub(crate) struct Matrix {
    pub(crate) columns: Vec<String>,
    lines: Vec<(String, Vec<Option<Timing>>)>,
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

    fn markdown(&self) -> String {
        let mut text = format!("| ns, median (min) | {} |\n", self.columns.join(" | "));
        text += &format!("|---|{}\n", "---|".repeat(self.columns.len()));
        for (name, cells) in &self.lines {
            let cell = |index| match cells.get(index).copied().flatten() {
                Some(Timing { min, median }) => format!("{median:.1} ({min:.1})"),
                None => "-".to_owned(),
            };
            let cells: Vec<String> = (0..self.columns.len()).map(cell).collect();
            text += &format!("| {name} | {} |\n", cells.join(" | "));
        }
        text
    }
}

/// A table as Markdown.
pub(crate) fn markdown(table: &str, report: &Report) -> String {
    let mut text = format!("### {table}\n\n");
    if let Some(matrix) = &report.matrix {
        text += &matrix.markdown();
        text += "\n";
    }
    let told = |row: &&Row| !row.in_matrix || row.bar.is_some();
    if !report.rows.iter().any(|row| told(&row)) {
        return text;
    }
    text += "| | ours, median (min) | against | median (min) | ratio | bar (reach) | met |\n|---|---|---|---|---|---|---|\n";
    for row in report.rows.iter().filter(told) {
        text += &format!("| {} |\n", row.cells().join(" | "));
    }
    text
}

fn time(timing: Timing) -> String {
    let (by, unit) = scale(timing.median);
    let digits = if timing.median / by < 10.0 { 2 } else { 1 };
    let figure = |ns: f64| {
        let text = format!("{:.digits$}", ns / by);
        // Negative by chance.
        if text.trim_start_matches('-').trim_matches(['0', '.']).is_empty() {
            text.trim_start_matches('-').to_owned()
        } else {
            text
        }
    };
    format!("{} ({}) {unit}", figure(timing.median), figure(timing.min))
}

fn hundredths(ratio: f64) -> f64 {
    (ratio * 100.0).round()
}

/// Divisor of nanoseconds, and the resulting unit.
fn scale(nanoseconds: f64) -> (f64, &'static str) {
    match nanoseconds {
        ..1e4 => (1.0, "ns"),
        ..1e7 => (1e3, "us"),
        _ => (1e6, "ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: f64, other: f64, bar: Bar) -> Row {
        let timing = |ns| Timing { min: ns, median: ns };
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
        let steady = Timing { min: 3.0, median: 3.0 };
        let figure = Figure::Time { ours: Timing { min: 1.0, median: 2.0 }, against: Some(steady) };
        let met = |bar| Row::new("row", "other", figure).with_bar(Some(bar)).met();
        assert_eq!((met(Bar::Ratio(1.5)), met(Bar::Ratio(1.6))), (Some(true), Some(false)));
        assert_eq!((met(Bar::Most(2.0)), met(Bar::Most(1.9))), (Some(true), Some(false)));
    }

    #[test]
    fn what_costs_nothing_is_faster_without_bound() {
        for nothing in [0.0, -0.001, 0.001] {
            let row = row(nothing, 3.0, Bar::Ratio(8.0));
            assert_eq!(row.met(), Some(true), "{nothing}");
            let cells = row.cells();
            assert_eq!([&*cells[1], &*cells[4], &*cells[6]], ["0.00 (0.00) ns", "> 1000", "yes, reached"]);
        }
        let mixed = Timing { min: -0.001, median: 2.0 };
        let figure = Figure::Time { ours: mixed, against: Some(Timing { min: 3.0, median: 3.0 }) };
        let row = Row::new("row", "other", figure).with_bar(Some(Bar::Ratio(2.0)));
        assert_eq!((row.met(), row.json("chains")["ratio"].is_null()), (Some(false), true));
    }

    #[test]
    fn objects_have_what_readers_rely_on() {
        let object = row(2.0, 5.0, Bar::Ratio(2.0)).json("engines");
        let expected = json!({
            "table": "engines", "row": "row", "ours_ns": 2.0, "against": "other 1", "against_ns": 5.0,
            "ratio": 2.5, "bar": 2.0, "reach": 3.0, "met": true,
        });
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&object[key], value, "{key}");
        }
    }

    #[test]
    fn rows_without_a_bar_stand_in_the_matrix_alone() {
        let mut matrix = Matrix::default();
        matrix.column("W1, hit");
        matrix.set("jit", Timing { min: 1.0, median: 2.0 });
        let plain = Row::new("only a figure", "", Figure::Size { ours: 1, against: None, unit: Unit::KiB });
        let in_matrix = Row { in_matrix: true, ..plain.clone() };
        let report = Report { matrix: Some(matrix), rows: vec![in_matrix, row(1.0, 1.0, Bar::Ratio(1.0))] };
        let text = markdown("engines", &report);
        assert!(text.contains("| jit | 2.0 (1.0) |") && text.contains("| row |"), "{text}");
        assert!(!text.contains("only a figure"), "{text}");
        assert!(markdown("engines", &vec![plain].into()).contains("only a figure"));
    }
}
