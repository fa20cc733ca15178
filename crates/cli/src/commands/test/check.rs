//! Comparison of what came out with what is expected.

use std::sync::Arc;

use paceline::json::{JsonError, decode_written, encode_typed, project};
use paceline::packet::{Layers, differences, hex, to_text};
use paceline::{Map, Outcome, RanAs, Redirect, RedirectTarget, SkBuff, SkBuffMember, Verdict};
use serde_json::{Value as Json, json};

use super::after::check_map;
use super::case::{EventData, Expectation, ExpectedEvent, Out, Returned, Target};
use super::json::{has, to_toml};
use super::mismatch::{Mismatch, Parts};
use super::read::layers_of;
use crate::common::outcome;
use crate::subject::Subject;

/// Outcome of a step's last packet.
#[derive(Debug)]
pub(super) struct Actual {
    pub(super) input: Vec<u8>,
    pub(super) outcome: Outcome,
    /// Map and data of each event of the step.
    pub(super) events: Vec<(String, Vec<u8>)>,
}

/// Compares one expectation.
pub(super) fn check(expected: &Expectation, actual: &Actual, subject: &Subject) -> Option<Mismatch> {
    let parts = subject.parts.as_slice();
    match expected {
        Expectation::Verdict(verdict) => (*verdict != actual.outcome.verdict).then(|| {
            let name = actual.outcome.verdict.name();
            Mismatch::new("verdict", verdict.name(), name, format!("\"{name}\""))
        }),
        Expectation::Returns(wanted) => check_returned(wanted, actual.outcome.returned, subject.ran_as()),
        Expectation::Out(out) => check_out(out, actual),
        Expectation::Redirect(target, flags) => check_redirect(target, *flags, actual, parts),
        Expectation::Context(members) => check_context(members, actual.outcome.context.as_ref()),
        Expectation::Map { map, elements } => check_map(map, elements, parts),
        Expectation::Events(events) => check_events(events, actual, parts),
    }
}

fn check_returned(wanted: &Returned, got: u32, ran: RanAs) -> Option<Mismatch> {
    let (RanAs::Program(meaning) | RanAs::Chain(meaning)) = ran;
    let value = match wanted {
        Returned::Number(number) => *number,
        Returned::Name(name) => match meaning.value(name) {
            Some(value) => value,
            None => {
                let names: Vec<_> = meaning.named().iter().map(|action| action.name).collect();
                let all = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                let line = format!("returns: programs of this type return no `{name}` (available: {all})");
                return Some(Mismatch::without(line));
            }
        },
    };
    (value != got).then(|| {
        let instead = match (wanted, meaning.name(got)) {
            (Returned::Name(_), Some(name)) => Json::from(name).to_string(),
            _ => outcome::number(got, ran).to_string(),
        };
        Mismatch::new("returns", &outcome::returned(value, ran), &outcome::returned(got, ran), instead)
    })
}

/// Compares the members that are named.
fn check_context(wanted: &[(String, u64)], context: Option<&SkBuff>) -> Option<Mismatch> {
    let Some(context) = context else {
        let line = "context_out: only TC classifiers that run alone leave a context";
        return Some(Mismatch::without(line.to_owned()));
    };
    let (mut lines, mut instead) = (Vec::new(), serde_json::Map::new());
    for (name, value) in wanted {
        let Some(member) = SkBuffMember::named(name) else {
            return Some(Mismatch::without(format!("context_out: there is no field `{name}`")));
        };
        let got = member.of(context);
        if got != *value {
            lines.push(format!("context_out.{name}: expected {value}, got {got}"));
        }
        instead.insert(name.clone(), got.into());
    }
    let instead = Some(to_toml(&Json::Object(instead)));
    (!lines.is_empty()).then_some(Mismatch { lines, instead })
}

