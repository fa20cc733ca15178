//! The result as text: sides by program, and the lines of those that are not reached.

use std::collections::BTreeMap;
use std::io::{self, Write};

use paceline::generate::{Goal, Goals};

use super::found::{Found, met};
use crate::common::console::shown;
use crate::inputs::followed;

/// Most characters of a source line.
const TEXT: usize = 80;

pub(super) fn write(out: &mut dyn Write, name: &str, all: &[Found]) -> io::Result<()> {
    for found in all {
        let generated = &found.generated;
        heading(out, name, found)?;
        section(
            out,
            found,
            &format!("unreachable for {}", generated.bounds),
            generated.unreachable.iter().map(|(goal, by_verifier)| {
                (*goal, if *by_verifier { "by the verifier" } else { "" }.to_owned())
            }),
        )?;
        section(
            out,
            found,
            "given up",
            generated
                .given_up
                .iter()
                .map(|(goal, place)| (*goal, format!("at {}: {}", found.place(place.slot), place.why))),
        )?;
        if !generated.left.is_empty() {
            writeln!(out, "  paths given up at:")?;
        }
        for place in &generated.left {
            let why = place.why.to_string();
            writeln!(out, "    {}  [{}]", shown(&found.place(place.slot)), shown(&why))?;
        }
        if generated.unvaried > 0 {
            writeln!(
                out,
                "  the time was over before other bytes were looked for: {} inputs",
                generated.unvaried
            )?;
        }
        let failures = generated.failures.iter().map(|failure| (failure.goal, failure.how.to_string()));
        section(out, found, "FAILED: inputs that do not do what they were made for", failures)?;
    }
    Ok(())
}

/// The counts of a program.
fn heading(out: &mut dyn Write, name: &str, found: &Found) -> io::Result<()> {
    let generated = &found.generated;
    let reached = generated.reached.len();
    let goals = reached + generated.unreachable.len() + generated.given_up.len() + generated.failures.len();
    let inputs = found.inputs();
    let first = inputs.iter().filter(|(_, variant, _)| variant.is_none()).count();
    let more = inputs.len() - first;
    write!(out, "{}: {}: ", shown(name), shown(&found.program.name))?;
    let has_path = generated.reached.keys().any(|goal| matches!(goal, Goal::Path { .. }));
    match found.goals {
        Goals::Sides if has_path => write!(out, "no branches, {reached} input")?,
        Goals::Paths(most) if reached >= most as usize => write!(out, "{reached} paths, and perhaps more")?,
        Goals::Paths(_) if generated.left.is_empty() => write!(out, "{reached} paths, and no others")?,
        Goals::Paths(_) => write!(out, "{reached} paths")?,
        kind => {
            let what = match kind {
                Goals::Verdicts => "verdicts at exits",
                Goals::Operations => "outcomes of map operations",
                _ => "branch sides",
            };
            write!(out, "{goals} {what}: {reached} reached by {first} inputs")?;
            if more > 0 {
                write!(out, " (and {more} more)")?;
            }
            let (unreachable, given_up) = (generated.unreachable.len(), generated.given_up.len());
            write!(out, ", {unreachable} unreachable, {given_up} given up")?;
        }
    }
    writeln!(out, "; {} in {:.1?}", followed(generated.paths), found.time)
}

fn section(
    out: &mut dyn Write,
    found: &Found,
    title: &str,
    goals: impl Iterator<Item = (Goal, String)>,
) -> io::Result<()> {
    // Goals of one line with one reason are told together.
    let mut lines: BTreeMap<(String, String, &str), Vec<Goal>> = BTreeMap::new();
    for (goal, reason) in goals {
        lines.entry((found.place(goal.slot()), reason, what(goal))).or_default().push(goal);
    }
    if lines.is_empty() {
        return Ok(());
    }
    let mut lines: Vec<_> = lines.into_iter().collect();
    lines.sort_by_key(|(_, goals)| goals.first().copied());
    writeln!(out, "  {title}:")?;
    for ((place, reason, what), goals) in lines {
        let text: String =
            goals.first().map_or("", |goal| found.text(goal.slot())).chars().take(TEXT).collect();
        let count = match (goals.as_slice(), what) {
            ([_], "") => String::new(),
            ([_], what) => format!(" ({what})"),
            (goals, "") => format!(" ({} sides)", goals.len()),
            (goals, what) => format!(" ({what}, {} times)", goals.len()),
        };
        let reason = if reason.is_empty() { reason } else { format!("  [{reason}]") };
        writeln!(out, "    {}  {}{count}{}", shown(&place), shown(&text), shown(&reason))?;
    }
    Ok(())
}

/// The part of a goal that is no side which distinguishes it from others of its line.
fn what(goal: Goal) -> &'static str {
    match goal {
        Goal::Return { verdict, .. } => verdict.name(),
        Goal::Operation { meets, .. } => met(meets),
        _ => "",
    }
}
