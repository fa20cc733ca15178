//! Bytes of a packet from its layers.

use crate::packet::bits;
use crate::packet::checksum::{crc32c, internet};
use crate::packet::error::{Problem, TextError};
use crate::packet::parse::{Given, GivenPacket, parse};
use crate::packet::protocol::{Checksum, Default, Extent, Field, Protocol};
use crate::packet::value::Value;

/// The bytes of the packet that a text describes.
///
/// # Errors
/// [`TextError`] has the place in the text.
pub fn build(text: &str) -> Result<Vec<u8>, TextError> {
    assemble(&parse(text)?)
}

/// The protocol of the first header that a text describes; `None` for bytes, and for texts that describe no packet.
#[must_use]
pub fn begins_with(text: &str) -> Option<&'static Protocol> {
    parse(text).ok()?.layers.first().map(|first| first.protocol)
}

/// A header, and the place of its first byte.
struct Placed<'a> {
    given: &'a Given,
    start: usize,
    len: usize,
}

pub(crate) fn assemble(packet: &GivenPacket) -> Result<Vec<u8>, TextError> {
    let mut bytes = Vec::new();
    let mut placed = Vec::new();
    for (index, given) in packet.layers.iter().enumerate() {
        let header = header(given, packet.layers.get(index + 1))?;
        placed.push(Placed { given, start: bytes.len(), len: header.len() });
        bytes.extend(header);
    }
    bytes.extend(&packet.payload);
    for layer in &placed {
        set_lengths(layer, &mut bytes)?;
    }
    // A checksum covers those of the layers inside.
    for (index, layer) in placed.iter().enumerate().rev() {
        set_checksums(layer, placed.get(..index).unwrap_or_default(), &mut bytes);
    }
    bytes.extend(&packet.padding);
    Ok(bytes)
}

impl Given {
    fn value_of(&self, field: &Field) -> Option<&Value> {
        self.fields.iter().find(|(given, _)| given.name == field.name).map(|(_, value)| value)
    }

    /// The fields that are not given.
    fn open(&self) -> impl Iterator<Item = &'static Field> {
        let protocol: &'static Protocol = self.protocol;
        protocol.fields.iter().filter(|field| self.value_of(field).is_none())
    }
}

/// A header, all of it but lengths and checksums of what follows.
fn header(given: &Given, after: Option<&Given>) -> Result<Vec<u8>, TextError> {
    let (protocol, next) = (given.protocol, after.map(|after| after.protocol));
    let mut bytes = vec![0; protocol.header];
    for field in protocol.fields {
        if let Some(Value::Number(number)) = given.value_of(field) {
            bits::set(&mut bytes, field.bit, field.bits, *number);
        }
    }
    for field in given.open() {
        let number = match field.default {
            Default::Value(number) => number,
            Default::Next(otherwise) => match after {
                None => otherwise,
                Some(after) => protocol
                    .number_of_next(after.protocol.name)
                    .ok_or_else(|| not_next(protocol, field, after))?,
            },
            Default::LastOfItsKind => next.is_none_or(|next| next.name != protocol.name).into(),
            _ => continue,
        };
        bits::set(&mut bytes, field.bit, field.bits, number);
    }
    if let Some(field) = protocol.variable() {
        bytes.extend(variable(given, field, &bytes));
        set_header_length(given, field, &mut bytes)?;
    }
    Ok(bytes)
}

/// The error of a header that its predecessor cannot announce.
fn not_next(before: &'static Protocol, field: &'static Field, after: &Given) -> TextError {
    let joins = |between: &&Protocol| {
        before.number_of_next(between.name).is_some() && between.number_of_next(after.protocol.name).is_some()
    };
    let problem = Problem::NotNext {
        before: before.name,
        after: after.protocol.name,
        field: field.name,
        between: Protocol::ALL.iter().filter(joins).map(|between| between.name).collect(),
    };
    TextError { column: after.column, problem }
}

/// The variable part, filled with zeros to a length that the header can say.
fn variable(given: &Given, field: &Field, fixed: &[u8]) -> Vec<u8> {
    let mut options = match (given.value_of(field), field.default) {
        (Some(Value::Bytes(bytes)), _) => bytes.clone(),
        (_, Default::Bytes(bytes)) => bytes.to_vec(),
        _ => Vec::new(),
    };
    let fixed_len = fixed.len();
    match given.protocol.extent {
        Extent::Fixed => {}
        Extent::Field { unit, .. } => {
            options.resize((fixed_len + options.len()).next_multiple_of(unit) - fixed_len, 0);
        }
        Extent::Computed(compute) => options.resize(options.len().max(compute(fixed) - fixed_len), 0),
    }
    options
}

fn set_header_length(given: &Given, variable: &Field, bytes: &mut [u8]) -> Result<(), TextError> {
    for field in given.open() {
        let Default::HeaderLength { unit, less } = field.default else { continue };
        let units = (bytes.len() / unit).saturating_sub(less);
        if units >> field.bits != 0 {
            let problem = Problem::Options { protocol: given.protocol.name, name: variable.name };
            return Err(TextError { column: given.column, problem });
        }
        bits::set(bytes, field.bit, field.bits, units as u128);
    }
    Ok(())
}

fn set_lengths(layer: &Placed<'_>, bytes: &mut [u8]) -> Result<(), TextError> {
    for field in layer.given.open() {
        let Default::Length { from } = field.default else { continue };
        let len = bytes.len() - layer.start - from;
        if len >> field.bits != 0 {
            let problem = Problem::TooLong { protocol: layer.given.protocol.name, bytes: len };
            return Err(TextError { column: layer.given.column, problem });
        }
        let header = bytes.get_mut(layer.start..).unwrap_or_default();
        bits::set(header, field.bit, field.bits, len as u128);
    }
    Ok(())
}

fn set_checksums(layer: &Placed<'_>, before: &[Placed<'_>], bytes: &mut [u8]) {
    for field in layer.given.open() {
        let Default::Checksum(kind) = field.default else { continue };
        let message = bytes.get(layer.start..).unwrap_or_default();
        let number = match kind {
            Checksum::Header => internet(&[message.get(..layer.len).unwrap_or_default()]).into(),
            Checksum::Message => internet(&[message]).into(),
            Checksum::Crc32c => crc32c(message).into(),
            Checksum::Transport | Checksum::Udp => {
                let sum = internet(&[&pseudo_header(layer, before, bytes), message]);
                u128::from(if kind == Checksum::Udp && sum == 0 { 0xffff } else { sum })
            }
        };
        let header = bytes.get_mut(layer.start..).unwrap_or_default();
        bits::set(header, field.bit, field.bits, number);
    }
}

/// The addresses, length and protocol of RFC 9293, section 3.1, and RFC 8200, section 8.1; nothing without IP.
fn pseudo_header(layer: &Placed<'_>, before: &[Placed<'_>], bytes: &[u8]) -> Vec<u8> {
    let is_ip = |layer: &&Placed<'_>| matches!(layer.given.protocol.name, "ipv4" | "ipv6");
    let Some(ip) = before.iter().rev().find(is_ip) else { return Vec::new() };
    let addresses = if ip.given.protocol.name == "ipv4" { 12..20 } else { 8..40 };
    let range = ip.start + addresses.start..ip.start + addresses.end;
    let mut pseudo = bytes.get(range).unwrap_or_default().to_vec();
    let len = (bytes.len() - layer.start) as u32;
    let number = match layer.given.protocol.name {
        "tcp" => 6,
        "udp" => 17,
        _ => 58,
    };
    pseudo.extend(len.to_be_bytes());
    pseudo.extend([0, 0, 0, number]);
    pseudo
}
