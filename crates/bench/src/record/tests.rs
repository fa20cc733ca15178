use super::*;
use crate::report::Unit;

fn run() -> Run {
    let text = str::to_owned;
    Run {
        machine: text("Processor"),
        core: 1,
        cores: 2,
        kernel: text("6.18"),
        rustc: text("rustc 1"),
        optimized: true,
        date: text("2026-11-23"),
        commit: Some(text("abc")),
        dirty: Some(true),
        command: text("command"),
    }
}

fn time(min: f64, median: f64) -> Timing {
    Timing { rounds: 15, ..Timing::new(min, median) }
}

fn against(name: &str, ours: Timing, bar: f64) -> Row {
    let figure = Figure::Time { ours, against: Some(time(2.0, 2.0)) };
    Row { reach: Some(Bar::Ratio(2.0)), ..Row::new(name, "other 1", figure).with_bar(Some(Bar::Ratio(bar))) }
}

/// A record with rows of all kinds.
pub(crate) fn record(table: &str) -> Record {
    let mut matrix = Matrix { columns: vec!["W1".to_owned(), "W2".to_owned()], lines: Vec::new() };
    matrix.lines.push(("jit".to_owned(), vec![Some(Timing::new(1.0, 2.0)), None]));
    let alone = Figure::Time { ours: time(1.0, 5.0), against: None };
    let size = Figure::Size { ours: 3, against: Some(6), unit: Unit::KiB };
    let rows = vec![
        Row { in_matrix: true, reach: None, bar: None, ..against("in the matrix", time(1.0, 1.0), 1.0) },
        against("met", time(0.5, 0.5), 1.0),
        Row { reach: Some(Bar::Ratio(3.0)), ..against("missed", time(1.0, 1.0), 3.0) },
        Row::new("unsteady", "", alone).with_bar(Some(Bar::Most(2.0))),
        Row::new("memory", "before", size),
        Row { bar: None, reach: None, ..against("nothing", time(0.0, 0.0), 1.0) },
    ];
    Record::new(table, run(), Report { matrix: Some(matrix), rows })
}

#[test]
fn records_are_read_as_they_were_written() {
    let record = record("engines");
    assert_eq!(Record::parse(&record.lines()).unwrap(), record);
    let folder = tempfile::tempdir().unwrap();
    let file = record.write(folder.path()).unwrap();
    assert_eq!(Record::read_all(folder.path()).unwrap(), [record]);
    fs::rename(&file, folder.path().join("maps.jsonl")).unwrap();
    assert!(Record::read_all(folder.path()).is_err(), "the name of another table");
}

#[test]
fn builds_without_optimization_do_not_record() {
    let mut record = record("engines");
    record.run.optimized = false;
    let folder = tempfile::tempdir().unwrap();
    assert!(record.write(folder.path()).is_err());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn wrong_lines_are_named() {
    let error = |text: &str| Record::parse(text).unwrap_err().to_string();
    let record = record("engines").lines();
    let first = record.lines().next().unwrap();
    assert!(error("").contains("empty"));
    assert!(error(r#"{"table": "maps", "row": "x"}"#).contains("line 1 is no run"));
    assert!(error(&format!("{first}\n{{\"table\": \"maps\"}}")).starts_with("line 2: another table"));
    assert!(
        error(&format!("{first}\n{{\"table\": \"engines\", \"row\": \"x\"}}")).contains("without a figure")
    );
    assert!(error(&format!("{first}\nno JSON")).starts_with("line 2"));
}

#[test]
fn lines_have_what_readers_rely_on() {
    let lines = record("engines").lines();
    let met = lines.lines().find(|line| line.contains(r#""met","#)).unwrap();
    let value: serde_json::Value = serde_json::from_str(met).unwrap();
    let expected = serde_json::json!({
        "table": "engines", "row": "met", "ours_ns": 0.5, "ours_min_ns": 0.5, "against": "other 1", "against_ns": 2.0,
        "rounds": 15, "ratio": 4.0, "bar": 1.0, "reach": 2.0, "met": true, "reached": true,
    });
    for (key, expected) in expected.as_object().unwrap() {
        assert_eq!(&value[key], expected, "{key}");
    }
}

#[test]
fn times_are_rounded_and_outcomes_are_not() {
    let row = against("row", time(1.234_567, 1.234_567), 1.62);
    let entry = Entry::new(row);
    assert_eq!(entry.ratio, Some(2.0 / 1.234_567));
    let Figure::Time { ours, .. } = entry.row.figure else { panic!() };
    assert_eq!((ours.min, ours.rounds), (1.2346, 15));
}

#[test]
fn rows_without_a_bar_stand_in_the_matrix_alone() {
    let text = record("engines").markdown();
    assert!(
        text.starts_with("| ns, median (min) | W1 | W2 |\n|---|---|---|\n| jit | 2.0 (1.0) | - |\n\n| |"),
        "{text}"
    );
    assert!(!text.contains("in the matrix"), "{text}");
}

#[test]
fn outcomes_are_shown() {
    let text = record("engines").markdown();
    for line in [
        "| met | 0.50 (0.50) ns | other 1 | 2.00 (2.00) ns | 4.00 | 1.00 (2.00) | yes, reached |",
        "| missed | 1.00 (1.00) ns | other 1 | 2.00 (2.00) ns | 2.00 | 3.00 (3.00) | NO |",
        "| unsteady | 5.00 (1.00) ns |  |  |  | 2 ns | best rounds only |",
        "| memory | 3 KiB | before | 6 KiB | 2.00 |  |  |",
        "| nothing | 0.00 (0.00) ns | other 1 | 2.00 (2.00) ns | > 1000 |  |  |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
