//! Single keys and values.

use paceline_btf::{Btf, TypeId, Value, ValueError, address_bytes, prefix_bytes, prefix_form};
use paceline_spec::MapSpec;
use serde_json::Value as Json;

/// JSON is not a key or value of a type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// `null`, which no C type has.
    #[error("null is not a value")]
    Null,
    /// The JSON does not fit the type.
    #[error(transparent)]
    Value(ValueError),
    /// There is no type, and it is not the bytes.
    #[error("the map has no types, so this must be a list of {size} bytes, such as [\"0x0a\", \"0x00\"]{}", if matches!(.size, 1 | 2 | 4 | 8) { " or a number" } else { "" })]
    Untyped {
        /// Bytes there must be.
        size: usize,
    },
    /// A text that is no prefix, for a key of a longest-prefix trie.
    #[error("`{text}` is no prefix: this map takes {form}")]
    Prefix {
        /// The text.
        text: String,
        /// The form of its prefixes.
        form: &'static str,
    },
    /// The type is not of the size that is asked for.
    #[error("the type takes {found} bytes, the map has {expected}")]
    Size {
        /// Bytes of the type.
        found: usize,
        /// Bytes asked for.
        expected: usize,
    },
    /// An element of a per-CPU map that is no list of values.
    #[error("a per-CPU map takes a list of {0} values, one for each CPU")]
    Cpus(usize),
}

/// The bytes of a key or value: by its type where there is one (not 0), from a number or a list of bytes otherwise. A list of as many
/// bytes in hexadecimal, such as `["0x0a", "0x00"]`, stands for itself whatever the type.
///
/// # Errors
/// [`JsonError`]. What lies deeper than the whole has its place in the message, such as `.ports[3]`.
pub fn encode(json: &Json, btf: Option<&Btf>, ty: TypeId, size: usize) -> Result<Vec<u8>, JsonError> {
    if let Some(bytes) = from_hex(json, size) {
        return Ok(bytes);
    }
    match btf.filter(|_| ty != 0) {
        Some(btf) => encode_typed(json, btf, ty, size),
        None => from_untyped(json, size).ok_or(JsonError::Untyped { size }),
    }
}

/// The bytes of a key of a map: as [`encode`] makes them, and for longest-prefix tries also from prefixes, such as `10.0.0.0/8`.
///
/// # Errors
/// As [`encode`].
pub fn encode_key(json: &Json, btf: Option<&Btf>, spec: &MapSpec) -> Result<Vec<u8>, JsonError> {
    let size = spec.key_size as usize;
    let prefix = json.as_str().filter(|_| spec.kind.has_prefixes());
    match prefix.map(|text| (text, prefix_bytes(text, size), prefix_form(size))) {
        Some((_, Some(key), _)) => Ok(key),
        Some((text, None, Some(form))) => Err(JsonError::Prefix { text: text.to_owned(), form }),
        _ => encode(json, btf, spec.key_type, size),
    }
}

/// The bytes of a value of a type, which must be as many.
///
/// # Errors
/// As [`encode`].
pub fn encode_typed(json: &Json, btf: &Btf, ty: TypeId, size: usize) -> Result<Vec<u8>, JsonError> {
    let bytes = btf.encode(ty, &from_json(json)?).map_err(JsonError::Value)?;
    if bytes.len() == size { Ok(bytes) } else { Err(JsonError::Size { found: bytes.len(), expected: size }) }
}

/// A value as [`to_json`] shows it: by its type, or as bytes where there is none (0) and where bytes and type do not agree.
#[must_use]
pub fn decode(bytes: &[u8], btf: Option<&Btf>, ty: TypeId) -> Json {
    let value = btf.filter(|_| ty != 0).and_then(|btf| btf.decode(ty, bytes).ok());
    value.map_or_else(|| hex(bytes), |value| to_json(&value))
}

/// The same as [`to_written_json`] shows it.
#[must_use]
pub fn decode_written(bytes: &[u8], btf: Option<&Btf>, ty: TypeId) -> Json {
    let value = btf.filter(|_| ty != 0).and_then(|btf| btf.decode_written(ty, bytes).ok());
    value.map_or_else(|| hex(bytes), |value| to_written_json(&value))
}

/// A value as JSON. Numbers beyond 64 bits, which JSON cannot hold exactly, are texts.
#[must_use]
pub fn to_json(value: &Value) -> Json {
    converted(value, false)
}

/// The same with texts for [`Value::Written`], such as `10.9.1.0/24`.
#[must_use]
pub fn to_written_json(value: &Value) -> Json {
    converted(value, true)
}

fn converted(value: &Value, is_written: bool) -> Json {
    match value {
        Value::Bool(b) => Json::from(*b),
        Value::Signed(n) => i64::try_from(*n).map_or_else(|_| Json::from(n.to_string()), Json::from),
        Value::Unsigned(n) => u64::try_from(*n).map_or_else(|_| Json::from(n.to_string()), Json::from),
        Value::Float(n) => Json::from(*n),
        Value::Enum { name: Some(name), .. } => Json::from(name.as_str()),
        Value::Enum { name: None, value } => converted(&Value::Signed(*value), is_written),
        Value::Pointer(address) => Json::from(*address),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => hex(bytes),
        Value::Array(elements) => elements.iter().map(|value| converted(value, is_written)).collect(),
        Value::Struct(members) => {
            members.iter().map(|(name, value)| (name.clone(), converted(value, is_written))).collect()
        }
        Value::Written { text, .. } if is_written => Json::from(text.as_str()),
        Value::Written { plain, .. } => converted(plain, is_written),
        other => Json::from(other.to_string()),
    }
}

