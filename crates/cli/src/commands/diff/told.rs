//! Differences on all inputs, as text and JSON.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::time::Duration;

use paceline::generate::{Confirmed, Difference, Differences, Event, Handover, Target};
use paceline::packet::to_text;
use paceline::{Object, ProgramSpec};
use serde_json::{Value as Json, json};

use crate::common::console::shown;
use crate::inputs::{Unexplored, bounds_json, contents, followed};
use crate::maps::Form;

/// The differences between a pair of programs.
pub(super) struct Compared {
    /// Both with their objects.
    pub(super) names: [String; 2],
    pub(super) differences: Differences,
    pub(super) old: (Object, ProgramSpec),
    pub(super) new: (Object, ProgramSpec),
    pub(super) time: Duration,
    /// Most inputs that are looked for.
    pub(super) most: usize,
}

/// Programs that one object alone has.
pub(super) struct Only {
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
}

/// The comparison of two objects.
pub(super) struct Report {
    pub(super) compared: Vec<Compared>,
    /// Pairs that are not compared, and programs that are not looked at.
    pub(super) unexplored: Vec<Unexplored>,
    pub(super) only: Only,
}

impl Report {
    /// Whether it is proved that nothing differs.
    pub(super) fn is_proved(&self) -> bool {
        let is_proved = |one: &Compared| one.differences.found.is_empty() && one.differences.is_complete();
        let is_all = self.unexplored.is_empty() && self.only.old.is_empty() && self.only.new.is_empty();
        is_all && self.compared.iter().all(is_proved)
    }

    pub(super) fn to_json(&self) -> Json {
        let unexplored = self.unexplored.iter().map(|unexplored| {
            let mut json = unexplored.to_json();
            json["proved"] = false.into();
            json
        });
        let programs: Vec<_> = self.compared.iter().map(pair).chain(unexplored).collect();
        json!({ "programs": programs, "only": { "old": self.only.old, "new": self.only.new } })
    }

    pub(super) fn write_text(&self, out: &mut dyn Write) -> io::Result<()> {
        self.compared.iter().try_for_each(|compared| write_pair(out, compared))?;
        for (which, names) in [("old", &self.only.old), ("new", &self.only.new)] {
            for name in names {
                writeln!(out, "{}: only the {which} object has it", shown(name))?;
            }
        }
        Ok(())
    }
}

fn write_pair(out: &mut dyn Write, compared: &Compared) -> io::Result<()> {
    let Differences { found, unconfirmed, left, is_cut, is_of_paths, pairs, paths, bounds } =
        &compared.differences;
    let [old, new] = compared.names.each_ref().map(|name| shown(name));
    let what = match (found.len(), compared.differences.is_complete()) {
        (0, true) => format!("no input tells them apart, for {bounds}"),
        (0, false) => "no input was found that tells them apart".to_owned(),
        (1, _) => "differ on 1 input".to_owned(),
        (count, _) => format!("differ on {count} inputs"),
    };
    let how = match is_of_paths {
        true => format!("{pairs} pairs of paths, {}", followed(*paths)),
        false => "by inputs that were generated for each".to_owned(),
    };
    writeln!(out, "{old} and {new}: {what}; {how} in {:.1?}", compared.time)?;
    // Of generated inputs with the same difference, the first has the smallest packet.
    let mut told: Vec<(String, &Difference, usize)> = Vec::new();
    for difference in found {
        let sentence = sentence(difference);
        match told.iter_mut().find(|(other, _, _)| !is_of_paths && *other == sentence) {
            Some((_, _, more)) => *more += 1,
            None => told.push((sentence, difference, 0)),
        }
    }
    for (sentence, difference, more) in told {
        let packet = to_text(&difference.old.input.packet);
        let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
        writeln!(out, "  {sentence}{more}: {}", shown(&packet))?;
    }
    if !is_of_paths {
        writeln!(out, "  and perhaps on more: their paths were not compared")?;
    }
    if *is_cut {
        writeln!(out, "  and perhaps on more: the search ends after {}", compared.most)?;
    }
    if !left.is_empty() {
        writeln!(out, "  not known of paths from:")?;
    }
    let mut lines = BTreeSet::new();
    for (is_new, place) in left {
        let ((_, program), which) = if *is_new { (&compared.new, "new") } else { (&compared.old, "old") };
        let line = program.line_of(place.slot).filter(|line| line.line > 0);
        let at = match line {
            Some(line) => format!("{}:{}", line.file.rsplit('/').next().unwrap_or(&line.file), line.line),
            None => format!("{}+{}", program.name, place.slot),
        };
        lines.insert(format!("    {which} {at}  [{}]", place.why));
    }
    lines.iter().try_for_each(|line| writeln!(out, "{}", shown(line)))?;
    for input in unconfirmed {
        writeln!(out, "  FAILED: an input on which they do not differ: {}", shown(&to_text(&input.packet)))?;
    }
    Ok(())
}

