//! Maps of a live run by their names.

use std::sync::Arc;

use paceline::json::JsonMap;

use crate::chain::Part;

/// A map by its name: `MAP`, or `OBJECT:MAP` where several objects have one of the name.
pub(super) fn named(name: &str, parts: &[Part]) -> Result<JsonMap, String> {
    let found: Vec<_> = parts.iter().filter_map(|part| part.collection.json_map(name)).collect();
    match found.as_slice() {
        [map] => return Ok(map.clone()),
        [] => {}
        [first, others @ ..] => {
            if others.iter().all(|other| Arc::ptr_eq(other.map(), first.map())) {
                return Ok(first.clone());
            }
            return Err(format!("several objects have a map {name}; say OBJECT:{name}"));
        }
    }
    let of_object = name.rsplit_once(':').and_then(|(object, map)| {
        let part = parts.iter().find(|part| part.name == object)?;
        part.collection.json_map(map)
    });
    of_object.ok_or_else(|| {
        let names = parts.iter().flat_map(|part| part.collection.maps()).map(|map| map.spec().name.clone());
        format!("there is no map {name}, only {}", names.collect::<Vec<_>>().join(", "))
    })
}
