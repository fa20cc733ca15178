//! Printing maps.

use std::io::{self, Write};

use paceline::btf::{Btf, Value};
use paceline::{Collection, Map, MapKind};
use serde_json::{Map as JsonMap, Value as Json, json};

use super::json::{hex, to_json as value_to_json};
use super::variables;

/// Longest value that is written on one line.
const LINE: usize = 100;

/// An element: its key, and its value for each CPU.
struct Element {
    key: Vec<u8>,
    values: Vec<Vec<u8>>,
}

/// The elements that can be read.
fn elements(map: &Map) -> impl Iterator<Item = Element> {
    let keys = map.keys().into_iter().flatten();
    let (size, per_cpu) = (map.spec().value_size as usize, map.spec().kind.is_per_cpu());
    keys.filter_map(move |key| {
        let value = map.get(&key).ok()?;
        let values = match per_cpu {
            true => value
                .chunks(size.next_multiple_of(8).max(8))
                .map(|v| v.get(..size).unwrap_or(v).to_vec())
                .collect(),
            false => vec![value],
        };
        Some(Element { key, values })
    })
}

/// All maps by name, each as a list that `--map` takes; global variables as one object.
pub(crate) fn to_json(collection: &Collection) -> Json {
    let btf = collection.object().btf.as_deref();
    let maps = collection.maps().iter().map(|map| (map.spec().name.clone(), map_to_json(map, btf)));
    Json::Object(maps.collect::<JsonMap<_, _>>())
}

fn map_to_json(map: &Map, btf: Option<&Btf>) -> Json {
    let spec = map.spec();
    let show = |ty, bytes: &[u8]| decode(btf, ty, bytes).map_or_else(|| hex(bytes), |v| value_to_json(&v));
    if variables(btf, spec).is_some() {
        let value = elements(map).next().and_then(|element| element.values.into_iter().next());
        return show(spec.value_type, &value.unwrap_or_default());
    }
    let one = |element: Element| {
        let key = show(spec.key_type, &element.key);
        let mut values = element.values.iter().map(|value| show(spec.value_type, value));
        if !spec.kind.is_per_cpu() {
            return json!({ "key": key, "value": values.next() });
        }
        let values: Vec<Json> =
            values.enumerate().map(|(cpu, value)| json!({ "cpu": cpu, "value": value })).collect();
        json!({ "key": key, "values": values })
    };
    elements(map).map(one).collect()
}

/// All maps as C would write them, keys and values by their types. Elements of arrays that are zero are left out.
pub(crate) fn write_text(out: &mut dyn Write, collection: &Collection) -> io::Result<()> {
    let btf = collection.object().btf.as_deref();
    collection.maps().iter().try_for_each(|map| write_map(out, map, btf))
}

fn write_map(out: &mut dyn Write, map: &Map, btf: Option<&Btf>) -> io::Result<()> {
    let spec = map.spec();
    writeln!(out)?;
    if variables(btf, spec).is_some() {
        writeln!(out, "{}", spec.name)?;
        return write_variables(out, map, btf);
    }
    writeln!(out, "{} ({}, at most {} entries)", spec.name, spec.kind, spec.max_entries)?;
    let is_array = matches!(spec.kind, MapKind::Array | MapKind::PerCpuArray);
    let (mut shown, mut zero) = (0u64, 0u64);
    for element in elements(map) {
        if is_array && element.values.iter().flatten().all(|&byte| byte == 0) {
            zero += 1;
            continue;
        }
        shown += 1;
        write_element(out, &element, map, btf)?;
    }
    match (shown, zero) {
        (0, 0) => writeln!(out, "  empty"),
        (0, _) => writeln!(out, "  all zero"),
        (_, 0) => Ok(()),
        (_, zero) => writeln!(out, "  the other {zero} are zero"),
    }
}

fn write_element(out: &mut dyn Write, element: &Element, map: &Map, btf: Option<&Btf>) -> io::Result<()> {
    let spec = map.spec();
    let key = text(btf, spec.key_type, &element.key);
    for (cpu, value) in element.values.iter().enumerate() {
        let on = if element.values.len() > 1 { format!(" on cpu {cpu}") } else { String::new() };
        writeln!(out, "  [{key}]{on} = {}", text(btf, spec.value_type, value))?;
    }
    Ok(())
}

fn write_variables(out: &mut dyn Write, map: &Map, btf: Option<&Btf>) -> io::Result<()> {
    for element in elements(map) {
        let value = element.values.first().map(Vec::as_slice).unwrap_or_default();
        match decode(btf, map.spec().value_type, value) {
            Some(Value::Struct(variables)) => {
                for (name, value) in variables {
                    writeln!(out, "  {name} = {}", fold(&value))?;
                }
            }
            _ => writeln!(out, "  {}", spaced(value))?,
        }
    }
    Ok(())
}

/// A value by its type; `None` without one, and where bytes and type do not agree.
fn decode(btf: Option<&Btf>, ty: u32, bytes: &[u8]) -> Option<Value> {
    btf.filter(|_| ty != 0)?.decode(ty, bytes).ok()
}

fn text(btf: Option<&Btf>, ty: u32, bytes: &[u8]) -> String {
    decode(btf, ty, bytes).map_or_else(|| spaced(bytes), |value| fold(&value))
}

/// On one line if it is short.
fn fold(value: &Value) -> String {
    let line = value.to_string();
    if line.len() <= LINE { line } else { format!("{value:#}").replace('\n', "\n  ") }
}

/// `0a 00 00 00`
fn spaced(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
