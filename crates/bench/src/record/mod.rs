//! Results of a table as data: one file of JSON Lines per table in `docs/benchmarks`, from which the page is made.
//!
//! The outcome of a row is stored, not computed from the stored figures, because these are rounded. The records of 2026-11-21 and
//! 2026-11-22 were converted from the page: their commit and rounds are null.

pub(crate) mod json;
mod markdown;

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use crate::measure::Timing;
use crate::report::{Bar, Figure, Matrix, Report, Row};

/// Folder of the committed records.
pub(crate) const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks");

/// Extension of a record's file.
const EXTENSION: &str = "jsonl";

/// One run of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Record {
    pub(crate) table: String,
    pub(crate) run: Run,
    pub(crate) matrix: Option<Matrix>,
    pub(crate) entries: Vec<Entry>,
}

/// The circumstances of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Run {
    /// The processor.
    pub(crate) machine: String,
    /// The measuring core.
    pub(crate) core: u64,
    /// Number of cores that the process may use.
    pub(crate) cores: u64,
    /// The kernel's release.
    pub(crate) kernel: String,
    /// The compiler and its version.
    pub(crate) rustc: String,
    /// Whether the build is a release build.
    pub(crate) optimized: bool,
    /// Day of the run, in UTC.
    pub(crate) date: String,
    /// The commit checked out; `None` if unknown.
    pub(crate) commit: Option<String>,
    /// Whether files outside `docs` differed from the commit; `None` if unknown.
    pub(crate) dirty: Option<bool>,
    /// The command that repeats the run.
    pub(crate) command: String,
}

/// A row with its outcome. The outcome is stored and not computed from the stored figures, which are rounded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) row: Row,
    /// Ratio of the other's figure to ours; `None` without another, or if ours is zero.
    pub(crate) ratio: Option<f64>,
    /// Whether the best rounds and the medians meet the bar; `None` without a bar.
    pub(crate) met: Option<bool>,
    /// Whether the best rounds alone meet the bar.
    pub(crate) met_by_best: Option<bool>,
    /// Whether both meet the goal beyond the bar.
    pub(crate) reached: Option<bool>,
}

impl Entry {
    /// The outcome of a measured row.
    pub(crate) fn new(row: Row) -> Self {
        let by = |bar: Option<Bar>| bar.and_then(|bar| row.meets(bar));
        Self {
            ratio: row.ratio().filter(|ratio| ratio.is_finite()),
            met: row.met(),
            met_by_best: row.bar.and_then(|bar| row.best_meets(bar)),
            reached: by(row.reach),
            row: Row { figure: rounded(row.figure), ..row },
        }
    }
}

/// Times in tenths of a picosecond: more digits mean nothing and hide what changes between two records.
fn rounded(figure: Figure) -> Figure {
    let round = |ns: f64| (ns * 1e4).round() / 1e4;
    let timing = |t: Timing| Timing { min: round(t.min), median: round(t.median), ..t };
    match figure {
        Figure::Time { ours, against } => Figure::Time { ours: timing(ours), against: against.map(timing) },
        size @ Figure::Size { .. } => size,
    }
}

impl Record {
    pub(crate) fn new(table: &str, run: Run, report: Report) -> Self {
        let entries = report.rows.into_iter().map(Entry::new).collect();
        Self { table: table.to_owned(), run, matrix: report.matrix, entries }
    }

    /// Reads a record.
    ///
    /// # Errors
    /// The file and what is wrong with it.
    pub(crate) fn read(file: &Path) -> Result<Self, Box<dyn Error>> {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        Self::parse(&text).map_err(|error| format!("{}: {error}", file.display()).into())
    }

    /// All records of a folder, by name.
    ///
    /// # Errors
    /// The first file that is no record, or whose name is not its table's.
    pub(crate) fn read_all(folder: &Path) -> Result<Vec<Self>, Box<dyn Error>> {
        let files = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut files: Vec<PathBuf> = files.map(|file| Ok(file?.path())).collect::<std::io::Result<_>>()?;
        files.retain(|file| file.extension().is_some_and(|extension| extension == EXTENSION));
        files.sort();
        files.iter().map(|file| Self::read_named(file)).collect()
    }

    fn read_named(file: &Path) -> Result<Self, Box<dyn Error>> {
        let record = Self::read(file)?;
        if file.file_stem().is_none_or(|stem| *stem != *record.table) {
            return Err(format!("{} is a record of table {}", file.display(), record.table).into());
        }
        Ok(record)
    }

    /// Writes the record into a folder, in place of the table's record before. Returns the file.
    ///
    /// # Errors
    /// A build without optimization, whose figures mean nothing; input and output.
    pub(crate) fn write(&self, folder: &Path) -> Result<PathBuf, Box<dyn Error>> {
        if !self.run.optimized {
            return Err("only a release build may record".into());
        }
        fs::create_dir_all(folder)?;
        let file = folder.join(&self.table).with_extension(EXTENSION);
        fs::write(&file, self.lines())?;
        Ok(file)
    }
}

#[cfg(test)]
pub(crate) mod tests;
