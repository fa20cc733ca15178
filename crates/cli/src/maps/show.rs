//! Printing maps.

use std::io::{self, Write};

use paceline::btf::{Btf, Value};
use paceline::contents::variables;
use paceline::json::{hex, to_json, to_written_json};
use paceline::{Collection, Map, MapFlags, MapSpec};
use serde::{Serialize, Serializer};
use serde_json::{Value as Json, json};

use super::fold::fold;

/// Indentation of all that is in a map.
const INDENT: usize = 2;

/// The form of keys and values in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As bpftool writes them: addresses are numbers or bytes.
    Typed,
    /// As people write them: addresses and numbers in network byte order are texts.
    Written,
    /// The typed form, and beside it in `written` those parts of an element that people write otherwise; among variables, whose names have no
    /// dots, in `.written`.
    Both,
}

impl Form {
    /// A value in a form without another beside it, or bytes where there is no type.
    pub(crate) fn of(self, value: Option<Value>, bytes: &[u8]) -> Json {
        match value {
            None => hex(bytes),
            Some(value) if self == Self::Written => to_written_json(&value),
            Some(value) => to_json(&value),
        }
    }
}

/// A map and the types of its bytes.
struct View<'a> {
    map: &'a Map,
    /// The specification in this object: `map.spec()` of a shared map has the type numbers of another object.
    spec: &'a MapSpec,
    btf: Option<&'a Btf>,
    collection: &'a Collection,
}

/// An element: its key, which is empty where there are none, and its value for each CPU.
struct Element {
    key: Vec<u8>,
    values: Vec<Vec<u8>>,
}

impl Element {
    fn is_zero(&self) -> bool {
        self.values.iter().flatten().all(|&byte| byte == 0)
    }
}

impl<'a> View<'a> {
    fn all(collection: &'a Collection) -> impl Iterator<Item = Self> {
        let maps = collection.maps().iter().zip(collection.object().maps());
        // Counters of coverage are in a map that the object does not have.
        let maps = maps.filter(|(_, spec)| !collection.is_counters(&spec.name));
        maps.map(move |(map, spec)| Self::of(map, spec, collection))
    }

    fn of(map: &'a Map, spec: &'a MapSpec, collection: &'a Collection) -> Self {
        Self { map, spec, btf: collection.object().btf(), collection }
    }

    fn is_array(&self) -> bool {
        self.spec.kind.is_array()
    }

    fn holds_variables(&self) -> bool {
        self.btf.is_some_and(|btf| variables(btf, self.spec).is_some())
    }

    /// The elements that can be read. Hashes have no order that would be the same in the next run, so theirs are
    /// sorted; arrays may be far larger than what is worth keeping.
    fn elements(&self) -> Box<dyn Iterator<Item = Element> + '_> {
        if let Ok(values) = self.map.values() {
            let element = |value| Element { key: Vec::new(), values: vec![value] };
            return Box::new(values.into_iter().map(element));
        }
        let keys = self.map.keys().into_iter().flatten();
        let elements = keys.filter_map(|key| self.element(key));
        if self.is_array() {
            return Box::new(elements);
        }
        let mut elements: Vec<_> = elements.collect();
        elements.sort_by_cached_key(|element| (self.number(&element.key), element.key.clone()));
        Box::new(elements.into_iter())
    }

    /// Without the zero elements of arrays, which may be millions.
    fn kept(&self) -> impl Iterator<Item = Element> + '_ {
        self.elements().filter(|element| !(self.is_array() && element.is_zero()))
    }

    fn element(&self, key: Vec<u8>) -> Option<Element> {
        let value = self.map.lookup(&key).ok().or_else(|| self.socket(&key))?;
        let size = self.spec.value_size as usize;
        if !self.spec.kind.is_per_cpu() {
            return Some(Element { key, values: vec![value] });
        }
        let values = value.chunks(self.map.value_stride());
        Some(Element { key, values: values.map(|v| v.get(..size).unwrap_or(v).to_vec()).collect() })
    }

    /// The number of a socket, which look-ups in its map do not return, as in the kernel.
    fn socket(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.map.for_programs().socket(key).map(|number| number.to_ne_bytes().to_vec())
    }

    /// The number that a key is, if it is one.
    fn number(&self, key: &[u8]) -> Option<i128> {
        match self.key(key)? {
            Value::Signed(n) | Value::Enum { value: n, .. } => Some(n),
            Value::Unsigned(n) => i128::try_from(n).ok(),
            _ => None,
        }
    }

    fn key(&self, bytes: &[u8]) -> Option<Value> {
        self.spec.decode_key(self.btf, bytes)
    }

    /// A value by its type; programs and maps by their names.
    fn value(&self, key: &[u8], bytes: &[u8]) -> Option<Value> {
        let spec = self.spec;
        if spec.kind.holds_programs() {
            let index = u32::from_ne_bytes(key.try_into().ok()?);
            let id = u32::from_ne_bytes(bytes.try_into().ok()?);
            let name = self.collection.installed(&spec.name, index);
            return Some(Value::Enum { name, value: id.into() });
        }
        if spec.inner.is_some() {
            let id = u32::from_ne_bytes(bytes.try_into().ok()?);
            let inner = self.collection.maps().iter().find(|map| map.id() == id);
            let name = inner.map(|map| map.spec().name.clone());
            return Some(Value::Enum { name, value: id.into() });
        }
        spec.decode_value(self.btf, bytes)
    }
}

