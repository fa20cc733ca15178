//! Comparison of maps with what a step expects of them.

use paceline::Collection;
use paceline::json::{ElementError, JsonMap, project};
use paceline::with_causes;
use serde_json::{Value as Json, json};

use super::json::{has, to_toml};
use super::mismatch::{Mismatch, Parts};

/// The differences of a map, and what would be expected in the place of what is.
struct Compared {
    lines: Vec<String>,
    instead: Json,
}

/// Compares the elements that are named; the map may have others.
pub(super) fn check_map(name: &str, expected: &Json, parts: Parts<'_>) -> Option<Mismatch> {
    let Some((part, collection)) = parts.iter().find(|(_, part)| part.map(name).is_some()) else {
        return Some(Mismatch::without(format!("after.{name}: there is no such map")));
    };
    let Some(map) = collection.json_map(name) else {
        return Some(Mismatch::without(format!("after.{name}: {part} has it with another type")));
    };
    let place = format!("after.{name}");
    let compared = match map.holds_variables() {
        true => variables(&place, &map.written(), expected),
        false => elements(&place, &map.written(), expected, collection),
    };
    match compared {
        Ok(compared) if compared.lines.is_empty() => None,
        Ok(Compared { lines, instead }) => Some(Mismatch { lines, instead: Some(to_toml(&instead)) }),
        Err(line) => Some(Mismatch::without(line)),
    }
}

/// An expectation that says nothing about a map.
fn wrong(place: &str, error: &ElementError) -> String {
    format!("{place}: {}", with_causes(error))
}

/// The variables of a section are its only value.
fn variables(place: &str, map: &JsonMap, expected: &Json) -> Result<Compared, String> {
    let actual = map.lookup(&json!(0)).map_err(|error| wrong(place, &error))?.unwrap_or(Json::Null);
    value(place, map, &actual, expected)
}

fn value(place: &str, map: &JsonMap, actual: &Json, expected: &Json) -> Result<Compared, String> {
    let expected = map.normalized(expected).map_err(|error| wrong(place, &error))?;
    let instead = project(actual, &expected);
    let is_met = has(actual, &expected);
    let lines =
        if is_met { Vec::new() } else { vec![format!("{place}: expected {expected}, got {instead}")] };
    Ok(Compared { lines, instead })
}

/// The elements of a list, or of a table by their keys, as in map files.
fn elements(place: &str, map: &JsonMap, expected: &Json, part: &Collection) -> Result<Compared, String> {
    let by_key = |(key, value): (&String, &Json)| {
        let number = serde_json::from_str(key).ok().filter(Json::is_number);
        json!({ "key": number.unwrap_or_else(|| key.as_str().into()), "value": value })
    };
    let listed: Vec<Json> = match expected {
        Json::Object(members) => members.iter().map(by_key).collect(),
        Json::Array(elements) => elements.clone(),
        _ => return Err(format!("{place}: a list of elements is expected, not {expected}")),
    };
    let mut all = Compared { lines: Vec::new(), instead: json!([]) };
    for expected in &listed {
        let key = expected.get("key").ok_or_else(|| format!("{place}: an element needs a `key`"))?;
        let Compared { lines, instead } = element(&format!("{place}[{key}]"), map, key, expected, part)?;
        all.lines.extend(lines);
        if let Json::Array(list) = &mut all.instead {
            list.push(instead);
        }
    }
    Ok(all)
}

