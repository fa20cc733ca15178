//! The figures of one workload with one set of packets.

use paceline::Engine;

use super::contender::{Contender, Role};
use crate::measure::Timing;
use crate::report::{Bar, Figure, Report, Row};

/// One workload with one set of packets.
pub(super) struct Column {
    pub(super) title: String,
    pub(super) hit: bool,
    pub(super) bars: Bars,
}

/// The bar of an engine against another, with the packet in the cache or not, and the goal beyond it.
pub(super) type Bars = fn(Engine, Role, bool) -> (Option<Bar>, Option<Bar>);

impl Column {
    /// Adds the figures of this column, and compares each of our engines with each other contender.
    pub(super) fn report(&self, results: &[(&Contender<'_>, Timing)], report: &mut Report) {
        let matrix = report.matrix.get_or_insert_default();
        matrix.column(&self.title);
        for (contender, timing) in results {
            matrix.set(&contender.name, *timing);
        }
        for (contender, ours) in results {
            let Role::Ours(engine) = contender.role else { continue };
            for (other, against) in results.iter().filter(|(other, _)| !matches!(other.role, Role::Ours(_))) {
                let figure = Figure::Time { ours: *ours, against: Some(*against) };
                let (bar, reach) = (self.bars)(engine, other.role, self.hit);
                let name = format!("{}, {}", self.title, contender.name);
                report.rows.push(Row { bar, reach, in_matrix: true, ..Row::new(name, &other.name, figure) });
            }
        }
    }
}
