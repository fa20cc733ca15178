//! The result as JSON.

use paceline::Object;
use paceline::generate::{Confirmed, Side};
use serde_json::{Value as Json, json};

use super::elements::contents;
use super::found::Found;

pub(super) fn of(object: &Object, found: &Found) -> Json {
    let generated = &found.generated;
    let reached: Vec<_> =
        generated.reached.iter().map(|(side, confirmed)| input(object, found, *side, confirmed)).collect();
    let unreachable = generated
        .unreachable
        .iter()
        .map(|(side, by_verifier)| with(found, *side, &[("by_verifier", (*by_verifier).into())]));
    let given_up = generated.given_up.iter().map(|(side, place)| {
        with(
            found,
            *side,
            &[("at", found.place(place.slot).into()), ("reason", place.why.to_string().into())],
        )
    });
    let failures = generated
        .failures
        .iter()
        .map(|failure| with(found, failure.side, &[("reason", failure.how.to_string().into())]));
    json!({
        "program": found.program.name,
        "reached": reached,
        "unreachable": unreachable.collect::<Vec<_>>(),
        "given_up": given_up.collect::<Vec<_>>(),
        "failed": failures.collect::<Vec<_>>(),
        "paths": generated.paths,
        "questions": generated.questions.0,
        "searches": generated.questions.1,
    })
}

/// A side with further members.
fn with(found: &Found, side: Side, members: &[(&str, Json)]) -> Json {
    let mut object = serde_json::Map::new();
    object.insert("place".to_owned(), found.place(side.slot).into());
    object.insert("slot".to_owned(), side.slot.into());
    object.insert("taken".to_owned(), side.taken.into());
    for (name, value) in members {
        object.insert((*name).to_owned(), value.clone());
    }
    Json::Object(object)
}

fn input(object: &Object, found: &Found, side: Side, confirmed: &Confirmed) -> Json {
    let input = &confirmed.input;
    let packet: String = input.packet.iter().map(|byte| format!("{byte:02x}")).collect();
    let maps = input.maps.iter().filter_map(|(map, elements)| {
        let spec = object.maps().get(*map)?;
        Some((spec.name.clone(), contents(object, *map, elements)))
    });
    let members = [
        ("verdict", confirmed.verdict.name().into()),
        ("packet", packet.into()),
        ("maps", maps.collect::<serde_json::Map<_, _>>().into()),
        ("time_ns", input.time_ns.into()),
        ("seed", input.seed.into()),
        ("ingress", input.ingress.into()),
        ("queue", input.queue.into()),
    ];
    with(found, side, &members)
}
