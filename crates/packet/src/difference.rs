//! Differences between two packets, field by field.

use std::collections::BTreeSet;

use crate::layers::Layers;
use crate::text::{bytes_as_text, hex};

/// Bytes of a payload that are shown from the first difference on.
const SHOWN: usize = 16;

/// A field that two packets do not have with the same value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// `ipv4.ttl`, `payload[4..20]`, `padding`
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
    for path in a.fields().chain(b.fields()).map(|field| field.path()) {
        if !seen.insert(path.clone()) {
            continue;
        }
        let value = |layers: &Layers<'_>| layers.field(&path).map(|field| field.to_string());
        let (before, after) = (value(&a), value(&b));
        if before != after {
            all.push(Difference { name: path, before, after });
        }
    }
    all.extend(of_bytes("payload", a.payload(), b.payload()));
    all.extend(of_bytes("padding", a.padding(), b.padding()));
    all
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
