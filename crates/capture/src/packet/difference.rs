//! Differences between two packets, field by field.

use std::collections::BTreeSet;

use crate::packet::layers::{Layer, Layers};
use crate::packet::text::{bytes_as_text, hex};

/// Bytes of a payload that are shown from the first difference on.
const SHOWN: usize = 16;

/// A field that two packets do not have with the same value, or a header that only one of them has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `ipv4.ttl`; `vlan` for a header that only one of them has; `payload from byte 4`, `padding`
    pub name: String,
    /// Value in the first packet, if it has the field.
    pub before: Option<String>,
    /// Value in the second packet.
    pub after: Option<String>,
}

/// The differences between two packets, in the order of the first one, then of the second.
#[must_use]
pub fn differences(before: &[u8], after: &[u8]) -> Vec<Difference> {
    let (a, b) = (Layers::new(before), Layers::new(after));
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    for layer in a.headers().iter().chain(b.headers()) {
        let name = layer.name();
        if !seen.insert(name.clone()) {
            continue;
        }
        match (a.layer(&name), b.layer(&name)) {
            (Some(before), Some(after)) => all.extend(of_layer(before, after)),
            // A header that is not in both is one difference.
            (before, after) => {
                all.push(Difference { name, before: before.map(fields), after: after.map(fields) })
            }
        }
    }
    all.extend(of_bytes("payload", a.payload(), b.payload()));
    all.extend(of_bytes("padding", a.padding(), b.padding()));
    all
}

/// The fields of a header that is in both packets.
fn of_layer(before: &Layer<'_>, after: &Layer<'_>) -> Vec<Difference> {
    let value = |layer: &Layer<'_>, name: &str| {
        layer.fields().find(|field| field.field.name == name).map(|field| field.to_string())
    };
    let names = before.protocol.fields.iter().map(|field| field.name);
    let differences = names.map(|name| Difference {
        name: format!("{}.{name}", before.name()),
        before: value(before, name),
        after: value(after, name),
    });
    differences.filter(|difference| difference.before != difference.after).collect()
}

/// All fields of a header, as `name=value`.
fn fields(layer: &Layer<'_>) -> String {
    let fields = layer.fields().map(|field| format!("{}={field}", field.field.name));
    fields.collect::<Vec<_>>().join(" ")
}

fn of_bytes(name: &str, before: &[u8], after: &[u8]) -> Option<Difference> {
    if before == after {
        return None;
    }
    let same = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let part = |bytes: &[u8]| {
        let rest = bytes.get(same..).unwrap_or_default();
        let more = if rest.len() > SHOWN {
            format!(" and {} bytes more", rest.len() - SHOWN)
        } else {
            String::new()
        };
        (!rest.is_empty()).then(|| format!("{}{more}", shown(rest.get(..SHOWN).unwrap_or(rest))))
    };
    let name = if same == 0 { name.to_owned() } else { format!("{name} from byte {same}") };
    Some(Difference { name, before: part(before), after: part(after) })
}

fn shown(bytes: &[u8]) -> String {
    if bytes.iter().all(|byte| matches!(byte, b' '..=b'~')) { bytes_as_text(bytes) } else { hex(bytes) }
}
