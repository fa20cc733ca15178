//! Facts: the names and values of what a branch compares, as text: fields of packets, elements and members of maps, results of helpers.

use std::fmt::Write;
use std::rc::Rc;

use paceline_btf::{Btf, Type, TypeId, Value};
use paceline_capture::packet::{FieldRef, Layers, hex};
use paceline_spec::MapSpec;

use crate::explain::origin::{Element, PacketBits, Source};
use crate::explain::trace::{Fact, FactKind};

/// Most nested structures and arrays on the way to a member.
const DEEPEST: usize = 16;

/// Most characters of a key.
const LONGEST: usize = 120;

/// Makes facts of the sources of values; members of maps have names by BTF.
#[derive(Clone, Copy)]
pub(crate) struct FactWriter<'a> {
    pub(crate) btf: Option<&'a Btf>,
}

impl FactWriter<'_> {
    /// Sources as facts, each once: a field that is loaded in parts is one fact.
    pub(crate) fn facts(&self, sources: &[Rc<Source>]) -> Vec<Fact> {
        let mut facts: Vec<Fact> = Vec::new();
        for source in sources {
            let Some(fact) = self.fact(source) else { continue };
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        }
        facts
    }

    /// A source as a fact, where it has a name.
    fn fact(&self, source: &Source) -> Option<Fact> {
        Some(match source {
            Source::Memory => return None,
            Source::Packet(bits) => packet(bits),
            Source::Length(bytes) => Fact {
                kind: FactKind::Packet,
                name: "the packet's length".to_owned(),
                value: format!("{bytes} bytes"),
                not: Vec::new(),
            },
            Source::Context { name, value } => {
                let value = ethernet_type(name, *value).unwrap_or_else(|| value.to_string());
                Fact { kind: FactKind::Context, name: (*name).to_owned(), value, not: Vec::new() }
            }
            Source::Result { name, value } => Fact {
                kind: FactKind::Result,
                name: (*name).to_owned(),
                value: value.cast_signed().to_string(),
                not: Vec::new(),
            },
            Source::Element(element) => {
                let (name, value) = (self.element(element), self.presence(element));
                Fact { kind: FactKind::Element, name, value, not: Vec::new() }
            }
            Source::Value { element, offset, bytes } => self.value(element, *offset, bytes),
        })
    }

    /// `rules[{port: 22, protocol: 6}]`
    pub(crate) fn element(&self, element: &Element) -> String {
        let spec = element.map.spec();
        match &element.key {
            None => spec.name.clone(),
            Some(key) => {
                let key = self.key(spec, key);
                // The key of a look-up is mostly an address, all bits of which count.
                let whole = [("/32", '.'), ("/128", ':')].into_iter().find_map(|(length, separator)| {
                    key.strip_suffix(length).filter(|address| address.contains(separator))
                });
                format!("{}[{}]", spec.name, whole.filter(|_| spec.kind.has_prefixes()).unwrap_or(&key))
            }
        }
    }

    /// Whether there is an element, and of a longest-prefix trie which one matched.
    fn presence(&self, element: &Element) -> String {
        if element.address == 0 {
            return "absent".to_owned();
        }
        let (map, key) = (element.map.for_programs(), element.key.as_deref());
        match key.and_then(|key| map.matching_key(key)) {
            Some(matching) => format!("matched by {}", self.key(element.map.spec(), &matching)),
            None => "present".to_owned(),
        }
    }

    fn key(&self, spec: &MapSpec, key: &[u8]) -> String {
        let text = match (spec.decode_key(self.btf, key), key) {
            // An address that a structure has for itself.
            (Some(Value::Struct(members)), _)
                if matches!(members.as_slice(), [(_, Value::Written { .. })]) =>
            {
                members.iter().map(|(_, value)| brief(value)).collect()
            }
            (Some(value), _) => brief(&value),
            (None, [a, b, c, d]) => u32::from_ne_bytes([*a, *b, *c, *d]).to_string(),
            (None, bytes) => hex(bytes),
        };
        match text.char_indices().nth(LONGEST) {
            Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
            None => text,
        }
    }

    fn value(&self, element: &Element, offset: usize, bytes: &[u8]) -> Fact {
        let spec = element.map.spec();
        let found = self.btf.and_then(|btf| member(btf, spec.value_type, offset, bytes.len()));
        let value = match (&found, self.btf) {
            (Some(found), Some(btf)) if found.whole => {
                btf.decode_written(found.ty, bytes).ok().map(|value| brief(&value))
            }
            _ => None,
        };
        let value =
            value.unwrap_or_else(|| number(bytes).map_or_else(|| hex(bytes), |number| number.to_string()));
        let element_name = self.element(element);
        let name = match found {
            // Variables of a section have their own names.
            Some(found) if element.key.is_none() && !found.path.is_empty() => {
                found.path.trim_start_matches('.').to_owned()
            }
            Some(found) => format!("{element_name}{}", found.path),
            None if offset == 0 => element_name,
            None => format!("{element_name}+{offset}"),
        };
        Fact { kind: FactKind::Value, name, value, not: Vec::new() }
    }
}

