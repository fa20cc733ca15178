//! Answers to requests on the control socket.

use paceline::with_causes;
use std::sync::Arc;

use paceline::Map;
use paceline::chain::{Drawing, dot, svg};
use paceline::json::JsonMap;
use serde_json::{Value as Json, json};

use super::maps::named;
use super::report::Counts;
use crate::chain::{Loaded, Part, to_json, write_layout, write_reasons};
use crate::control::{ChainForm, Request};
use crate::maps::{Form, MapAsJson};

/// Answers a request; `stop` is called by the request of this name.
pub(super) fn answer(
    request: &Request,
    loaded: &Loaded,
    counts: &Counts<'_>,
    stop: impl FnOnce(),
) -> Result<Json, String> {
    match request {
        Request::Status { .. } => Ok(status(loaded, counts)),
        Request::Stop => {
            stop();
            Ok(Json::Null)
        }
        Request::Chain(form) => chain(*form, loaded),
        Request::Capture(_) => Err("a capture is answered with packets, not with a value".to_owned()),
        Request::MapList => Ok(list(loaded)),
        Request::MapShow { map } => show(map, loaded),
        Request::MapDump { map } => dump(&named(map, &loaded.parts)?, loaded),
        Request::MapGet { map, key } => found(named(map, &loaded.parts)?.lookup(key)),
        Request::MapSet { map, key, value } => {
            let changed = named(map, &loaded.parts)?.insert(key, value);
            changed.map(|()| Json::Null).map_err(|error| with_causes(&error))
        }
        Request::MapDelete { map, key } => match named(map, &loaded.parts)?.delete(key) {
            Ok(true) => Ok(Json::Null),
            Ok(false) => Err("there is no element of this key".to_owned()),
            Err(error) => Err(with_causes(&error)),
        },
    }
}

/// The chain as JSON, or as a text in another form.
fn chain(form: ChainForm, loaded: &Loaded) -> Result<Json, String> {
    let layout = loaded.layout();
    let drawing = Drawing { graph: &layout.graph, names: &layout.names, packets: None };
    let mut out = Vec::new();
    match form {
        ChainForm::Json => return Ok(to_json(loaded, &layout)),
        ChainForm::Text => write_layout(&mut out, &layout).map_err(|error| error.to_string())?,
        ChainForm::Explain => write_reasons(&mut out, &layout).map_err(|error| error.to_string())?,
        ChainForm::Dot => out = dot(&drawing).into_bytes(),
        ChainForm::Svg => out = svg(&drawing).into_bytes(),
    }
    Ok(String::from_utf8_lossy(&out).into())
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
fn show(map: &str, loaded: &Loaded) -> Result<Json, String> {
    let map = named(map, &loaded.parts)?;
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

/// The elements of a map, or its variables, as `run --json` has them.
fn dump(map: &JsonMap, loaded: &Loaded) -> Result<Json, String> {
    if map.map().values().is_err() {
        map.iter().map(drop).map_err(|error| with_causes(&error))?;
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
        Err(error) => Err(with_causes(&error)),
    }
}
