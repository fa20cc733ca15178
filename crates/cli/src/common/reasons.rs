//! Reasons of packets and their counts, as text and as JSON.

use std::io::{self, Write};

use paceline::explain::Reasons;
use serde_json::{Value as Json, json};

use super::console::shown;

/// A line for each reason: packets, the first one, and the sentence.
pub(crate) fn write_reasons(out: &mut dyn Write, reasons: &Reasons) -> io::Result<()> {
    writeln!(out, "{:>12} {:>10}  reason", "packets", "first")?;
    for row in reasons.rows() {
        writeln!(out, "{:>12} {:>10}  {}", row.packets, row.first, shown(&row.sentence))?;
    }
    Ok(())
}

pub(crate) fn to_json(reasons: &Reasons) -> Json {
    let rows = reasons.rows().into_iter().map(|row| {
        let (file, line) = row.line.as_ref().map_or((None, None), |(file, line)| (Some(&**file), Some(line)));
        json!({
            "verdict": row.verdict.name(),
            "packets": row.packets,
            "first": row.first,
            "sentence": row.sentence,
            "file": file,
            "line": line,
        })
    });
    rows.collect()
}
