//! Records as JSON Lines: a line for the run, lines for the matrix, and a line per row, so that a changed row is a changed
//! line. The name of a figure has its unit: `ours_ns` is the median, `ours_min_ns` the best round.

use std::error::Error;

use serde_json::{Map, Value, json};

use super::{Entry, Record, Run};
use crate::measure::Timing;
use crate::report::{Bar, Figure, Matrix, Row, Unit};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

const LEAST: &str = "least ratio";
const MOST: &str = "most of ours";

impl Record {
    /// The text of the record's file.
    pub(crate) fn lines(&self) -> String {
        let table = &self.table;
        let mut lines = vec![run_line(table, &self.run)];
        lines.extend(self.matrix.iter().flat_map(|matrix| matrix_lines(table, matrix)));
        lines.extend(self.entries.iter().map(|entry| entry_line(table, entry)));
        lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// The record of a text.
    ///
    /// # Errors
    /// The number of the line and what is wrong with it; a text without a run.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut record: Option<Self> = None;
        for (number, line) in text.lines().enumerate() {
            let line = parse_line(number, line)?;
            match &mut record {
                Some(record) => record.add(&line).map_err(|error| format!("line {}: {error}", number + 1))?,
                None => record = Some(Self::start(&line)?),
            }
        }
        record.ok_or_else(|| "the file is empty".into())
    }

    fn start(line: &Value) -> Result<Self> {
        let run = run(line).map_err(|error| format!("line 1 is no run: {error}"))?;
        Ok(Self { table: text(line, "table")?, run, matrix: None, entries: Vec::new() })
    }

    fn add(&mut self, line: &Value) -> Result<()> {
        if text(line, "table")? != self.table {
            return Err("another table".into());
        }
        if line.get("row").is_some() {
            self.entries.push(entry(line)?);
        } else {
            add_to_matrix(self.matrix.get_or_insert_default(), line)?;
        }
        Ok(())
    }
}

/// The rows of what `--json` prints, with their tables. Other lines are skipped: older commits print rows alone, and without
/// some of the fields.
pub(crate) fn rows(text: &str) -> Result<Vec<(String, Row)>> {
    let mut rows = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = parse_line(number, line)?;
        if line.get("row").is_some() {
            rows.push((self::text(&line, "table")?, entry(&line)?.row));
        }
    }
    Ok(rows)
}

fn parse_line(number: usize, line: &str) -> Result<Value> {
    serde_json::from_str(line).map_err(|error| format!("line {}: {error}", number + 1).into())
}

fn run_line(table: &str, run: &Run) -> Value {
    json!({
        "table": table, "machine": run.machine, "core": run.core, "cores": run.cores, "kernel": run.kernel,
        "rustc": run.rustc, "optimized": run.optimized, "date": run.date, "commit": run.commit,
        "dirty": run.dirty, "command": run.command,
    })
}

fn run(line: &Value) -> Result<Run> {
    Ok(Run {
        machine: text(line, "machine")?,
        core: line["core"].as_u64().ok_or("core")?,
        cores: line["cores"].as_u64().ok_or("cores")?,
        kernel: text(line, "kernel")?,
        rustc: text(line, "rustc")?,
        optimized: line["optimized"].as_bool().ok_or("optimized")?,
        date: text(line, "date")?,
        commit: line["commit"].as_str().map(str::to_owned),
        dirty: line["dirty"].as_bool(),
        command: text(line, "command")?,
    })
}

fn matrix_lines(table: &str, matrix: &Matrix) -> Vec<Value> {
    let figure = |timing: &Option<Timing>| timing.map(|timing| [timing.median, timing.min]);
    let line = |(contender, cells): &(String, Vec<Option<Timing>>)| {
        let cells: Vec<_> = cells.iter().map(figure).collect();
        json!({ "table": table, "contender": contender, "median_and_min_ns": cells })
    };
    let columns = json!({ "table": table, "columns": matrix.columns });
    std::iter::once(columns).chain(matrix.lines.iter().map(line)).collect()
}

fn add_to_matrix(matrix: &mut Matrix, line: &Value) -> Result<()> {
    if let Some(columns) = line["columns"].as_array() {
        let column = |column: &Value| column.as_str().map(str::to_owned);
        matrix.columns = columns.iter().map(column).collect::<Option<_>>().ok_or("columns")?;
        return Ok(());
    }
    let cell = |cell: &Value| Some(Timing::new(cell[1].as_f64()?, cell[0].as_f64()?));
    let cells = line["median_and_min_ns"].as_array().ok_or("neither a row nor a line of a matrix")?;
    matrix.lines.push((text(line, "contender")?, cells.iter().map(cell).collect()));
    Ok(())
}

