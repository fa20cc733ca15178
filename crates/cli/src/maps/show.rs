//! Printing maps.

use std::io::{self, Write};

use paceline::btf::{Btf, Value};
use paceline::{Collection, Map, MapKind};
use serde_json::{Map as JsonMap, Value as Json, json};

use super::json::{hex, to_json as value_to_json};
use super::variables;

/// Longest value that is written on one line.
const LINE: usize = 100;

/// A map and what its bytes mean.
struct View<'a> {
    map: &'a Map,
    btf: Option<&'a Btf>,
}

/// An element: its key, and its value for each CPU.
struct Element {
    key: Vec<u8>,
    values: Vec<Vec<u8>>,
}

impl<'a> View<'a> {
    fn of(map: &'a Map, collection: &'a Collection) -> Self {
        Self { map, btf: collection.object().btf.as_deref() }
    }

    fn is_array(&self) -> bool {
        matches!(self.map.spec().kind, MapKind::Array | MapKind::PerCpuArray)
    }

    fn holds_variables(&self) -> bool {
        variables(self.btf, self.map.spec()).is_some()
    }

    /// The elements that can be read. Hashes have no order that would be the same in the next run, so theirs are
    /// sorted.
    fn elements(&self) -> Vec<Element> {
        let keys = self.map.keys().into_iter().flatten();
        let mut elements: Vec<_> = keys.filter_map(|key| self.element(key)).collect();
        if !self.is_array() {
            elements.sort_by_cached_key(|element| (self.number(&element.key), element.key.clone()));
        }
        elements
    }

    fn element(&self, key: Vec<u8>) -> Option<Element> {
        let value = self.map.get(&key).ok()?;
        let size = self.map.spec().value_size as usize;
        if !self.map.spec().kind.is_per_cpu() {
            return Some(Element { key, values: vec![value] });
        }
        let values = value.chunks(size.next_multiple_of(8).max(8));
        Some(Element { key, values: values.map(|v| v.get(..size).unwrap_or(v).to_vec()).collect() })
    }

    /// The number that a key is, if it is one.
    fn number(&self, key: &[u8]) -> Option<i128> {
        match self.key(key)? {
            Value::Signed(n) | Value::Enum { value: n, .. } => Some(n),
            Value::Unsigned(n) => i128::try_from(n).ok(),
            _ => None,
        }
    }

    /// A key by its type; keys of arrays are numbers even without one.
    fn key(&self, bytes: &[u8]) -> Option<Value> {
        let index = || {
            let index = bytes.try_into().ok().filter(|_| self.is_array());
            index.map(|bytes| Value::Unsigned(u32::from_ne_bytes(bytes).into()))
        };
        self.decode(self.map.spec().key_type, bytes).or_else(index)
    }

    fn value(&self, bytes: &[u8]) -> Option<Value> {
        self.decode(self.map.spec().value_type, bytes)
    }

    /// `None` without a type, and where bytes and type do not agree.
    fn decode(&self, ty: u32, bytes: &[u8]) -> Option<Value> {
        self.btf.filter(|_| ty != 0)?.decode(ty, bytes).ok()
    }
}

/// All maps by name, each as a list that `--map` takes; global variables as one object.
pub(crate) fn to_json(collection: &Collection) -> Json {
    let maps = collection.maps().iter().map(|map| {
        let view = View::of(map, collection);
        (map.spec().name.clone(), map_to_json(&view))
    });
    Json::Object(maps.collect::<JsonMap<_, _>>())
}

fn map_to_json(view: &View<'_>) -> Json {
    let show = |value: Option<Value>, bytes: &[u8]| value.map_or_else(|| hex(bytes), |v| value_to_json(&v));
    let elements = view.elements();
    if view.holds_variables() {
        let value = elements.first().and_then(|element| element.values.first());
        let bytes = value.map(Vec::as_slice).unwrap_or_default();
        return show(view.value(bytes), bytes);
    }
    let one = |Element { key, values }: &Element| {
        let key = show(view.key(key), key);
        let mut values = values.iter().map(|value| show(view.value(value), value));
        if !view.map.spec().kind.is_per_cpu() {
            return json!({ "key": key, "value": values.next() });
        }
        let values: Json =
            values.enumerate().map(|(cpu, value)| json!({ "cpu": cpu, "value": value })).collect();
        json!({ "key": key, "values": values })
    };
    elements.iter().map(one).collect()
}

/// All maps as C would write them, keys and values by their types. Elements of arrays that are zero are left out.
pub(crate) fn write_text(out: &mut dyn Write, collection: &Collection) -> io::Result<()> {
    collection.maps().iter().try_for_each(|map| write_map(out, &View::of(map, collection)))
}

fn write_map(out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    let spec = view.map.spec();
    writeln!(out)?;
    if view.holds_variables() {
        writeln!(out, "{}", spec.name)?;
        return write_variables(out, view);
    }
    writeln!(out, "{} ({}, at most {} entries)", spec.name, spec.kind, spec.max_entries)?;
    let (mut shown, mut zero) = (0u64, 0u64);
    for element in view.elements() {
        if view.is_array() && element.values.iter().flatten().all(|&byte| byte == 0) {
            zero += 1;
            continue;
        }
        shown += 1;
        write_element(out, &element, view)?;
    }
    match (shown, zero) {
        (0, 0) => writeln!(out, "  empty"),
        (0, _) => writeln!(out, "  all zero"),
        (_, 0) => Ok(()),
        (_, 1) => writeln!(out, "  the other one is zero"),
        (_, zero) => writeln!(out, "  the other {zero} are zero"),
    }
}

fn write_element(out: &mut dyn Write, element: &Element, view: &View<'_>) -> io::Result<()> {
    let key = text(view.key(&element.key), &element.key);
    for (cpu, value) in element.values.iter().enumerate() {
        let on = if element.values.len() > 1 { format!(" on cpu {cpu}") } else { String::new() };
        writeln!(out, "  [{key}]{on} = {}", text(view.value(value), value))?;
    }
    Ok(())
}

fn write_variables(out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    for element in view.elements() {
        let bytes = element.values.first().map(Vec::as_slice).unwrap_or_default();
        match view.value(bytes) {
            Some(Value::Struct(variables)) => {
                variables.iter().try_for_each(|(name, value)| writeln!(out, "  {name} = {}", fold(value)))?
            }
            _ => writeln!(out, "  {}", spaced(bytes))?,
        }
    }
    Ok(())
}

fn text(value: Option<Value>, bytes: &[u8]) -> String {
    value.map_or_else(|| spaced(bytes), |value| fold(&value))
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
