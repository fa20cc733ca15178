//! Reports as text: a summary, and source files with counts beside their lines.

use std::io::{self, Write};

use crate::coverage::report::{BranchLine, FileReport, LineReport, Report, Totals};

/// Most sides of branches that a summary shows.
const SHOWN: usize = 10;

impl Report {
    /// Writes a line of totals for each file, and for all if there are several; and the sides that branches never took, up to ten of them.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn write_summary(&self, out: &mut dyn Write) -> io::Result<()> {
        let width = self.files.keys().map(|name| name.chars().count()).max().unwrap_or(0).max(5);
        let line = |out: &mut dyn Write, name: &str, totals: Totals| {
            let Totals { lines, functions, branches } = totals;
            writeln!(
                out,
                "{name:width$}  lines {}  branches {}  functions {}",
                share(lines),
                share(branches),
                share(functions)
            )
        };
        for (name, file) in &self.files {
            line(out, name, file.totals())?;
        }
        if self.files.len() > 1 {
            line(out, "total", self.totals())?;
        }
        self.write_missing(out)
    }

    fn write_missing(&self, out: &mut dyn Write) -> io::Result<()> {
        let lines =
            self.files.iter().flat_map(|(name, file)| file.lines.iter().map(move |line| (name, line)));
        let mut missing = lines
            .flat_map(|(name, (number, line))| line.missing_sides().map(move |side| (name, number, side)));
        for (name, number, side) in missing.by_ref().take(SHOWN) {
            let file = name.rsplit('/').next().unwrap_or(name);
            writeln!(out, "  {file}:{number}: {side}")?;
        }
        match missing.count() {
            0 => Ok(()),
            more => {
                writeln!(out, "  and {more} more sides: a FILE that ends in .txt has them beside their lines")
            }
        }
    }

    /// Writes each source file with the counts of its lines; `read` gives its text, where it is there. Without the text only the lines
    /// with code are written. `-` marks lines without code, `#####` those that never ran, as `gcov` does.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn write_listing(
        &self,
        out: &mut dyn Write,
        read: impl Fn(&str) -> Option<String>,
    ) -> io::Result<()> {
        for (name, file) in &self.files {
            writeln!(out, "{name}")?;
            match read(name) {
                Some(text) => write_whole(out, file, &text)?,
                None => {
                    for (number, line) in &file.lines {
                        write_line(out, *number, Some(line), &line.text)?;
                    }
                }
            }
        }
        Ok(())
    }
}

fn write_whole(out: &mut dyn Write, file: &FileReport, text: &str) -> io::Result<()> {
    for (number, text) in (1..).zip(text.lines()) {
        write_line(out, number, file.lines.get(&number), text)?;
    }
    Ok(())
}

fn write_line(out: &mut dyn Write, number: u32, line: Option<&LineReport>, text: &str) -> io::Result<()> {
    let count = match line {
        None => "-".to_owned(),
        Some(line) if line.count == 0 => "#####".to_owned(),
        Some(line) => line.count.to_string(),
    };
    writeln!(out, "{count:>10} {number:>5}  {text}")?;
    let missing = line.into_iter().flat_map(LineReport::missing_sides);
    missing.into_iter().try_for_each(|missing| writeln!(out, "{:>16}  ^ {missing}", ""))
}

impl LineReport {
    /// The sides that branches of the line never took, in words: `branch 2 of 3 never leads to line 18`. None of a line that never ran.
    pub fn missing_sides(&self) -> impl Iterator<Item = String> {
        let all = self.branches.len();
        let branches = self.branches.iter().filter(|_| self.count > 0);
        branches.zip(1..).filter_map(move |(branch, number)| {
            let missing = branch.missing()?;
            Some(if all == 1 {
                format!("the branch {missing}")
            } else {
                format!("branch {number} of {all} {missing}")
            })
        })
    }
}

impl BranchLine {
    /// The side that it never took: `never leads to line 18`.
    fn missing(&self) -> Option<String> {
        let [jump, on] = self.lines.map_or([None; 2], |lines| lines.map(Some));
        let (line, words) = match (self.taken, self.not_taken) {
            (0, 0) => return Some("never runs".to_owned()),
            (0, _) => (jump, "never jumps"),
            (_, 0) => (on, "always jumps"),
            _ => return None,
        };
        Some(line.map_or_else(|| words.to_owned(), |line| format!("never leads to line {line}")))
    }
}

/// `12/15 (80.0%)`
fn share((covered, all): (usize, usize)) -> String {
    match all {
        0 => "0/0".to_owned(),
        all => format!("{covered}/{all} ({:.1}%)", 100.0 * covered as f64 / all as f64),
    }
}
