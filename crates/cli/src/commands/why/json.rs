//! Explanations as JSON.

use std::io::{self, Write};

use paceline::chain::Next;
use paceline::explain::{At, Branch, Event, Explanation, Fact, FactKind};
use paceline::packet::{differences, to_text};
use serde_json::{Value as Json, json};

use super::explained::Explained;
use crate::subject::Subject;

pub(super) fn write(out: &mut dyn Write, subject: &Subject, explained: &[Explained]) -> io::Result<()> {
    let packets: Vec<_> = explained.iter().map(|packet| of_packet(subject, packet)).collect();
    writeln!(out, "{}", json!({ "subject": subject.name, "packets": packets }))
}

fn of_packet(subject: &Subject, packet: &Explained) -> Json {
    let name = |node: usize| subject.programs.get(node).map(|program| program.name.as_str());
    let programs = packet.explanation.steps.iter().map(|(node, explanation, next)| {
        let next = match next {
            Next::Program(next) => json!({ "program": name(next.index()) }),
            Next::End(verdict) => json!({ "end": verdict.name() }),
        };
        of_program(name(node.index()), explanation, &next)
    });
    let outcome = &packet.explanation.outcome;
    let changes = differences(&packet.bytes, &outcome.bytes).into_iter();
    let changes: Vec<_> =
        changes.map(|c| json!({ "field": c.name, "before": c.before, "after": c.after })).collect();
    json!({
        "packet": packet.number,
        "layers": to_text(&packet.bytes),
        "verdict": outcome.verdict.name(),
        "sentence": packet.explanation.sentence(),
        "programs": programs.collect::<Vec<_>>(),
        "changes": changes,
        "fault": outcome.fault.as_ref().map(ToString::to_string),
    })
}

fn of_program(name: Option<&str>, explanation: &Explanation, next: &Json) -> Json {
    let events: Vec<_> = explanation.events.iter().map(|event| of_event(explanation, event)).collect();
    json!({
        "name": name,
        "returned": explanation.outcome.code,
        "next": next,
        "decision": explanation.deciding().map(|branch| of_branch(explanation, branch)),
        "events": events,
        "truncated": explanation.truncated,
    })
}

fn of_event(explanation: &Explanation, event: &Event) -> Json {
    match event {
        Event::Line(at) => json!({ "line": place(explanation, *at) }),
        Event::Branch(branch) => json!({ "branch": of_branch(explanation, branch) }),
        Event::Call(call) => json!({ "call": {
            "at": place(explanation, call.at),
            "function": call.name,
            "element": call.element,
            "result": call.result,
        } }),
        Event::TailCall { at, to } => json!({ "tail_call": {
            "at": place(explanation, *at),
            "program": explanation.programs.get(*to).map(|program| program.name.as_str()),
        } }),
        _ => Json::Null,
    }
}

fn of_branch(explanation: &Explanation, branch: &Branch) -> Json {
    json!({
        "at": place(explanation, branch.at),
        "taken": branch.taken,
        "facts": branch.facts.iter().map(of_fact).collect::<Vec<_>>(),
    })
}

fn of_fact(fact: &Fact) -> Json {
    let kind = match fact.kind {
        FactKind::Packet => "packet",
        FactKind::Context => "context",
        FactKind::Element => "element",
        FactKind::Value => "value",
        FactKind::Result => "result",
        _ => "other",
    };
    json!({ "kind": kind, "name": fact.name, "value": fact.value })
}

fn place(explanation: &Explanation, at: At) -> Json {
    let program = explanation.programs.get(at.program).map(|program| program.name.as_str());
    let mut place = json!({ "program": program, "slot": at.slot });
    if let Some(line) = explanation.line(at) {
        place["file"] = Json::from(&*line.file);
        place["line"] = line.line.into();
        place["text"] = Json::from(line.text.trim());
    }
    place
}