/// The parts of a value that a pattern names: members of structures that it leaves out are left out.
#[must_use]
pub fn project(actual: &Json, pattern: &Json) -> Json {
    match (actual, pattern) {
        (Json::Object(actual), Json::Object(pattern)) => {
            let member =
                |(name, pattern): (&String, &Json)| Some((name.clone(), project(actual.get(name)?, pattern)));
            pattern.iter().filter_map(member).collect()
        }
        (Json::Array(actual), Json::Array(pattern)) => {
            let element = |(number, actual): (usize, &Json)| match pattern.get(number) {
                Some(pattern) => project(actual, pattern),
                None => actual.clone(),
            };
            actual.iter().enumerate().map(element).collect()
        }
        (actual, _) => actual.clone(),
    }
}

/// Bytes as bpftool writes them where it knows no type.
#[must_use]
pub fn hex(bytes: &[u8]) -> Json {
    bytes.iter().map(|byte| Json::from(format!("{byte:#04x}"))).collect()
}

/// A value from JSON, whatever type it is for.
///
/// # Errors
/// [`JsonError::Null`].
pub fn from_json(json: &Json) -> Result<Value, JsonError> {
    Ok(match json {
        Json::Null => return Err(JsonError::Null),
        Json::Bool(b) => Value::Bool(*b),
        Json::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(n), _, _) => Value::Unsigned(n.into()),
            (None, Some(n), _) => Value::Signed(n.into()),
            (None, None, n) => Value::Float(n.unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(elements) => Value::Array(elements.iter().map(from_json).collect::<Result<_, _>>()?),
        Json::Object(members) => {
            let member = |(name, json): (&String, &Json)| Ok((name.clone(), from_json(json)?));
            Value::Struct(members.iter().map(member).collect::<Result<_, _>>()?)
        }
    })
}

/// The bytes of a list such as `["0x0a", "0x00"]`, if it is one and has this many.
fn from_hex(json: &Json, size: usize) -> Option<Vec<u8>> {
    let list = json.as_array().filter(|list| list.len() == size)?;
    let byte = |json: &Json| u8::from_str_radix(json.as_str()?.strip_prefix("0x")?, 16).ok();
    list.iter().map(byte).collect()
}

/// The bytes of a value without a type: a list of numbers, an address, or one number in the machine's byte order.
fn from_untyped(json: &Json, size: usize) -> Option<Vec<u8>> {
    if let Json::String(text) = json {
        return address_bytes(text, size);
    }
    if let Json::Array(list) = json {
        let byte = |json: &Json| u8::try_from(json.as_u64()?).ok();
        return list.iter().map(byte).collect::<Option<Vec<u8>>>().filter(|bytes| bytes.len() == size);
    }
    let number = json.as_u64().or_else(|| json.as_i64().map(i64::cast_unsigned))?;
    match size {
        1 => Some(u8::try_from(number).ok()?.to_ne_bytes().to_vec()),
        2 => Some(u16::try_from(number).ok()?.to_ne_bytes().to_vec()),
        4 => Some(u32::try_from(number).ok()?.to_ne_bytes().to_vec()),
        8 => Some(number.to_ne_bytes().to_vec()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn bytes_and_numbers_stand_for_values_without_types() {
        assert_eq!(from_hex(&json!(["0x0a", "0xff"]), 2), Some(vec![0x0a, 0xff]));
        assert_eq!(from_hex(&json!(["0x0a", "0xff"]), 3), None);
        assert_eq!(from_hex(&json!(["0x100"]), 1), None);
        assert_eq!(from_untyped(&json!([1, 255]), 2), Some(vec![1, 255]));
        assert_eq!(from_untyped(&json!([1, 256]), 2), None);
        assert_eq!(from_untyped(&json!(258), 2), Some(258u16.to_ne_bytes().to_vec()));
        assert_eq!(from_untyped(&json!(65536), 2), None);
        assert_eq!(from_untyped(&json!(-1), 8), Some(vec![0xff; 8]));
        assert_eq!(from_untyped(&json!(-1), 4), None);
        assert_eq!(from_untyped(&json!(1), 3), None);
    }

    #[test]
    fn texts_that_are_no_prefix_are_told_with_the_form() {
        let spec = MapSpec::new("m", paceline_spec::MapKind::LpmTrie, 8, 1, 1);
        for text in ["10.9.1.0/33", "10.9.1.0/-1", "::/0", ""] {
            let error = encode_key(&json!(text), None, &spec).unwrap_err().to_string();
            assert!(
                error.starts_with(&format!("`{text}` is no prefix")) && error.contains("0 to 32"),
                "{error}"
            );
        }
    }

    #[test]
    fn values_keep_their_numbers_and_order() {
        let text = r#"{"b":[1,-2,18446744073709551615],"a":"x","c":{"t":true}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(to_json(&from_json(&json).unwrap()).to_string(), text);
        assert_eq!(from_json(&json!([null])), Err(JsonError::Null));
        assert_eq!(to_json(&Value::Unsigned(1 << 64)), json!("18446744073709551616"));
    }
}
