//! Explanations as JSON.

use std::io::{self, Write};

use paceline::chain::Next;
use paceline::diagnosis::explained;
use paceline::explain::Reasons;
use paceline::packet::{differences, to_text};
use serde_json::{Value as Json, json};

use super::explained::Explained;
use crate::common::outcome;
use crate::common::reasons;
use crate::maps::{Form, MapsAsJson};
use crate::subject::Subject;

pub(super) fn write(
    out: &mut dyn Write,
    subject: &Subject,
    explained: &[Explained],
    with_maps: bool,
) -> io::Result<()> {
    let packets: Vec<_> = explained.iter().map(|packet| of_packet(subject, packet)).collect();
    let mut all = json!({ "subject": subject.name, "packets": packets });
    if with_maps {
        let maps = |part| serde_json::to_value(MapsAsJson(part, Form::Both));
        all["maps"] = match subject.parts.as_slice() {
            [(_, only)] => maps(only)?,
            parts => {
                let by_object = parts.iter().map(|(name, part)| Ok((name.clone(), maps(part)?)));
                Json::Object(by_object.collect::<Result<_, serde_json::Error>>()?)
            }
        };
    }
    writeln!(out, "{all}")
}

/// The reasons of many packets.
pub(super) fn write_reasons(out: &mut dyn Write, subject: &Subject, reasons: &Reasons) -> io::Result<()> {
    writeln!(out, "{}", json!({ "subject": subject.name, "reasons": reasons::to_json(reasons) }))
}

fn of_packet(subject: &Subject, packet: &Explained) -> Json {
    let name = |node: usize| subject.programs.get(node).map(|program| program.name.as_str());
    let programs = packet.explanation.steps.iter().map(|(node, explanation, next)| {
        let next = match next {
            Next::Program(next) => json!({ "program": name(next.index()) }),
            Next::End(verdict) => json!({ "end": verdict.name() }),
        };
        explained(name(node.index()), explanation, &next)
    });
    let outcome = &packet.explanation.outcome;
    let changes = differences(&packet.bytes, &outcome.bytes).into_iter();
    let changes: Vec<_> =
        changes.map(|c| json!({ "field": c.name, "before": c.before, "after": c.after })).collect();
    let mut object = serde_json::Map::new();
    object.insert("packet".to_owned(), packet.number.into());
    object.insert("layers".to_owned(), to_text(&packet.bytes).into());
    object.extend(outcome::to_json(outcome, subject.ran_as()));
    object.insert("sentence".to_owned(), packet.explanation.sentence().into());
    object.insert("programs".to_owned(), programs.collect::<Vec<_>>().into());
    object.insert("changes".to_owned(), changes.into());
    Json::Object(object)
}