/// All maps by name, each as a list that `--map` takes, without what is zero in arrays; global variables as one object.
pub(crate) struct MapsAsJson<'a>(pub(crate) &'a Collection, pub(crate) Form);

impl Serialize for MapsAsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(collection, form) = *self;
        serializer.collect_map(View::all(collection).map(|view| (&view.spec.name, MapAsJson { view, form })))
    }
}

/// A map as [`MapsAsJson`] has it.
pub(crate) struct MapAsJson<'a> {
    view: View<'a>,
    form: Form,
}

impl<'a> MapAsJson<'a> {
    /// The map of a name, if there is one.
    pub(crate) fn named(collection: &'a Collection, name: &str, form: Form) -> Option<Self> {
        let view = View::all(collection).find(|view| view.spec.name == name)?;
        Some(Self { view, form })
    }
}

impl Serialize for MapAsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { view, form } = self;
        if !view.holds_variables() {
            return serializer.collect_seq(view.kept().map(|element| view.element_to_json(&element, *form)));
        }
        let bytes = view.elements().next().and_then(|element| element.values.into_iter().next());
        view.variables_to_json(&bytes.unwrap_or_default(), *form).serialize(serializer)
    }
}

impl View<'_> {
    /// A map that is in this one and nowhere else, so that it has no name.
    fn nameless<T>(&self, value: &[u8], show: impl FnOnce(&View<'_>) -> T) -> Option<T> {
        let like = self.spec.inner.as_deref()?;
        let id = u32::from_ne_bytes(value.try_into().ok()?);
        let maps = self.collection.maps();
        let map = Map::by_id(id).filter(|map| maps.iter().all(|named| named.id() != map.id()))?;
        Some(show(&View { map: &map, spec: like, btf: self.btf, collection: self.collection }))
    }

    fn value_to_json(&self, key: &[u8], value: &[u8], form: Form) -> Json {
        let elements =
            |view: &View<'_>| view.elements().map(|element| view.element_in(&element, form)).collect();
        self.nameless(value, elements).unwrap_or_else(|| form.of(self.value(key, value), value))
    }

    fn element_to_json(&self, element: &Element, form: Form) -> Json {
        if form != Form::Both {
            return self.element_in(element, form);
        }
        let (mut typed, written) =
            (self.element_in(element, Form::Typed), self.element_in(element, Form::Written));
        if let Some(written) = differing(&typed, &written) {
            typed["written"] = written;
        }
        typed
    }

    /// An element in one form.
    fn element_in(&self, Element { key, values }: &Element, form: Form) -> Json {
        let mut values = values.iter().map(|value| self.value_to_json(key, value, form));
        if key.is_empty() {
            return json!({ "value": values.next() });
        }
        let key = form.of(self.key(key), key);
        if !self.spec.kind.is_per_cpu() {
            return json!({ "key": key, "value": values.next() });
        }
        let values: Json =
            values.enumerate().map(|(cpu, value)| json!({ "cpu": cpu, "value": value })).collect();
        json!({ "key": key, "values": values })
    }

    /// The variables of a section, by their names.
    fn variables_to_json(&self, bytes: &[u8], form: Form) -> Json {
        let shown = |form: Form| form.of(self.value(&[], bytes), bytes);
        if form != Form::Both {
            return shown(form);
        }
        let (mut typed, written) = (shown(Form::Typed), shown(Form::Written));
        if let Some(written) = differing(&typed, &written) {
            typed[".written"] = written;
        }
        typed
    }
}

/// The members of an object that differ from those of another one, if there are any.
pub(crate) fn differing(typed: &Json, written: &Json) -> Option<Json> {
    let members = typed.as_object().zip(written.as_object()).map(|(typed, written)| {
        let differs = |(name, value): &(&String, &Json)| typed.get(*name) != Some(*value);
        written.iter().filter(differs).map(|(name, value)| (name.clone(), value.clone())).collect()
    });
    members.filter(|members: &serde_json::Map<_, _>| !members.is_empty()).map(Json::Object)
}