/// The differences as text.
fn sentence(difference: &Difference) -> String {
    let (old, new) = (&difference.old, &difference.new);
    let mut parts = Vec::new();
    if old.verdict != new.verdict {
        parts.push(format!("{}, now {}", old.verdict.name(), new.verdict.name()));
    } else {
        parts.push(old.verdict.name().to_owned());
        if old.returned != new.returned {
            parts.push(format!("returns {}, now {}", old.returned, new.returned));
        }
    }
    if old.bytes.len() != new.bytes.len() {
        parts.push(format!("{} bytes, now {}", old.bytes.len(), new.bytes.len()));
    } else if old.bytes != new.bytes {
        parts.push("other bytes".to_owned());
    }
    if old.metadata != new.metadata {
        parts.push("other metadata".to_owned());
    }
    if old.verdict == new.verdict && old.redirect != new.redirect {
        parts.push("another target".to_owned());
    }
    parts.extend(call(old.handover.as_ref(), new.handover.as_ref()));
    if by_map(&old.events) != by_map(&new.events) {
        parts.push("other events".to_owned());
    }
    if old.traces != new.traces {
        parts.push("other traces".to_owned());
    }
    // The same run on both, so that only other changes are left.
    if parts.len() == 1 && old.verdict == new.verdict {
        parts.push("other elements in maps".to_owned());
    }
    parts.join(", ")
}

/// The difference between the tail calls of two programs, as text.
fn call(old: Option<&Handover>, new: Option<&Handover>) -> Option<String> {
    let name = |call: &Handover| format!("{}[{}]", call.map, call.index);
    match (old, new) {
        (None, None) => None,
        (Some(old), None) => Some(format!("no longer calls {}", name(old))),
        (None, Some(new)) => Some(format!("now calls {}", name(new))),
        (Some(old), Some(new)) if name(old) != name(new) => {
            Some(format!("calls {}, now {}", name(old), name(new)))
        }
        (Some(old), Some(new)) => {
            let left = |call: &Handover| {
                let Handover { bytes, metadata, headroom, redirect, .. } = call.clone();
                (bytes, metadata, headroom, redirect)
            };
            let other_events = by_map(&old.events) != by_map(&new.events) || old.traces != new.traces;
            let what = match (left(old) != left(new), other_events) {
                (true, _) => "another packet",
                (_, true) => "other events before",
                _ if old.changes != new.changes => "other elements in maps",
                _ => return None,
            };
            Some(format!("{what} for {}", name(new)))
        }
    }
}

/// Events in the order of their maps: those of one keep theirs.
fn by_map(events: &[Event]) -> Vec<&Event> {
    let mut events: Vec<_> = events.iter().collect();
    events.sort_by(|a, b| a.map.cmp(&b.map));
    events
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The outcome of a run, as JSON.
fn side(run: &Confirmed) -> Json {
    let redirect = run.redirect.as_ref().map(|target| match target {
        Target::Interface { index, flags } => json!({ "ifindex": index, "flags": flags }),
        Target::Element { map, key } => json!({ "map": map, "key": key }),
    });
    let event = |event: &Event| json!({ "map": event.map, "bytes": hex(&event.data), "captured": hex(&event.captured) });
    json!({
        "verdict": run.verdict.name(),
        "returns": run.returned,
        "bytes": hex(&run.bytes),
        "metadata": hex(&run.metadata),
        "redirect": redirect,
        "calls": run.handover.as_ref().map(|call| json!({ "map": call.map, "index": call.index })),
        "events": run.events.iter().map(event).collect::<Vec<_>>(),
        "traces": String::from_utf8_lossy(&run.traces),
    })
}

/// The elements that maps have before the run, by the maps' names: those of either object.
fn maps(compared: &Compared, difference: &Difference) -> Json {
    let mut all = serde_json::Map::new();
    for ((object, _), input) in
        [(&compared.new, &difference.new.input), (&compared.old, &difference.old.input)]
    {
        for (map, elements) in &input.maps {
            if let Some(spec) = object.maps().get(*map) {
                all.insert(spec.name.clone(), contents(object, *map, elements, Form::Typed));
            }
        }
    }
    Json::Object(all)
}

fn pair(compared: &Compared) -> Json {
    let differences = &compared.differences;
    let found = differences.found.iter().map(|difference| {
        let input = &difference.old.input;
        json!({
            "what": sentence(difference),
            "packet": hex(&input.packet),
            "maps": maps(compared, difference),
            "time_ns": input.time_ns,
            "seed": input.seed,
            "ingress": input.ingress,
            "queue": input.queue,
            "old": side(&difference.old),
            "new": side(&difference.new),
        })
    });
    let left = differences.left.iter().map(|(is_new, place)| {
        json!({ "side": if *is_new { "new" } else { "old" }, "slot": place.slot, "reason": place.why.to_string() })
    });
    json!({
        "old": compared.names[0],
        "new": compared.names[1],
        "differ": found.collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
        "failed": differences.unconfirmed.len(),
        "proved": differences.found.is_empty() && differences.is_complete(),
        "pairs": differences.pairs,
        "paths": differences.paths,
        "bounds": bounds_json(&differences.bounds),
    })
}
