//! `paceline stats`: rates at intervals.

use std::io::{self, Write};
use std::process::ExitCode;
use std::thread;

use paceline::Verdict;
use serde_json::Value as Json;

use super::args::StatsArgs;
use crate::common::failure::Failure;
use crate::common::report;
use crate::control::{Request, counts, rates, request, shortened};

/// Lines between two headings.
const LINES: u64 = 20;
/// Prints rates until the run ends, or as many lines as are asked for.
pub(crate) fn stats(args: &StatsArgs) -> Result<ExitCode, Failure> {
    let status = || request(&args.control, &Request::Status { follow: false });
    let mut before = status()?;
    for line in 0..args.count.unwrap_or(u64::MAX) {
        thread::sleep(args.every);
        let after = match status() {
            Ok(after) => after,
            // The run has ended.
            Err(error) if error.is_over() => break,
            Err(error) => return Err(error.into()),
        };
        let rates = rates(&before, &after);
        report::print(|out| match args.json {
            true => writeln!(out, "{rates}"),
            false => write_line(out, line, &rates),
        })?;
        before = after;
    }
    Ok(ExitCode::SUCCESS)
}

fn write_line(out: &mut dyn Write, line: u64, rates: &Json) -> io::Result<()> {
    let columns = || counts::run().map(|count| (count.heading(), &rates[count.name]));
    if line.is_multiple_of(LINES) {
        write!(out, "{:>10}", "packets/s")?;
        Verdict::ALL.iter().try_for_each(|verdict| write!(out, " {verdict:>10}"))?;
        columns().try_for_each(|(heading, _)| write!(out, " {heading:>10}"))?;
        writeln!(out)?;
    }
    write!(out, "{:>10}", shortened(&rates["packets"]))?;
    for verdict in Verdict::ALL {
        write!(out, " {:>10}", shortened(&rates["verdicts"][verdict.name()]))?;
    }
    columns().try_for_each(|(heading, rate)| {
        let width = heading.len().max(10);
        write!(out, " {:>width$}", shortened(rate))
    })?;
    writeln!(out)?;
    out.flush()
}
