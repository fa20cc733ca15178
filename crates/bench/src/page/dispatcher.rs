//! The table of the kernel's patches for the BPF dispatcher, beside ours.

use std::error::Error;

use crate::record::Record;
use crate::report::Matrix;

/// Entries of the dispatcher, millions of packets a second, and the gain in percent, as the patches state them.
const PATCHES: [(&str, f64, i32); 17] = [
    ("1", 31.7, 40),
    ("2", 32.2, 42),
    ("3", 31.3, 38),
    ("4", 32.0, 41),
    ("5", 31.2, 37),
    ("6", 31.2, 37),
    ("7", 30.2, 33),
    ("8", 31.3, 39),
    ("9", 30.1, 32),
    ("10", 31.6, 39),
    ("11", 31.1, 37),
    ("12", 30.9, 36),
    ("13", 30.4, 34),
    ("14", 31.2, 37),
    ("15", 30.9, 36),
    ("16", 32.1, 41),
    ("full", 22.4, -1),
];

/// The same without a dispatcher.
const WITHOUT: f64 = 22.7;

/// The table, from the medians of a record.
pub(super) fn markdown(record: &Record) -> Result<String, Box<dyn Error>> {
    let matrix = record.matrix.as_ref().ok_or("the record of dispatcher has no matrix")?;
    let mut text =
        "| entries | the kernel's patches, 40 GbE at line rate | retpoline here | dispatcher here |\n\
                    |---|---|---|---|\n"
            .to_owned();
    text += &format!("| none | {WITHOUT} Mpps | | |\n");
    for (entries, theirs, gain) in PATCHES {
        let retpoline = median(matrix, "retpoline", entries)?;
        let ours = median(matrix, "dispatcher, retpoline where there is no slot", entries)?;
        text += &format!(
            "| {entries} | {theirs:.1} Mpps ({gain:+}%) | {:.0} Mpps | {:.0} Mpps ({:+.0}%) |\n",
            1e3 / retpoline,
            1e3 / ours,
            (retpoline / ours - 1.0) * 100.0,
        );
    }
    Ok(text)
}

/// Median of a contender in a column, in nanoseconds.
fn median(matrix: &Matrix, contender: &str, column: &str) -> Result<f64, Box<dyn Error>> {
    let index = matrix.columns.iter().position(|name| name == column);
    let line = matrix.lines.iter().find(|(name, _)| name == contender);
    let figure = index.zip(line).and_then(|(index, (_, cells))| cells.get(index).copied().flatten());
    Ok(figure.ok_or_else(|| format!("there is no figure of {contender} with {column} entries"))?.median)
}
