//! Values of C types as JSON, in bpftool's form: structures as objects, enumerators by name.

use paceline::btf::Value;
use serde_json::Value as Json;

use super::failure::Problem;

/// A value as JSON. Numbers beyond 64 bits, which JSON cannot hold exactly, are texts.
pub(super) fn to_json(value: &Value) -> Json {
    match value {
        Value::Bool(b) => Json::from(*b),
        Value::Signed(n) => i64::try_from(*n).map_or_else(|_| Json::from(n.to_string()), Json::from),
        Value::Unsigned(n) => u64::try_from(*n).map_or_else(|_| Json::from(n.to_string()), Json::from),
        Value::Float(n) => Json::from(*n),
        Value::Enum { name: Some(name), .. } => Json::from(name.as_str()),
        Value::Enum { name: None, value } => to_json(&Value::Signed(*value)),
        Value::Pointer(address) => Json::from(*address),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Bytes(bytes) => hex(bytes),
        Value::Array(elements) => elements.iter().map(to_json).collect(),
        Value::Struct(members) => {
            members.iter().map(|(name, value)| (name.clone(), to_json(value))).collect()
        }
        other => Json::from(other.to_string()),
    }
}

/// Bytes as bpftool writes them where it knows no type.
pub(super) fn hex(bytes: &[u8]) -> Json {
    bytes.iter().map(|byte| Json::from(format!("{byte:#04x}"))).collect()
}

/// A value from JSON, whatever type it is for.
pub(super) fn from_json(json: &Json) -> Result<Value, Problem> {
    Ok(match json {
        Json::Null => return Err(Problem::Null),
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
pub(super) fn from_hex(json: &Json, size: usize) -> Option<Vec<u8>> {
    let list = json.as_array().filter(|list| list.len() == size)?;
    let byte = |json: &Json| u8::from_str_radix(json.as_str()?.strip_prefix("0x")?, 16).ok();
    list.iter().map(byte).collect()
}

/// The bytes of a value without a type: a list of numbers, or one number in the machine's byte order.
pub(super) fn from_untyped(json: &Json, size: usize) -> Option<Vec<u8>> {
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
    fn values_keep_their_numbers_and_order() {
        let text = r#"{"b":[1,-2,18446744073709551615],"a":"x","c":{"t":true}}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(to_json(&from_json(&json).unwrap()).to_string(), text);
        assert_eq!(from_json(&json!([null])), Err(Problem::Null));
        assert_eq!(to_json(&Value::Unsigned(1 << 64)), json!("18446744073709551616"));
    }
}
