//! Reports as text: a summary, and source files with counts beside their lines.

use std::io::{self, Write};

use crate::report::{FileReport, LineReport, Report, Totals};

impl Report {
    /// Writes a line of totals for each file, and for all if there are several.
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
        if self.files.len() > 1 { line(out, "total", self.totals()) } else { Ok(()) }
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
    let branches = line.map_or(&[][..], |line| &line.branches);
    let (taken, sides) = branches.iter().fold((0, 0), |(taken, sides), branch| {
        (taken + usize::from(branch.taken > 0) + usize::from(branch.not_taken > 0), sides + 2)
    });
    // A line that never ran took no side.
    let is_partial = taken < sides && line.is_some_and(|line| line.count > 0);
    if is_partial { writeln!(out, "{:>16}  ^ {taken} of {sides} sides of branches", "") } else { Ok(()) }
}

/// `12/15 (80.0%)`
fn share((covered, all): (usize, usize)) -> String {
    match all {
        0 => "0/0".to_owned(),
        all => format!("{covered}/{all} ({:.1}%)", 100.0 * covered as f64 / all as f64),
    }
}
