//! Explanations of packets as JSON.

use paceline_analysis::explain::{At, Branch, Cause, CauseKind, Event, Explanation, Fact, FactKind};
use serde_json::{Value as Json, json};

/// A run of a program: return value, `next` after it, the decision that made its outcome and those behind it, and all events.
#[must_use]
pub fn explained(name: Option<&str>, explanation: &Explanation, next: &Json) -> Json {
    let events: Vec<_> = explanation.events.iter().map(|event| of_event(explanation, event)).collect();
    json!({
        "name": name,
        "returned": explanation.outcome.returned,
        "next": next,
        "decision": explanation.cause().map(|cause| of_cause(explanation, cause)),
        "causes": explanation.causes.iter().map(|cause| of_cause(explanation, cause)).collect::<Vec<_>>(),
        "known": explanation.is_known,
        "otherwise": explanation.otherwise,
        "target": explanation.target,
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

fn of_cause(explanation: &Explanation, cause: &Cause) -> Json {
    let kind = match cause.kind {
        CauseKind::Condition => "condition",
        CauseKind::Value => "value",
        CauseKind::TailCall { .. } => "tail_call",
        CauseKind::Load => "load",
        _ => "other",
    };
    json!({
        "at": place(explanation, cause.at),
        "kind": kind,
        "reason": explanation.reason(cause),
        "facts": cause.facts.iter().map(of_fact).collect::<Vec<_>>(),
        "variables": cause.variables.iter().map(of_fact).collect::<Vec<_>>(),
        "events": cause.events,
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
    let mut json = json!({ "kind": kind, "name": fact.name, "value": fact.value });
    if !fact.not.is_empty() {
        json["not"] = Json::from(fact.not.clone());
    }
    json
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
