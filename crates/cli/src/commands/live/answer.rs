//! Answers to requests on the control socket.

use std::sync::Arc;

use paceline::Map;
use paceline::chain::{Drawing, dot, svg};
use paceline::json::JsonMap;
use serde_json::{Value as Json, json};

use super::maps::named;
use super::report::Counts;
use crate::chain::{Loaded, Part, to_json, write_layout, write_reasons};
use crate::maps::{Form, MapAsJson};

/// Answers a request; `stop` is called by the request of this name.
pub(super) fn answer(
    request: &Json,
    loaded: &Loaded,
    counts: &Counts<'_>,
    stop: impl FnOnce(),
) -> Result<Json, String> {
    match text(request, "command")? {
        "status" => Ok(status(loaded, counts)),
        "stop" => {
            stop();
            Ok(Json::Null)
        }
        "chain" => chain(request, loaded),
        "map list" => Ok(list(loaded)),
        "map show" => show(request, loaded),
        "map dump" => dump(&map(request, loaded)?, loaded),
        "map get" => found(map(request, loaded)?.lookup(value(request, "key")?)),
        "map set" => {
            let changed = map(request, loaded)?.update(value(request, "key")?, value(request, "value")?, 0);
            changed.map(|()| Json::Null).map_err(|error| error.to_string())
        }
        "map delete" => match map(request, loaded)?.delete(value(request, "key")?) {
            Ok(true) => Ok(Json::Null),
            Ok(false) => Err("there is no element of this key".to_owned()),
            Err(error) => Err(error.to_string()),
        },
        other => Err(format!(
            "`{other}` is no command; it must be status, stop, chain, capture, map list, map show, map dump, map get, map set or map delete"
        )),
    }
}

/// The chain as JSON, or as a text in another form.
fn chain(request: &Json, loaded: &Loaded) -> Result<Json, String> {
    let layout = loaded.layout();
    let drawing = Drawing { graph: &layout.graph, names: &layout.names, packets: None };
    let mut out = Vec::new();
    match request.get("form").map_or(Some("json"), Json::as_str) {
        Some("json") => return Ok(to_json(loaded, &layout)),
        Some("text") => write_layout(&mut out, &layout).map_err(|error| error.to_string())?,
        Some("explain") => write_reasons(&mut out, &layout).map_err(|error| error.to_string())?,
        Some("dot") => out = dot(&drawing).into_bytes(),
        Some("svg") => out = svg(&drawing).into_bytes(),
        _ => return Err("`form` must be json, text, explain, dot or svg".to_owned()),
    }
    Ok(String::from_utf8_lossy(&out).into())
}

fn text<'a>(request: &'a Json, name: &str) -> Result<&'a str, String> {
    value(request, name)?.as_str().ok_or_else(|| format!("`{name}` is no text"))
}

fn value<'a>(request: &'a Json, name: &str) -> Result<&'a Json, String> {
    request.get(name).ok_or_else(|| format!("`{name}` is missing"))
}

fn status(loaded: &Loaded, counts: &Counts<'_>) -> Json {
    let layout = loaded.live.layout();
    let mut status = counts.to_json();
    status["pid"] = std::process::id().into();
    status["revision"] = layout.revision.into();
    status["programs"] = layout.names.into();
    status
}

fn list(loaded: &Loaded) -> Json {
    let of = |part: &Part| -> Vec<Json> {
        part.collection.maps().iter().map(|map| described(&part.name, map)).collect()
    };
    loaded.parts.iter().flat_map(of).collect()
}

/// A map's definition and the name of its object.
fn described(object: &str, map: &Map) -> Json {
    let spec = map.spec();
    json!({
        "object": object,
        "name": spec.name,
        "type": spec.kind.name(),
        "key_size": spec.key_size,
        "value_size": spec.value_size,
        "max_entries": spec.max_entries,
    })
}

/// A map's definition and its number of elements.
fn show(request: &Json, loaded: &Loaded) -> Result<Json, String> {
    let map = map(request, loaded)?;
    let has = |part: &&Part| part.collection.maps().iter().any(|other| Arc::ptr_eq(other, map.map()));
    let object = loaded.parts.iter().find(has).map_or("", |part| part.name.as_str());
    let mut shown = described(object, map.map());
    shown["frozen"] = map.map().is_frozen().into();
    // Also where only programs may read.
    if let Some(elements) = map.map().for_programs().elements() {
        shown["entries"] = elements.into();
    }
    Ok(shown)
}

/// The map that a request names.
fn map(request: &Json, loaded: &Loaded) -> Result<JsonMap, String> {
    named(text(request, "map")?, &loaded.parts)
}

/// The elements of a map, or its variables, as `run --json` has them.
fn dump(map: &JsonMap, loaded: &Loaded) -> Result<Json, String> {
    if map.map().values().is_err() {
        map.iter().map(drop).map_err(|error| error.to_string())?;
    }
    let name = &map.spec().name;
    let is_it = |part: &&Part| part.collection.map(name).is_some_and(|own| Arc::ptr_eq(own, map.map()));
    let part = loaded.parts.iter().find(is_it).ok_or_else(|| format!("there is no map {name}"))?;
    let map = MapAsJson::named(&part.collection, name, Form::Both);
    serde_json::to_value(map).map_err(|error| error.to_string())
}

fn found(value: Result<Option<Json>, paceline::json::ElementError>) -> Result<Json, String> {
    match value {
        Ok(Some(value)) => Ok(value),
        Ok(None) => Err("there is no element of this key".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}
