//! The result as JSON.

use paceline::Object;
use paceline::generate::{Confirmed, Edge, Goal, Meets, Variant, network_text};
use serde_json::{Value as Json, json};

use super::found::Found;
use crate::inputs::{bounds_json, contents};
use crate::maps::Form;

pub(super) fn of(object: &Object, found: &Found) -> Json {
    let generated = &found.generated;
    let reached: Vec<_> = generated
        .reached
        .iter()
        .map(|(goal, confirmed)| with(found, *goal, input(object, confirmed)))
        .collect();
    let more = generated.more.iter().map(|more| {
        let mut members = input(object, &more.confirmed);
        members.push(("variant", variant(more.variant).into()));
        with(found, more.goal, members)
    });
    let unreachable = generated
        .unreachable
        .iter()
        .map(|(goal, by_verifier)| with(found, *goal, vec![("by_verifier", (*by_verifier).into())]));
    let given_up = generated.given_up.iter().map(|(goal, place)| {
        let members = vec![("at", found.place(place.slot).into()), ("reason", place.why.to_string().into())];
        with(found, *goal, members)
    });
    let left = generated
        .left
        .iter()
        .map(|place| json!({ "at": found.place(place.slot), "reason": place.why.to_string() }));
    let failures = generated
        .failures
        .iter()
        .map(|failure| with(found, failure.goal, vec![("reason", failure.how.to_string().into())]));
    json!({
        "program": found.program.name,
        "reached": reached,
        "more": more.collect::<Vec<_>>(),
        "unreachable": unreachable.collect::<Vec<_>>(),
        "given_up": given_up.collect::<Vec<_>>(),
        "left": left.collect::<Vec<_>>(),
        "failed": failures.collect::<Vec<_>>(),
        "unvaried": generated.unvaried,
        "paths": generated.paths,
        "bounds": bounds_json(&generated.bounds),
        "questions": generated.questions.0,
        "searches": generated.questions.1,
    })
}

type Members = Vec<(&'static str, Json)>;

/// A goal with further members.
fn with(found: &Found, goal: Goal, members: Members) -> Json {
    let mut object = serde_json::Map::new();
    object.insert("place".to_owned(), found.place(goal.slot()).into());
    object.insert("slot".to_owned(), goal.slot().into());
    let (name, value): (_, Json) = match goal {
        Goal::Side(side) => ("taken", side.taken.into()),
        Goal::Return { verdict, .. } => ("returns", verdict.name().into()),
        Goal::Operation { meets, .. } => ("meets", word(meets).into()),
        Goal::Path { number, .. } => ("path", (number + 1).into()),
    };
    object.insert(name.to_owned(), value);
    for (name, value) in members {
        object.insert(name.to_owned(), value);
    }
    Json::Object(object)
}

fn word(meets: Meets) -> &'static str {
    match meets {
        Meets::Found => "found",
        Meets::NotFound => "not found",
        Meets::Full => "full",
    }
}

fn variant(variant: Variant) -> &'static str {
    match variant {
        Variant::Filled => "other bytes",
        Variant::Inverted => "inverted bytes",
        Variant::Whole => "a whole path",
        Variant::At(edge) | Variant::AtJump(_, edge) => word_of(edge),
    }
}

fn word_of(edge: Edge) -> &'static str {
    match edge {
        Edge::Equal => "equal",
        Edge::Above => "one more",
        Edge::Below => "one less",
        Edge::Signs => "other signs",
    }
}

fn input(object: &Object, confirmed: &Confirmed) -> Members {
    let input = &confirmed.input;
    let packet: String = input.packet.iter().map(|byte| format!("{byte:02x}")).collect();
    let maps = input.maps.iter().filter_map(|(map, elements)| {
        let spec = object.maps().get(*map)?;
        Some((spec.name.clone(), contents(object, *map, elements, Form::Typed)))
    });
    vec![
        ("verdict", confirmed.verdict.name().into()),
        ("packet", packet.into()),
        ("maps", maps.collect::<serde_json::Map<_, _>>().into()),
        ("time_ns", input.time_ns.into()),
        ("seed", input.seed.into()),
        ("ingress", input.ingress.into()),
        ("queue", input.queue.into()),
        ("network", input.route.as_ref().map(network_text).into()),
    ]
}
