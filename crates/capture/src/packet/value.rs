//! Values of fields as text.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use crate::packet::protocol::{Field, Kind};
use crate::packet::table::{ETHER_TYPES, IP_PROTOCOLS, NEXT_HEADERS};

/// A value for a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u128),
    Bytes(Vec<u8>),
}

/// The reason why a text is no value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoValue {
    /// The text has another form.
    Form,
    /// The number takes more bits.
    Size,
}

impl Field {
    /// The number that a text gives for it, in the form of its kind; `None` for another form, a number of more bits, and bytes.
    #[must_use]
    pub fn read(&self, text: &str) -> Option<u128> {
        match parse(self, text) {
            Ok(Value::Number(number)) => Some(number),
            Ok(Value::Bytes(_)) | Err(_) => None,
        }
    }

    /// The form of its values in words, such as "a number".
    #[must_use]
    pub fn form(&self) -> String {
        form(self)
    }
}

/// Reads a value of a field.
pub(crate) fn parse(field: &Field, text: &str) -> Result<Value, NoValue> {
    if field.kind == Kind::Bytes {
        return hex_bytes(text).map(Value::Bytes).ok_or(NoValue::Form);
    }
    let number = match field.kind {
        Kind::Mac => mac(text),
        Kind::Ipv4 => text.parse().ok().map(|address: Ipv4Addr| address.to_bits().into()),
        Kind::Ipv6 => text.parse().ok().map(|address: Ipv6Addr| address.to_bits()),
        Kind::Flags(names) => flags(names, text).map(u128::from),
        Kind::EtherType => named(ETHER_TYPES, text),
        Kind::IpProtocol => named(NEXT_HEADERS, text),
        Kind::Number | Kind::Hex | Kind::Bytes => None,
    };
    let number = number.or_else(|| self::number(text)).ok_or(NoValue::Form)?;
    if field.bits < 128 && number >> field.bits != 0 { Err(NoValue::Size) } else { Ok(Value::Number(number)) }
}

/// The form of a field's values, for messages.
pub(crate) fn form(field: &Field) -> String {
    match field.kind {
        Kind::Number | Kind::Hex => "a number".to_owned(),
        Kind::Mac => "an address such as 02:00:00:00:00:01".to_owned(),
        Kind::Ipv4 => "an address such as 192.0.2.1".to_owned(),
        Kind::Ipv6 => "an address such as 2001:db8::1".to_owned(),
        Kind::Flags(names) => {
            let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
            format!("a number, or of {}", names.join(", "))
        }
        Kind::EtherType => "a number, or a protocol such as ipv4".to_owned(),
        Kind::IpProtocol => "a number, or a protocol such as tcp".to_owned(),
        Kind::Bytes => "bytes such as 0x0102".to_owned(),
    }
}

/// A decimal or hexadecimal number.
pub(crate) fn number(text: &str) -> Option<u128> {
    let is_digits = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    match text.strip_prefix("0x") {
        Some(digits) => u128::from_str_radix(digits, 16).ok().filter(|_| is_digits(digits)),
        None => text.parse().ok().filter(|_| is_digits(text)),
    }
}

/// `0x` and pairs of hexadecimal digits.
pub(crate) fn hex_bytes(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x")?.as_bytes();
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    let pairs = digits.chunks(2).map(|pair| match pair {
        [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
        _ => None,
    });
    pairs.collect()
}

fn mac(text: &str) -> Option<u128> {
    let parts: Vec<_> = text.split([':', '-']).collect();
    let byte = |part: &&str| (part.len() == 2).then(|| u8::from_str_radix(part, 16).ok()).flatten();
    let bytes: Vec<u8> = parts.iter().map(byte).collect::<Option<_>>()?;
    (bytes.len() == 6).then(|| bytes.iter().fold(0, |all, byte| all << 8 | u128::from(*byte)))
}

fn named(table: &[(u32, &str)], text: &str) -> Option<u128> {
    table.iter().find(|(_, name)| *name == text).map(|(number, _)| u128::from(*number))
}

fn flags(names: &[(&str, u32)], text: &str) -> Option<u32> {
    let of = |wanted: &str| names.iter().find(|(name, _)| *name == wanted).map(|(_, bit)| *bit);
    text.split('+').try_fold(0, |all, word| {
        let letters =
            || word.chars().try_fold(0, |all, letter| Some(all | of(letter.encode_utf8(&mut [0; 4]))?));
        (!word.is_empty()).then(|| of(word).or_else(letters)).flatten().map(|bits| all | bits)
    })
}

/// A value of a field with that field, to be written.
pub(crate) struct Shown<'a>(pub(crate) &'a Field, pub(crate) &'a [u8]);

impl fmt::Display for Shown<'_> {
    /// From the bytes of the header, and for the variable part from its own bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(field, header) = *self;
        let number = || field.number(header);
        match field.kind {
            Kind::Bytes => write_hex(f, header),
            Kind::Number => write!(f, "{}", number()),
            Kind::Hex => write!(f, "{:#0width$x}", number(), width = 2 + field.bits.div_ceil(4)),
            Kind::Mac => write_mac(f, number()),
            Kind::Ipv4 => write!(f, "{}", Ipv4Addr::from_bits(number() as u32)),
            Kind::Ipv6 => write!(f, "{}", Ipv6Addr::from_bits(number())),
            Kind::Flags(names) => write_flags(f, names, number() as u32),
            Kind::EtherType => write_name(f, ETHER_TYPES, number(), |f| write!(f, "{:#06x}", number())),
            Kind::IpProtocol => {
                let table = if field.name == "proto" { IP_PROTOCOLS } else { NEXT_HEADERS };
                write_name(f, table, number(), |f| write!(f, "{}", number()))
            }
        }
    }
}

pub(crate) fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
}

fn write_mac(f: &mut fmt::Formatter<'_>, number: u128) -> fmt::Result {
    let bytes = (number as u64).to_be_bytes();
    bytes.iter().skip(2).enumerate().try_for_each(|(index, byte)| {
        let separator = if index == 0 { "" } else { ":" };
        write!(f, "{separator}{byte:02x}")
    })
}

/// Single letters one after the other, words with `+` between them.
fn write_flags(f: &mut fmt::Formatter<'_>, names: &[(&str, u32)], number: u32) -> fmt::Result {
    if number == 0 {
        return f.write_str("0");
    }
    let mut separator = "";
    for (name, bit) in names.iter().filter(|(_, bit)| number & bit != 0) {
        debug_assert!(bit.is_power_of_two());
        write!(f, "{separator}{name}")?;
        separator = if name.len() > 1 { "+" } else { "" };
    }
    Ok(())
}

fn write_name(
    f: &mut fmt::Formatter<'_>,
    table: &[(u32, &str)],
    number: u128,
    otherwise: impl FnOnce(&mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    match table.iter().find(|(known, _)| u128::from(*known) == number) {
        Some((_, name)) => f.write_str(name),
        None => otherwise(f),
    }
}
