//! Rows, and how they are printed.

use serde_json::json;

use crate::measure::Timing;

/// What a row compares.
#[derive(Clone, Debug)]
pub(crate) enum Figure {
    /// Time for one unit of work, in nanoseconds.
    Time {
        ours: Timing,
        against: Option<Timing>,
        /// The most that our median may be.
        bar: Option<f64>,
    },
    /// Memory in KiB: ours must not be more than the bar.
    Memory { ours: u64, against: Option<u64>, bar: Option<u64> },
}

/// One row of a table.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// What is measured.
    pub(crate) name: String,
    /// What it is compared with; empty if with nothing.
    pub(crate) against: String,
    pub(crate) figure: Figure,
}

impl Row {
    /// Whether the bar is met; `None` if there is none.
    pub(crate) fn met(&self) -> Option<bool> {
        match self.figure {
            Figure::Time { ours, bar, .. } => bar.map(|bar| ours.median <= bar),
            Figure::Memory { ours, bar, .. } => bar.map(|bar| ours <= bar),
        }
    }

    /// One object. Times are medians, `_min` the best rounds; a ratio above 1 means that ours is faster or smaller.
    pub(crate) fn json(&self, table: &str) -> serde_json::Value {
        let against = (!self.against.is_empty()).then_some(&self.against);
        match &self.figure {
            Figure::Time { ours, against: other, bar } => json!({
                "table": table, "row": self.name,
                "ours_ns": ours.median, "ours_min_ns": ours.min,
                "against": against, "against_ns": other.map(|t| t.median), "against_min_ns": other.map(|t| t.min),
                "ratio": other.map(|t| t.median / ours.median),
                "bar": bar, "met": self.met(),
            }),
            Figure::Memory { ours, against: other, bar } => json!({
                "table": table, "row": self.name,
                "ours_kib": ours, "against": against, "against_kib": other,
                "ratio": other.map(|kib| kib as f64 / *ours as f64),
                "bar": bar, "met": self.met(),
            }),
        }
    }
}

/// The rows as a Markdown table.
pub(crate) fn markdown(table: &str, rows: &[Row]) -> String {
    let mut text = format!(
        "### {table}\n\n| | ours, median (min) | million/s | against | median (min) | ratio | bar | met |\n\
         |---|---|---|---|---|---|---|---|\n"
    );
    for row in rows {
        let cells = cells(row);
        text += &format!("| {} |\n", cells.join(" | "));
    }
    text
}

fn cells(row: &Row) -> [String; 8] {
    let time = |t: Timing| format!("{:.1} ({:.1}) ns", t.median, t.min);
    let or_none = |text: Option<String>| text.unwrap_or_default();
    let (ours, rate, other, ratio, bar) = match row.figure {
        Figure::Time { ours, against, bar } => (
            time(ours),
            format!("{:.1}", 1e3 / ours.median),
            or_none(against.map(time)),
            or_none(against.map(|t| format!("{:.2}", t.median / ours.median))),
            or_none(bar.map(|bar| format!("{bar:.0} ns"))),
        ),
        Figure::Memory { ours, against, bar } => (
            format!("{ours} KiB"),
            String::new(),
            or_none(against.map(|kib| format!("{kib} KiB"))),
            or_none(against.map(|kib| format!("{:.2}", kib as f64 / ours as f64))),
            or_none(bar.map(|bar| format!("{bar} KiB"))),
        ),
    };
    let met = match row.met() {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "",
    };
    [row.name.clone(), ours, rate, row.against.clone(), other, ratio, bar, met.to_owned()]
}
