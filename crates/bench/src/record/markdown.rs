//! Records as Markdown.

use super::{Entry, Record, Run};
use crate::measure::Timing;
use crate::report::{Bar, Figure, Matrix, Row, Unit};

/// Head of a table of rows.
const ROWS_HEAD: &str = "\
| | ours, median (min) | against | median (min) | ratio | bar (reach) | met |
|---|---|---|---|---|---|---|
";

impl Record {
    /// The matrix, and the rows that the matrix does not have or that have a bar.
    pub(crate) fn markdown(&self) -> String {
        let mut text = self.matrix(&[]).unwrap_or_default();
        let mut shown = self.entries.iter().filter(|entry| !entry.row.in_matrix || entry.row.bar.is_some());
        let Some(first) = shown.next() else { return text };
        if !text.is_empty() {
            text.push('\n');
        }
        text += ROWS_HEAD;
        for entry in std::iter::once(first).chain(shown) {
            text += &format!("| {} |\n", entry.cells().join(" | "));
        }
        text
    }

    /// Columns of the matrix, all if none is named.
    pub(crate) fn matrix(&self, columns: &[&str]) -> Option<String> {
        self.matrix.as_ref().map(|all| matrix(all, columns))
    }
}

impl Run {
    /// One line about the machine, the compiler, the day and the commit.
    pub(crate) fn description(&self) -> String {
        let optimized = if self.optimized { "optimized" } else { "NOT OPTIMIZED" };
        let commit = self.commit.as_ref().map(|commit| format!(", at {commit}")).unwrap_or_default();
        let dirty = if self.dirty == Some(true) { " with changes" } else { "" };
        format!(
            "{}, core {} of {}, Linux {}, {}, {optimized}, on {}{commit}{dirty}",
            self.machine, self.core, self.cores, self.kernel, self.rustc, self.date
        )
    }
}

impl Entry {
    /// Name, our figure, the other contender and its figure, ratio, bar and goal, outcome.
    pub(crate) fn cells(&self) -> [String; 7] {
        let row = &self.row;
        let (ours, other) = figures(row.figure);
        let bar = |asked: Bar| bar(asked, row.figure);
        let asked = match (row.bar, row.reach) {
            (Some(asked), Some(reach)) => format!("{} ({})", bar(asked), bar(reach)),
            (None, Some(reach)) => format!("({})", bar(reach)),
            (asked, None) => asked.map(bar).unwrap_or_default(),
        };
        [row.name.clone(), ours, row.against.clone(), other, self.ratio(), asked, self.outcome().to_owned()]
    }

    /// A ratio to a figure near zero is not significant.
    fn ratio(&self) -> String {
        match self.ratio {
            Some(ratio) if ratio < 1e3 => format!("{ratio:.2}"),
            None if !has_other(&self.row) => String::new(),
            _ => "> 1000".to_owned(),
        }
    }

    fn outcome(&self) -> &'static str {
        match (self.met, self.reached) {
            (Some(true), Some(true)) => "yes, reached",
            (Some(true), _) => "yes",
            (Some(false), _) if self.met_by_best == Some(true) => "best rounds only",
            (Some(false), _) => "NO",
            (None, Some(true)) => "reached",
            (None, Some(false)) => "not reached",
            (None, None) => "",
        }
    }
}

const fn has_other(row: &Row) -> bool {
    matches!(row.figure, Figure::Time { against: Some(_), .. } | Figure::Size { against: Some(_), .. })
}

fn figures(figure: Figure) -> (String, String) {
    let size = |size: u64, unit: Unit| format!("{size} {}", unit.name());
    match figure {
        Figure::Time { ours, against } => (time(ours), against.map(time).unwrap_or_default()),
        Figure::Size { ours, against, unit } => {
            (size(ours, unit), against.map(|other| size(other, unit)).unwrap_or_default())
        }
    }
}

fn bar(asked: Bar, figure: Figure) -> String {
    match (asked, figure) {
        (Bar::Ratio(least), _) => format!("{least:.2}"),
        (Bar::Most(most), Figure::Time { .. }) => {
            let (by, unit) = scale(most);
            format!("{} {unit}", most / by)
        }
        (Bar::Most(most), Figure::Size { unit, .. }) => format!("{most:.0} {}", unit.name()),
    }
}

fn matrix(matrix: &Matrix, columns: &[&str]) -> String {
    let is_shown = |name: &str| columns.is_empty() || columns.contains(&name);
    let shown: Vec<_> = matrix.columns.iter().enumerate().filter(|(_, name)| is_shown(name)).collect();
    let names: Vec<&str> = shown.iter().map(|(_, name)| name.as_str()).collect();
    let mut text = format!("| ns, median (min) | {} |\n", names.join(" | "));
    text += &format!("|---|{}\n", "---|".repeat(names.len()));
    for (name, cells) in &matrix.lines {
        let cell = |index: usize| match cells.get(index).copied().flatten() {
            Some(Timing { min, median, .. }) => format!("{median:.1} ({min:.1})"),
            None => "-".to_owned(),
        };
        let cells: Vec<String> = shown.iter().map(|(index, _)| cell(*index)).collect();
        text += &format!("| {name} | {} |\n", cells.join(" | "));
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

/// Divisor of nanoseconds, and the resulting unit.
fn scale(nanoseconds: f64) -> (f64, &'static str) {
    match nanoseconds {
        ..1e4 => (1.0, "ns"),
        ..1e7 => (1e3, "us"),
        _ => (1e6, "ms"),
    }
}