fn entry_line(table: &str, entry: &Entry) -> Value {
    let row = &entry.row;
    let mut line = Map::new();
    let mut set = |key: String, value: Value| line.insert(key, value);
    set("table".to_owned(), json!(table));
    set("row".to_owned(), json!(row.name));
    let against = (!row.against.is_empty()).then_some(&row.against);
    match row.figure {
        Figure::Time { ours, against: other } => {
            set("ours_ns".to_owned(), json!(ours.median));
            set("ours_min_ns".to_owned(), json!(ours.min));
            set("against".to_owned(), json!(against));
            set("against_ns".to_owned(), json!(other.map(|t| t.median)));
            set("against_min_ns".to_owned(), json!(other.map(|t| t.min)));
            set("rounds".to_owned(), json!((ours.rounds > 0).then_some(ours.rounds)));
        }
        Figure::Size { ours, against: other, unit } => {
            let unit = unit.name().to_lowercase();
            set(format!("ours_{unit}"), json!(ours));
            set("against".to_owned(), json!(against));
            set(format!("against_{unit}"), json!(other));
        }
    }
    set("ratio".to_owned(), json!(entry.ratio));
    set("bar".to_owned(), json!(row.bar.map(value)));
    set("bar_is".to_owned(), json!(row.bar.map(kind)));
    set("reach".to_owned(), json!(row.reach.map(value)));
    set("reach_is".to_owned(), json!(row.reach.map(kind)));
    set("met".to_owned(), json!(entry.met));
    set("met_by_best".to_owned(), json!(entry.met_by_best));
    set("reached".to_owned(), json!(entry.reached));
    set("in_matrix".to_owned(), json!(row.in_matrix));
    Value::Object(line)
}

const fn value(bar: Bar) -> f64 {
    let (Bar::Ratio(value) | Bar::Most(value)) = bar;
    value
}

const fn kind(bar: Bar) -> &'static str {
    match bar {
        Bar::Ratio(_) => LEAST,
        Bar::Most(_) => MOST,
    }
}

fn entry(line: &Value) -> Result<Entry> {
    let flag = |key: &str| line[key].as_bool();
    let row = Row {
        bar: bar(line, "bar")?,
        reach: bar(line, "reach")?,
        in_matrix: flag("in_matrix").unwrap_or_default(),
        ..Row::new(text(line, "row")?, line["against"].as_str().unwrap_or_default(), figure(line)?)
    };
    Ok(Entry {
        row,
        ratio: line["ratio"].as_f64(),
        met: flag("met"),
        met_by_best: flag("met_by_best"),
        reached: flag("reached"),
    })
}

fn figure(line: &Value) -> Result<Figure> {
    if let Some(median) = line["ours_ns"].as_f64() {
        let rounds = line["rounds"].as_u64().unwrap_or_default() as usize;
        let timing = |min, median| Timing { rounds, ..Timing::new(min, median) };
        let ours = timing(line["ours_min_ns"].as_f64().ok_or("ours_min_ns")?, median);
        let other = line["against_min_ns"].as_f64().zip(line["against_ns"].as_f64());
        return Ok(Figure::Time { ours, against: other.map(|(min, median)| timing(min, median)) });
    }
    for unit in [Unit::Bytes, Unit::KiB] {
        let name = unit.name().to_lowercase();
        if let Some(ours) = line[format!("ours_{name}")].as_u64() {
            return Ok(Figure::Size { ours, against: line[format!("against_{name}")].as_u64(), unit });
        }
    }
    Err("a row without a figure of ours".into())
}

/// A bar; older commits do not print the kind of the goal.
fn bar(line: &Value, key: &str) -> Result<Option<Bar>> {
    let Some(value) = line[key].as_f64() else { return Ok(None) };
    match line[format!("{key}_is")].as_str() {
        Some(MOST) => Ok(Some(Bar::Most(value))),
        Some(LEAST) => Ok(Some(Bar::Ratio(value))),
        None if key == "reach" => Ok(None),
        _ => Err(format!("{key}_is").into()),
    }
}

fn text(line: &Value, key: &str) -> Result<String> {
    Ok(line[key].as_str().ok_or_else(|| format!("{key} is missing"))?.to_owned())
}
