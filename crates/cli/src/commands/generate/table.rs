//! The result as text: sides by program, and the lines of those that are not reached.

use std::collections::BTreeMap;
use std::io::{self, Write};

use paceline::generate::Side;

use super::found::Found;
use crate::common::console::shown;

/// Most characters of a source line.
const TEXT: usize = 80;

pub(super) fn write(out: &mut dyn Write, name: &str, all: &[Found]) -> io::Result<()> {
    for found in all {
        let generated = &found.generated;
        let sides = generated.reached.len()
            + generated.unreachable.len()
            + generated.given_up.len()
            + generated.failures.len();
        writeln!(
            out,
            "{}: {}: {sides} branch sides: {} reached by {} inputs, {} unreachable, {} given up; {} paths in {:.1?}",
            shown(name),
            shown(&found.program.name),
            generated.reached.len(),
            found.inputs().len(),
            generated.unreachable.len(),
            generated.given_up.len(),
            generated.paths,
            found.time,
        )?;
        section(
            out,
            found,
            "unreachable",
            generated.unreachable.iter().map(|(side, by_verifier)| {
                (*side, if *by_verifier { "by the verifier" } else { "" }.to_owned())
            }),
        )?;
        section(
            out,
            found,
            "given up",
            generated
                .given_up
                .iter()
                .map(|(side, place)| (*side, format!("at {}: {}", found.place(place.slot), place.why))),
        )?;
        let failures = generated.failures.iter().map(|failure| (failure.side, failure.how.to_string()));
        section(out, found, "FAILED: inputs that do not do what they were made for", failures)?;
    }
    Ok(())
}

fn section(
    out: &mut dyn Write,
    found: &Found,
    title: &str,
    sides: impl Iterator<Item = (Side, String)>,
) -> io::Result<()> {
    // Sides of one line with one reason are told together.
    let mut lines: BTreeMap<(String, String), Vec<Side>> = BTreeMap::new();
    for (side, reason) in sides {
        lines.entry((found.place(side.slot), reason)).or_default().push(side);
    }
    if lines.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|(_, sides)| sides.first().copied());
    writeln!(out, "  {title}:")?;
    for ((place, reason), sides) in lines {
        let text: String =
            sides.first().map_or("", |side| found.text(side.slot)).chars().take(TEXT).collect();
        let count = if sides.len() == 1 { String::new() } else { format!(" ({} sides)", sides.len()) };
        let reason = if reason.is_empty() { reason } else { format!("  [{reason}]") };
        writeln!(out, "    {}  {}{count}{}", shown(&place), shown(&text), shown(&reason))?;
    }
    Ok(())
}
