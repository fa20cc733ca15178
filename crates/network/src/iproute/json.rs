//! JSON objects, and conversions of their values to numbers and addresses.

use std::fmt;
use std::net::IpAddr;

use crate::address::Mac;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use super::error::Problem;

/// An object with possibly repeated keys: the first one takes precedence, which is the route's own if it has a tunnel.
pub(crate) struct Object(pub(crate) Vec<(String, Value)>);

impl Object {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub(crate) fn text(&self, field: &'static str) -> Result<Option<&str>, Problem> {
        let text = |value: &'_ Value| wrong(field, value, "no text");
        self.get(field).map(|value| value.as_str().ok_or_else(|| text(value))).transpose()
    }

    pub(crate) fn number(&self, field: &'static str) -> Result<Option<u32>, Problem> {
        self.get(field).map(|value| number(field, value)).transpose()
    }

    pub(crate) fn parsed<T: std::str::FromStr>(
        &self,
        field: &'static str,
        is_not: &'static str,
    ) -> Result<Option<T>, Problem> {
        let parse = |text: &str| text.parse().map_err(|_| wrong(field, &text.into(), is_not));
        self.text(field)?.map(parse).transpose()
    }

    pub(crate) fn address(&self, field: &'static str) -> Result<Option<IpAddr>, Problem> {
        self.parsed(field, "no IP address")
    }

    pub(crate) fn has_flag(&self, flag: &str) -> bool {
        let flags = self.get("flags").and_then(Value::as_array);
        flags.is_some_and(|flags| flags.iter().any(|known| known == flag))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

pub(crate) fn wrong(field: &'static str, value: &Value, wrong: &'static str) -> Problem {
    Problem::Wrong { field, value: value.to_string(), wrong }
}

/// A number, or a decimal or hexadecimal number as text.
pub(crate) fn number(field: &'static str, value: &Value) -> Result<u32, Problem> {
    let of_text = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let number = match value {
        Value::String(text) => of_text(text),
        other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    number.ok_or_else(|| wrong(field, value, "no number of 32 bits"))
}

pub(crate) fn byte(field: &'static str, value: u32) -> Result<u8, Problem> {
    u8::try_from(value).map_err(|_| wrong(field, &value.into(), "no number of 8 bits"))
}

/// A hardware address; those of other lengths than six bytes cannot be addresses of packets.
pub(crate) fn mac(field: &'static str, text: &str) -> Result<Mac, Problem> {
    let is_wrong = || wrong(field, &text.into(), "no hardware address");
    let bytes: Vec<u8> = text
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).map_err(|_| is_wrong()))
        .collect::<Result<_, _>>()?;
    bytes.try_into().map_err(|_| is_wrong())
}
