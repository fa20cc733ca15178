//! Explanations of packets as JSON.

use paceline::explain::{At, Branch, Event, Explanation, Fact, FactKind};
use serde_json::{Value as Json, json};

/// A run of a program: return value, `next` after it, the branch that decided, and all events.
#[must_use]
pub fn explained(name: Option<&str>, explanation: &Explanation, next: &Json) -> Json {
    let events: Vec<_> = explanation.events.iter().map(|event| of_event(explanation, event)).collect();
    json!({
        "name": name,
        "returned": explanation.outcome.returned,
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
        "variables": branch.variables.iter().map(of_fact).collect::<Vec<_>>(),
    })
}

fn of_fact(fact: &Fact) -> Json {
    let kind = match fact.kind {
        FactKind::Packet => "packet",
        FactKind::Context => "context",
        FactKind::Element => "element",
        FactKind::Value => "value",
        FactKind::Result => "result",
        FactKind::Variable => "variable",
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