/// Bits of a packet by the fields of its headers.
fn packet(bits: &PacketBits) -> Fact {
    let layers = Layers::new(&bits.packet);
    let positions: Vec<_> = bits.positions().collect();
    let holds = |field: &FieldRef<'_>, bit: usize| field.bits_in_packet().contains(&bit);
    let touched: Vec<_> =
        layers.fields().filter(|field| positions.iter().any(|bit| holds(field, *bit))).collect();
    let (name, value) = match touched.as_slice() {
        [only] if positions.iter().all(|bit| holds(only, *bit)) => (only.path(), only.to_string()),
        _ => {
            let range = bits.offset..bits.offset + bits.len;
            (layers.name_at(bits.offset, bits.len), hex(bits.packet.get(range).unwrap_or_default()))
        }
    };
    Fact { kind: FactKind::Packet, name, value, not: Vec::new() }
}

/// The `protocol` of a context, which is the type of an Ethernet header in network order.
fn ethernet_type(name: &str, value: u64) -> Option<String> {
    let ty = u16::try_from(value).ok().filter(|_| name == "protocol")?;
    let mut header = [0; 14];
    header[12..].copy_from_slice(&ty.to_ne_bytes());
    Layers::new(&header).field("eth.type").map(|field| field.to_string())
}

/// A part of a value.
struct Found {
    /// `.ports[3]`
    path: String,
    ty: TypeId,
    /// Whether the bytes are all of it.
    whole: bool,
}

/// The innermost member that some bytes of a value lie in.
fn member(btf: &Btf, ty: TypeId, offset: usize, len: usize) -> Option<Found> {
    let (mut ty, mut offset, mut path) = (ty, offset as u64, String::new());
    for _ in 0..DEEPEST {
        let size = btf.size_of(ty).ok()?;
        if offset + len as u64 > size {
            return None;
        }
        if let (_, Type::Var { ty: of, .. }) = btf.resolve(ty).ok()? {
            ty = *of;
        }
        let (_, resolved) = btf.resolve(ty).ok()?;
        let inner = match resolved {
            Type::Struct(composite) | Type::Union(composite) => {
                composite.members.iter().rev().find_map(|member| {
                    let start = u64::from(member.bit_offset / 8);
                    let size = btf.size_of(member.ty).ok()?;
                    let holds =
                        start <= offset && offset + len as u64 <= start + size && member.bit_size == 0;
                    holds.then(|| (btf.name(member.name).to_owned(), member.ty, start))
                })
            }
            Type::DataSection(section) => section.vars.iter().find_map(|var| {
                let start = u64::from(var.offset);
                let holds = start <= offset && offset + len as u64 <= start + u64::from(var.size);
                holds.then(|| (btf.type_name(var.ty).to_owned(), var.ty, start))
            }),
            Type::Array { element, .. } => {
                let size = btf.size_of(*element).ok().filter(|size| *size > 0)?;
                let index = offset / size;
                (offset % size + len as u64 <= size).then(|| (format!("[{index}]"), *element, index * size))
            }
            _ => None,
        };
        let Some((name, member, start)) = inner else {
            return Some(Found { path, ty, whole: offset == 0 && len as u64 == size });
        };
        match name.as_str() {
            "" => {}
            index if index.starts_with('[') => path.push_str(index),
            // Writing to a string cannot fail.
            name => drop(write!(path, ".{name}")),
        }
        (ty, offset) = (member, offset - start);
    }
    None
}

/// A value on one line, without the dots of C's initializers: `{port: 22, protocol: 6}`.
fn brief(value: &Value) -> String {
    match value {
        Value::Struct(members) => {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{name}: {}", brief(value))).collect();
            format!("{{{}}}", members.join(", "))
        }
        Value::Array(elements) => {
            format!("[{}]", elements.iter().map(brief).collect::<Vec<_>>().join(", "))
        }
        Value::Bytes(bytes) => hex(bytes),
        // A sentence needs no byte order.
        Value::Written { text, .. } => {
            let number = text.strip_prefix("htons(").and_then(|rest| rest.strip_suffix(')'));
            number.unwrap_or(text).to_owned()
        }
        other => other.to_string(),
    }
}

fn number(bytes: &[u8]) -> Option<u64> {
    let mut all = [0; 8];
    all.get_mut(..bytes.len())?.copy_from_slice(bytes);
    Some(u64::from_le_bytes(all))
}
