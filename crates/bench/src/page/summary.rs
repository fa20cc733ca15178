//! The summary: per table the bars that are met, and by name those that are not.

use crate::record::{Entry, Record};

/// The table, followed by the rows whose bars are not met.
pub(super) fn markdown(records: &[Record]) -> String {
    let mut text = "| table | rows with a bar | met | best rounds only | not met | goals reached | date |\n\
                    |---|---|---|---|---|---|---|\n"
        .to_owned();
    for record in records {
        text += &line(record);
    }
    let missed: String = records.iter().flat_map(missed).collect();
    if !missed.is_empty() {
        text += &format!("\nBars that are not met:\n\n{missed}");
    }
    text
}

fn line(record: &Record) -> String {
    let count = |is: fn(&Entry) -> bool| record.entries.iter().filter(|entry| is(entry)).count();
    let table = &record.table;
    format!(
        "| [{table}](#{table}) | {} | {} | {} | {} | {} of {} | {} |\n",
        count(|entry| entry.met.is_some()),
        count(|entry| entry.met == Some(true)),
        count(is_missed_by_medians),
        count(|entry| entry.met == Some(false) && !is_missed_by_medians(entry)),
        count(|entry| entry.reached == Some(true)),
        count(|entry| entry.reached.is_some()),
        record.run.date,
    )
}

fn is_missed_by_medians(entry: &Entry) -> bool {
    entry.met == Some(false) && entry.met_by_best == Some(true)
}

fn missed(record: &Record) -> Vec<String> {
    let missed = record.entries.iter().filter(|entry| entry.met == Some(false));
    let line = |entry: &Entry| {
        let [name, ours, against, _, ratio, bar, _] = entry.cells();
        let figure = if against.is_empty() { ours } else { format!("{ratio} against {against}") };
        format!("- {}: {name}: {figure}, bar {bar}\n", record.table)
    };
    missed.map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn rows_that_miss_are_counted_and_named() {
        let text = markdown(&[record("engines")]);
        assert!(text.contains("| [engines](#engines) | 3 | 1 | 1 | 1 | 1 of 2 | 2026-11-23 |"), "{text}");
        let missed: Vec<_> = text.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!(
            missed,
            [
                "- engines: missed: 2.00 against other 1, bar 3.00 (3.00)",
                "- engines: unsteady: 5.00 (1.00) ns, bar 2 ns"
            ]
        );
    }
}
