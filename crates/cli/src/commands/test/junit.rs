//! Results in JUnit's XML, as CI systems read it.

use std::io::{self, Write};

use super::report::{Reported, Status};

/// Writes all results, a test suite for each file.
pub(super) fn write(out: &mut dyn Write, results: &[Reported<'_>]) -> io::Result<()> {
    writeln!(out, r#"<?xml version="1.0" encoding="UTF-8"?>"#)?;
    writeln!(out, r#"<testsuites name="paceline"{}>"#, counts(results))?;
    for suite in results.chunk_by(|a, b| a.file == b.file) {
        let name = suite.first().map_or("", |first| first.file);
        writeln!(out, r#"  <testsuite name="{}"{}>"#, escaped(name), counts(suite))?;
        suite.iter().try_for_each(|result| write_case(out, result))?;
        writeln!(out, "  </testsuite>")?;
    }
    writeln!(out, "</testsuites>")
}

fn counts(results: &[Reported<'_>]) -> String {
    let of = |wanted: Status| results.iter().filter(|result| result.status() == wanted).count();
    let time: f64 = results.iter().map(|result| result.result.time.as_secs_f64()).sum();
    format!(
        r#" tests="{}" failures="{}" errors="{}" skipped="{}" time="{time:.6}""#,
        results.len(),
        of(Status::Failed),
        of(Status::Error),
        of(Status::Skipped)
    )
}

fn write_case(out: &mut dyn Write, result: &Reported<'_>) -> io::Result<()> {
    let (name, class) = (escaped(&result.name()), escaped(result.file));
    let file = escaped(result.test.source().unwrap_or(result.file));
    let time = result.result.time.as_secs_f64();
    let start = format!(
        r#"    <testcase name="{name}" classname="{class}" file="{file}" line="{}" time="{time:.6}""#,
        result.test.place().0
    );
    let element = match result.status() {
        Status::Passed => return writeln!(out, "{start}/>"),
        Status::Skipped => "skipped",
        Status::Failed => "failure",
        Status::Error => "error",
    };
    let lines = result.lines();
    let message = escaped(&result.reason());
    writeln!(out, "{start}>")?;
    writeln!(out, r#"      <{element} message="{message}">{}</{element}>"#, escaped(&lines.join("\n")))?;
    writeln!(out, "    </testcase>")
}

/// Text for XML 1.0, which has no control characters but white space.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