fn check_out(out: &Out, actual: &Actual) -> Option<Mismatch> {
    let whole = match out {
        Out::Fields(fields) => return check_fields(fields, actual),
        Out::Same => &actual.input,
        Out::Whole(bytes) => bytes,
    };
    if *whole == actual.outcome.bytes {
        return None;
    }
    let value = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
    let line = |name: &str, before: &str, after: &str| format!("  {name}: expected {before}, got {after}");
    let mut lines = vec!["out: another packet".to_owned()];
    let all = differences(whole, &actual.outcome.bytes);
    lines.extend(all.iter().map(|d| line(&d.name, &value(&d.before), &value(&d.after))));
    let instead =
        if actual.input == actual.outcome.bytes { "same".to_owned() } else { to_text(&actual.outcome.bytes) };
    Some(Mismatch { lines, instead: Some(Json::from(instead).to_string()) })
}

fn check_fields(fields: &[(String, String)], actual: &Actual) -> Option<Mismatch> {
    let layers = Layers::new(&actual.outcome.bytes);
    let mut lines = Vec::new();
    let mut instead = serde_json::Map::new();
    for (path, expected) in fields {
        let got = match path.as_str() {
            "len" => actual.outcome.bytes.len().to_string(),
            "layers" => layers_of(&actual.outcome.bytes),
            "payload" => payload(layers.payload()),
            path => layers.field(path).map_or_else(|| "nothing".to_owned(), |field| field.to_string()),
        };
        let is_met = match path.as_str() {
            "payload" => {
                super::read::bytes_of(expected).as_deref() == Some(layers.payload()) || got == *expected
            }
            "len" | "layers" => got == *expected,
            path => layers.field(path).is_some_and(|field| field.has(expected) == Some(true)),
        };
        if !is_met {
            lines.push(format!("out.{path}: expected {expected}, got {got}"));
        }
        instead.insert(path.clone(), got.parse::<u64>().map_or_else(|_| Json::from(got), Json::from));
    }
    let instead = Some(to_toml(&Json::Object(instead)));
    (!lines.is_empty()).then_some(Mismatch { lines, instead })
}

/// Text as it is, and other bytes in hexadecimal.
fn payload(bytes: &[u8]) -> String {
    let text = std::str::from_utf8(bytes).ok().filter(|text| !text.chars().any(char::is_control));
    text.map_or_else(|| hex(bytes), str::to_owned)
}

fn check_redirect(
    expected: &Target,
    flags: Option<u32>,
    actual: &Actual,
    parts: Parts<'_>,
) -> Option<Mismatch> {
    let Some(redirect) = actual.outcome.redirect else {
        return Some(Mismatch::without(format!("redirect: expected {}, got none", name(expected))));
    };
    if let Some(flags) = flags.filter(|flags| *flags != redirect.flags) {
        let line = format!("redirect: expected flags {flags:#x}, got {:#x}", redirect.flags);
        return Some(Mismatch::without(line));
    }
    check_target(expected, redirect, parts)
}

fn check_target(expected: &Target, redirect: Redirect, parts: Parts<'_>) -> Option<Mismatch> {
    let map_of = |id: u32| parts.iter().flat_map(|(_, part)| part.maps()).find(|map| map.id() == id);
    let got = match redirect.target {
        RedirectTarget::Interface { ifindex } => Target::Interface(ifindex),
        RedirectTarget::Map { map, key } => {
            let map = map_of(map);
            // An entry of a device map is an interface as well.
            let interface = map.and_then(|map| interface_of(map, key));
            if let (Target::Interface(wanted), Some(interface)) = (expected, interface)
                && *wanted == interface
            {
                return None;
            }
            Target::Map { map: map.map_or_else(String::new, |map| map.spec().name.clone()), key }
        }
    };
    (got != *expected).then(|| {
        let instead = match &got {
            Target::Interface(index) => index.to_string(),
            Target::Map { map, key } => to_toml(&json!({ "map": map, "key": key })),
        };
        Mismatch::new("redirect", &name(expected), &name(&got), instead)
    })
}