impl View<'_> {
    /// An element of a map in another, on the line of that one.
    fn element_to_text(&self, Element { key, values }: &Element) -> String {
        let values =
            values.iter().map(|bytes| text(self.value(key, bytes), bytes)).collect::<Vec<_>>().join(", ");
        if key.is_empty() { values } else { format!("[{}] = {values}", text(self.key(key), key)) }
    }
}

/// All maps that a later run can be given, one after the other with an element in each line, so that a person can read and edit
/// them. What is zero in arrays is left out.
pub(super) fn write_state(out: &mut dyn Write, collection: &Collection, indent: &str) -> io::Result<()> {
    let mut separator = "";
    for view in View::all(collection).filter(|view| is_restorable(view.map)) {
        write!(out, "{separator}\n{indent}{}: ", Json::from(view.spec.name.as_str()))?;
        write_elements(out, &view, indent)?;
        separator = ",";
    }
    Ok(())
}

/// Whether user space can both read the contents of a map and put them there.
pub(super) fn is_restorable(map: &Map) -> bool {
    let spec = map.spec();
    let one_way = spec.flags.contains(MapFlags::RDONLY) || spec.flags.contains(MapFlags::WRONLY);
    let kind = spec.kind;
    let cannot_be_listed = kind.tests_membership() || kind.is_ring_buffer() || kind.holds_events();
    !map.is_frozen() && !one_way && !cannot_be_listed
}

fn write_elements(out: &mut dyn Write, view: &View<'_>, indent: &str) -> io::Result<()> {
    if view.holds_variables() {
        let bytes = view.elements().next().and_then(|element| element.values.into_iter().next());
        return write!(out, "{}", view.variables_to_json(&bytes.unwrap_or_default(), Form::Typed));
    }
    let mut separator = "[";
    for element in view.kept() {
        write!(out, "{separator}\n{indent}  {}", view.element_in(&element, Form::Typed))?;
        separator = ",";
    }
    if separator == "[" { write!(out, "[]") } else { write!(out, "\n{indent}]") }
}

/// All maps as C would write them, keys and values by their types. Elements of arrays that are zero are left out.
pub(crate) fn write_text(out: &mut dyn Write, collection: &Collection) -> io::Result<()> {
    View::all(collection).try_for_each(|view| write_map(out, &view))
}

fn write_map(out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    let spec = view.spec;
    writeln!(out)?;
    if view.holds_variables() {
        writeln!(out, "{}", spec.name)?;
        return write_variables(out, view);
    }
    writeln!(out, "{} ({}, at most {} entries)", spec.name, spec.kind, view.map.spec().max_entries)?;
    let (mut shown, mut zero) = (0u64, 0u64);
    for element in view.elements() {
        if view.is_array() && element.is_zero() {
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
    if element.key.is_empty() {
        let value = element.values.first().map(Vec::as_slice).unwrap_or_default();
        return writeln!(out, "  {}", text(view.value(&[], value), value));
    }
    let key = text(view.key(&element.key), &element.key);
    let value = element.values.first().map(Vec::as_slice).unwrap_or_default();
    let inner = |inner: &View<'_>| inner.elements().map(|element| inner.element_to_text(&element)).collect();
    if let Some(elements) = view.nameless(value, inner) {
        let elements: Vec<String> = elements;
        return writeln!(out, "  [{key}] = {{ {} }}", elements.join(", "));
    }
    for (cpu, value) in element.values.iter().enumerate() {
        let on = if element.values.len() > 1 { format!(" on cpu {cpu}") } else { String::new() };
        writeln!(out, "  [{key}]{on} = {}", text(view.value(&element.key, value), value))?;
    }
    Ok(())
}

fn write_variables(out: &mut dyn Write, view: &View<'_>) -> io::Result<()> {
    for element in view.elements() {
        let bytes = element.values.first().map(Vec::as_slice).unwrap_or_default();
        match view.value(&element.key, bytes) {
            Some(Value::Struct(variables)) => variables
                .iter()
                .try_for_each(|(name, value)| writeln!(out, "  {name} = {}", fold(value, INDENT)))?,
            _ => writeln!(out, "  {}", spaced(bytes))?,
        }
    }
    Ok(())
}

fn text(value: Option<Value>, bytes: &[u8]) -> String {
    value.map_or_else(|| spaced(bytes), |value| fold(&value, INDENT))
}

/// `0a 00 00 00`
fn spaced(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}