fn element(
    place: &str,
    map: &JsonMap,
    key: &Json,
    expected: &Json,
    part: &Collection,
) -> Result<Compared, String> {
    let found = map.lookup(key).map_err(|error| wrong(place, &error))?;
    let is_absent = expected.get("absent").is_some_and(|absent| *absent == json!(true));
    let Some(actual) = found else {
        let line = format!("{place}: expected an element, got none");
        let lines = if is_absent { Vec::new() } else { vec![line] };
        return Ok(Compared { lines, instead: json!({ "key": key, "absent": true }) });
    };
    if is_absent {
        let actual = only(&actual);
        let line = format!("{place}: expected no element, got {actual}");
        return Ok(Compared { lines: vec![line], instead: json!({ "key": key, "value": actual }) });
    }
    let (named, compared) = match (expected.get("value"), expected.get("values")) {
        (Some(wanted), _) if map.spec().inner.is_some() => ("value", of_map(place, map, key, wanted, part)?),
        (Some(wanted), _) if map.spec().kind.is_per_cpu() => ("value", on_all(place, map, &actual, wanted)?),
        (Some(wanted), _) => ("value", value(place, map, &actual, wanted)?),
        (None, Some(wanted)) => ("values", by_cpu(place, map, &actual, wanted)?),
        (None, None) => return Ok(Compared { lines: Vec::new(), instead: json!({ "key": key }) }),
    };
    Ok(Compared { lines: compared.lines, instead: json!({ "key": key, named: compared.instead }) })
}

/// The value of a per-CPU map where there is one CPU.
fn only(actual: &Json) -> &Json {
    match actual.as_array().map(Vec::as_slice) {
        Some([only]) => only,
        _ => actual,
    }
}

/// One value that all CPUs have, as map files give it to all.
fn on_all(place: &str, map: &JsonMap, actual: &Json, expected: &Json) -> Result<Compared, String> {
    let values = actual.as_array().map(Vec::as_slice).unwrap_or_default();
    let each = |(cpu, actual): (usize, &Json)| {
        let place = if values.len() == 1 { place.to_owned() } else { format!("{place} on cpu {cpu}") };
        value(&place, map, actual, expected)
    };
    let compared = values.iter().enumerate().map(each).collect::<Result<Vec<_>, _>>()?;
    let first = compared.iter().find(|compared| !compared.lines.is_empty()).or(compared.first());
    let instead = first.map_or(Json::Null, |compared| compared.instead.clone());
    Ok(Compared { lines: compared.into_iter().flat_map(|compared| compared.lines).collect(), instead })
}

/// Values by the numbers of their CPUs: `[{ cpu = 0, value = 5 }]`.
fn by_cpu(place: &str, map: &JsonMap, actual: &Json, expected: &Json) -> Result<Compared, String> {
    let form = || format!("{place}: `values` is a list of {{ cpu = N, value = ... }} of a per-CPU map");
    if !map.spec().kind.is_per_cpu() {
        return Err(form());
    }
    let (mut lines, mut instead) = (Vec::new(), Vec::new());
    for one in expected.as_array().ok_or_else(form)? {
        let cpu = one.get("cpu").and_then(Json::as_u64).ok_or_else(form)?;
        let wanted = one.get("value").ok_or_else(form)?;
        let actual = usize::try_from(cpu).ok().and_then(|cpu| actual.get(cpu));
        let actual = actual.ok_or_else(|| format!("{place}: there is no CPU {cpu}"))?;
        let compared = value(&format!("{place} on cpu {cpu}"), map, actual, wanted)?;
        lines.extend(compared.lines);
        instead.push(json!({ "cpu": cpu, "value": compared.instead }));
    }
    Ok(Compared { lines, instead: Json::Array(instead) })
}

/// A map in a map: another map of the object by its name, or the elements of one.
fn of_map(
    place: &str,
    map: &JsonMap,
    key: &Json,
    expected: &Json,
    part: &Collection,
) -> Result<Compared, String> {
    let inner = map.inner(key).map_err(|error| wrong(place, &error))?;
    let Some(inner) = inner else {
        return Ok(Compared {
            lines: vec![format!("{place}: expected a map, got none")],
            instead: json!([]),
        });
    };
    let Some(name) = expected.as_str() else { return elements(place, &inner, expected, part) };
    let wanted = part.map(name).ok_or_else(|| format!("{place}: there is no map `{name}`"))?;
    let named = part.maps().iter().find(|named| named.id() == inner.map().id());
    let (got, instead) = match named {
        Some(map) => (format!("map `{}`", map.spec().name), json!(map.spec().name)),
        None => ("a map without a name".to_owned(), json!([])),
    };
    let is_met = wanted.id() == inner.map().id();
    let lines = if is_met { Vec::new() } else { vec![format!("{place}: expected map `{name}`, got {got}")] };
    Ok(Compared { lines, instead })
}
