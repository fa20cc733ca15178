//! The summary: per table the bars that are met, and by name those that are not.

use crate::record::{Entry, Record};

/// The table, followed by the rows whose bars are not met.
pub(super) fn markdown(records: &[Record]) -> String {
    let mut text = "| table | bars met | machine | date, commit |\n|---|---|---|---|\n".to_owned();
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
    let Record { table, run, entries, .. } = record;
    let met = entries.iter().filter(|entry| entry.met == Some(true)).count();
    let all = entries.iter().filter(|entry| entry.met.is_some()).count();
    let commit = run.commit.as_deref().unwrap_or_default();
    format!(
        "| [{table}](#{table}) | {met} of {all} | {}, Linux {} | {}, {commit} |\n",
        run.machine, run.kernel, run.date
    )
}

fn missed(record: &Record) -> Vec<String> {
    let missed = record.entries.iter().filter(|entry| entry.met == Some(false));
    let line = |entry: &Entry| {
        let [name, ours, against, _, ratio, bar, _] = entry.cells();
        let against = brief(&against);
        let figure = if against.is_empty() { ours } else { format!("{ratio} against {against}") };
        let by = if entry.met_by_best == Some(true) { ", which medians miss" } else { "" };
        format!("- {}: {name}: {figure}, bar {bar}{by}\n", record.table)
    };
    missed.map(line).collect()
}

/// A cell without what stands in parentheses: best rounds, versions of compilers.
pub(super) fn brief(cell: &str) -> String {
    match (cell.find(" ("), cell.rfind(')')) {
        (Some(start), Some(end)) if start < end => cell[..start].to_owned() + &cell[end + 1..],
        _ => cell.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::record;

    #[test]
    fn rows_that_miss_are_counted_and_named() {
        let text = markdown(&[record("engines")]);
        assert!(
            text.contains("| [engines](#engines) | 1 of 3 | Processor, Linux 6.18 | 2026-11-23, abc |"),
            "{text}"
        );
        let missed: Vec<_> = text.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!(
            missed,
            [
                "- engines: missed: 2.00 against other 1, bar 3.00 (3.00)",
                "- engines: unsteady: 5.00 (1.00) ns, bar 2 ns, which medians miss"
            ]
        );
    }
}
