//! Comparison of our figures before and after a change.

mod builds;
mod comparison;

use std::error::Error;
use std::fs;
use std::path::Path;

use comparison::{Ours, ours};

pub(crate) use builds::builds;

pub(crate) use comparison::Comparison;

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