fn interface_of(map: &Arc<Map>, key: u32) -> Option<u32> {
    match map.redirect_target(key)? {
        paceline::MapTarget::Device { ifindex, .. } => Some(ifindex),
        _ => None,
    }
}

fn name(target: &Target) -> String {
    match target {
        Target::Interface(index) => format!("interface {index}"),
        Target::Map { map, key } => format!("{map}[{key}]"),
    }
}

/// All events, in order.
fn check_events(expected: &[ExpectedEvent], actual: &Actual, parts: Parts<'_>) -> Option<Mismatch> {
    let mut lines = Vec::new();
    if expected.len() != actual.events.len() {
        lines.push(format!("events: expected {}, got {}", expected.len(), actual.events.len()));
    }
    for (number, (expected, (map, data))) in (1..).zip(expected.iter().zip(&actual.events)) {
        if let Some(wanted) = expected.map.as_ref().filter(|wanted| *wanted != map) {
            lines.push(format!("event {number}: expected one of map {wanted}, got one of {map}"));
        }
        match &expected.data {
            None => {}
            Some(EventData::Bytes(bytes)) if data.starts_with(bytes) => {}
            Some(EventData::Bytes(bytes)) => {
                lines.push(format!("event {number}: expected {}, got {}", hex(bytes), hex(data)));
            }
            Some(EventData::Typed { ty, members }) => match typed(ty, data, members, parts) {
                Some(Ok((actual, expected))) if has(&actual, &expected) => {}
                Some(Ok((actual, expected))) => {
                    let got = project(&actual, &expected);
                    lines.push(format!("event {number}: expected {expected}, got {got}"));
                }
                Some(Err(error)) => lines.push(format!("event {number}: {error}")),
                None => {
                    lines.push(format!("event {number}: no object has a type `{ty}` that fits {}", hex(data)))
                }
            },
        }
    }
    let instead = actual.events.iter().zip(expected.iter().map(Some).chain(std::iter::repeat(None)));
    let instead = instead.map(|((map, data), expected)| {
        let as_type = match expected.and_then(|expected| expected.data.as_ref()) {
            Some(EventData::Typed { ty, members }) => typed(ty, data, members, parts)
                .and_then(Result::ok)
                .map(|(data, members)| json!({ "map": map, "type": ty, "data": project(&data, &members) })),
            _ => None,
        };
        as_type.unwrap_or_else(|| json!({ "map": map, "bytes": hex(data) }))
    });
    let instead = to_toml(&Json::Array(instead.collect()));
    (!lines.is_empty()).then_some(Mismatch { lines, instead: Some(instead) })
}

/// The first bytes of an event as a C type of one of the objects, and the members that are expected in the same form.
fn typed(ty: &str, data: &[u8], members: &Json, parts: Parts<'_>) -> Option<Result<(Json, Json), JsonError>> {
    let name = ty.strip_prefix("struct ").unwrap_or(ty);
    parts.iter().find_map(|(_, part)| {
        let btf = part.object().btf()?;
        let id = btf.find(name, |ty| ty.name().is_some())?;
        let data = data.get(..usize::try_from(btf.size_of(id).ok()?).ok()?)?;
        let shown = |bytes: &[u8]| decode_written(bytes, Some(btf), id);
        let expected = encode_typed(members, btf, id, data.len());
        Some(expected.map(|bytes| (shown(data), project(&shown(&bytes), members))))
    })
}

/// Expectations that the outcome meets, for a step without any.
pub(super) fn as_expected(actual: &Actual) -> Vec<(&'static str, String)> {
    let mut all = vec![("verdict", format!("\"{}\"", actual.outcome.verdict.name()))];
    let goes_on = !matches!(actual.outcome.verdict, Verdict::Drop | Verdict::Aborted);
    if goes_on && actual.input != actual.outcome.bytes {
        all.push(("out", Json::from(to_text(&actual.outcome.bytes)).to_string()));
    }
    all
}
