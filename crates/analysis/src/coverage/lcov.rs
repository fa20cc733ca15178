//! Reports in LCOV's tracefile format (geninfo(1)).

use std::io::{self, Write};

use crate::coverage::report::{FileReport, Report};

impl Report {
    /// Writes a tracefile, which `genhtml`, `lcov`, Codecov and editors read. Names of files are as the compiler saw them.
    ///
    /// # Errors
    /// An error of the writer.
    pub fn write_lcov(&self, out: &mut dyn Write, test: &str) -> io::Result<()> {
        for (name, file) in &self.files {
            writeln!(out, "TN:{test}")?;
            writeln!(out, "SF:{name}")?;
            write_file(out, file)?;
            writeln!(out, "end_of_record")?;
        }
        Ok(())
    }
}

fn write_file(out: &mut dyn Write, file: &FileReport) -> io::Result<()> {
    let totals = file.totals();
    for (name, function) in &file.functions {
        writeln!(out, "FN:{},{name}", function.line)?;
    }
    for (name, function) in &file.functions {
        writeln!(out, "FNDA:{},{name}", function.count)?;
    }
    writeln!(out, "FNF:{}\nFNH:{}", totals.functions.1, totals.functions.0)?;
    for (number, line) in &file.lines {
        for (block, branch) in line.branches.iter().enumerate() {
            let ran = branch.taken + branch.not_taken > 0;
            for (side, count) in [branch.taken, branch.not_taken].into_iter().enumerate() {
                let count = if ran { count.to_string() } else { "-".to_owned() };
                writeln!(out, "BRDA:{number},{block},{side},{count}")?;
            }
        }
    }
    writeln!(out, "BRF:{}\nBRH:{}", totals.branches.1, totals.branches.0)?;
    for (number, line) in &file.lines {
        writeln!(out, "DA:{number},{}", line.count)?;
    }
    writeln!(out, "LF:{}\nLH:{}", totals.lines.1, totals.lines.0)
}
