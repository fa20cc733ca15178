//! Diagnoses as JSON.

use std::time::Duration;

use paceline_verifier::Hint;
use serde_json::{Value as Json, json};

use super::advice;
use super::data::{Diagnosis, Place};

/// A refusal without the time of verification.
#[must_use]
pub fn refused_to_json(diagnosis: &Diagnosis) -> Json {
    let mut json = refused(diagnosis, Duration::ZERO);
    if let Some(members) = json.as_object_mut() {
        members.remove("stats");
    }
    json
}

/// A refusal, and the time of verification.
#[must_use]
pub fn refused(diagnosis: &Diagnosis, time: Duration) -> Json {
    let refusal = &diagnosis.refusal;
    let mut json = json!({
        "name": diagnosis.program,
        "verdict": "refused",
        "unsupported": diagnosis.unsupported,
        "function": diagnosis.function,
        "cause": { "kind": kind(&refusal.cause), "text": diagnosis.cause() },
        "registers": diagnosis
            .registers
            .iter()
            .map(|(reg, value)| (reg.to_string(), Json::from(value.as_str())))
            .collect::<serde_json::Map<_, _>>(),
        "hint": refusal.hint.map(hint),
        "invalidated_by": refusal.invalidated_by,
        "calls": refusal.calls,
        "stats": { "seconds": time.as_secs_f64() },
    });
    add_place(&mut json, &diagnosis.at);
    let path = diagnosis.path.iter().map(|(branch, place)| {
        let mut json = json!({ "taken": branch.taken });
        add_place(&mut json, place);
        json
    });
    json["path"] = path.collect();
    let origins = diagnosis.marks.iter().map(|mark| {
        let mut json = json!({ "text": mark.text });
        add_place(&mut json, &mark.place);
        json
    });
    json["marks"] = origins.collect();
    json
}

fn hint(hint: Hint) -> Json {
    json!({ "kind": kind(&hint), "text": hint.to_string(), "example": advice::example(hint) })
}

fn add_place(json: &mut Json, place: &Place) {
    json["slot"] = place.slot.into();
    json["instruction"] = place.insn.as_str().into();
    if let Some(line) = &place.line {
        json["file"] = line.file.as_str().into();
        json["line"] = line.line.into();
        json["column"] = line.column.into();
        json["source"] = line.text.trim().into();
    }
}

/// The name of an enum's variant, in the way of JSON: `out_of_bounds`.
fn kind(variant: &impl std::fmt::Debug) -> String {
    let text = format!("{variant:?}");
    let name = text.chars().take_while(char::is_ascii_alphanumeric);
    let mut kind = String::new();
    for c in name {
        if c.is_ascii_uppercase() && !kind.is_empty() {
            kind.push('_');
        }
        kind.push(c.to_ascii_lowercase());
    }
    kind
}
