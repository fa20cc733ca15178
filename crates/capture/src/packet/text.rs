//! Texts of packets.

use std::fmt::Write;

use crate::packet::build::assemble;
use crate::packet::layers::{FieldRef, Layer, Layers};
use crate::packet::parse::{Given, GivenPacket};
use crate::packet::protocol::Default;
use crate::packet::value::Value;

/// Fewest equal bytes that are written as one byte and a number.
const REPEATED: usize = 9;

/// A text from which [`build`](crate::packet::build) makes these bytes: fields that have the value that they would get anyway are left out.
#[must_use]
pub fn to_text(bytes: &[u8]) -> String {
    let layers = Layers::new(bytes);
    let mut given = GivenPacket {
        layers: layers.headers().iter().map(of_layer).collect(),
        payload: layers.payload().to_vec(),
        padding: layers.padding().to_vec(),
    };
    // Computed values follow from others: checksums from lengths, and these from the protocols.
    for _ in 0..2 * RANKS {
        match assemble(&given) {
            Ok(built) if built == bytes => return write(&given, &layers),
            Ok(built) => give_differences(&mut given, &layers, &built),
            Err(_) => give_lengths(&mut given, &layers),
        }
    }
    match bytes {
        [] => "\"\"".to_owned(),
        bytes => hex(bytes),
    }
}

fn of_layer(layer: &Layer<'_>) -> Given {
    let is_kept = |field: &FieldRef<'_>| match field.field.default {
        Default::Value(number) => field.field.number(layer.header) != number,
        Default::Bytes(bytes) => layer.header.get(layer.protocol.header..) != Some(bytes),
        _ => false,
    };
    let fields = layer.fields().filter(is_kept).map(|field| (field.field, value(&field))).collect();
    Given { protocol: layer.protocol, fields, column: 1 }
}

fn value(field: &FieldRef<'_>) -> Value {
    let header = field.layer.header;
    match field.field.bits {
        0 => Value::Bytes(header.get(field.layer.protocol.header..).unwrap_or_default().to_vec()),
        _ => Value::Number(field.field.number(header)),
    }
}

/// Number of ranks of computed values.
const RANKS: usize = 3;

/// Rank of a value: it follows from those of lower ranks.
fn rank(default: &Default) -> usize {
    match default {
        Default::Length { .. } => 1,
        Default::Checksum(_) => 2,
        _ => 0,
    }
}

/// Gives the fields that come out differently, those of the lowest rank first.
fn give_differences(given: &mut GivenPacket, layers: &Layers<'_>, built: &[u8]) {
    let differs = |field: &FieldRef<'_>| {
        let bytes = built.get(field.layer.start..).unwrap_or_default();
        field.field.bits > 0 && field.field.number(bytes) != field.field.number(field.layer.header)
    };
    let lowest = layers.fields().filter(differs).map(|field| rank(&field.field.default)).min();
    give(given, layers, |field| differs(field) && Some(rank(&field.field.default)) == lowest);
}

/// Gives the lengths, which no packet as long as this could have.
fn give_lengths(given: &mut GivenPacket, layers: &Layers<'_>) {
    give(given, layers, |field| {
        matches!(field.field.default, Default::Length { .. } | Default::HeaderLength { .. })
    });
}

fn give(given: &mut GivenPacket, layers: &Layers<'_>, is_given: impl Fn(&FieldRef<'_>) -> bool) {
    for (given, layer) in given.layers.iter_mut().zip(layers.headers()) {
        for field in layer.fields().filter(|field| is_given(field)) {
            if given.fields.iter().all(|(other, _)| other.name != field.field.name) {
                given.fields.push((field.field, value(&field)));
            }
        }
    }
}

fn write(given: &GivenPacket, layers: &Layers<'_>) -> String {
    let mut parts = Vec::new();
    for (given, layer) in given.layers.iter().zip(layers.headers()) {
        let mut text = given.protocol.name.to_owned();
        let is_given =
            |field: &FieldRef<'_>| given.fields.iter().any(|(other, _)| other.name == field.field.name);
        for field in layer.fields().filter(is_given) {
            // Writing to a string cannot fail.
            let _ = write!(text, " {}={field}", field.field.name);
        }
        parts.push(text);
    }
    if !given.payload.is_empty() || parts.is_empty() {
        parts.push(bytes_as_text(&given.payload));
    }
    if !given.padding.is_empty() {
        parts.push(format!("padding {}", bytes_as_text(&given.padding)));
    }
    parts.join(" / ")
}

/// Bytes as text if they are printable, else in hexadecimal.
pub(crate) fn bytes_as_text(bytes: &[u8]) -> String {
    let is_text = |byte: &u8| matches!(byte, b' '..=b'~' | b'\r' | b'\n' | b'\t');
    match bytes {
        [first, rest @ ..] if rest.len() + 1 >= REPEATED && rest.iter().all(|byte| byte == first) => {
            format!("0x{first:02x}*{}", bytes.len())
        }
        bytes if bytes.iter().all(is_text) => {
            format!("\"{}\"", bytes.escape_ascii().to_string().replace("\\'", "'"))
        }
        bytes => hex(bytes),
    }
}

/// Bytes as `0x` and hexadecimal digits, a form that [`build`](crate::packet::build) reads.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold("0x".to_owned(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}
