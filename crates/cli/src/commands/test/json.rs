//! Comparison of values, and values as TOML.

use serde_json::{Number, Value as Json};

/// Whether a value has all that is expected: members of structures that are not named may be anything.
pub(super) fn has(actual: &Json, expected: &Json) -> bool {
    match (actual, expected) {
        (Json::Object(actual), Json::Object(expected)) => {
            expected.iter().all(|(name, value)| actual.get(name).is_some_and(|actual| has(actual, value)))
        }
        (Json::Array(actual), Json::Array(expected)) => {
            actual.len() == expected.len() && actual.iter().zip(expected).all(|(a, e)| has(a, e))
        }
        (Json::Number(a), Json::Number(e)) => is_same(a, e),
        (Json::Bool(a), Json::Number(e)) => e.as_u64() == Some(u64::from(*a)),
        (actual, expected) => actual == expected,
    }
}

/// Compares whole numbers exactly, and others as floating-point numbers.
fn is_same(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a == b,
        _ => a.as_f64() == b.as_f64(),
    }
}

/// A value as TOML, on one line.
pub(super) fn to_toml(json: &Json) -> String {
    match json {
        // TOML has no null; no value of a C type is one.
        Json::Null => "\"\"".to_owned(),
        Json::Array(elements) => format!("[{}]", elements.iter().map(to_toml).collect::<Vec<_>>().join(", ")),
        Json::Object(members) if members.is_empty() => "{}".to_owned(),
        Json::Object(members) => {
            let member = |(name, value): (&String, &Json)| format!("{} = {}", key(name), to_toml(value));
            format!("{{ {} }}", members.iter().map(member).collect::<Vec<_>>().join(", "))
        }
        // The escapes of JSON are escapes of TOML.
        scalar => scalar.to_string(),
    }
}

/// A key, quoted unless it is bare.
fn key(name: &str) -> String {
    let is_bare = !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_bare { name.to_owned() } else { Json::from(name).to_string() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn members_that_are_not_named_may_be_anything() {
        let actual = json!({ "packets": 1, "bytes": 60, "list": [1, 2] });
        assert!(has(&actual, &json!({ "packets": 1 })));
        assert!(has(&actual, &json!({ "packets": 1.0, "list": [1, 2] })));
        assert!(!has(&actual, &json!({ "packets": 2 })));
        assert!(!has(&actual, &json!({ "list": [1] })));
        assert!(!has(&actual, &json!({ "other": 1 })));
    }

    #[test]
    fn values_are_written_as_toml() {
        let value = json!({ "a.b": "x\"\n", "c": [1, { "d": true }] });
        let text = to_toml(&value);
        assert_eq!(text, r#"{ "a.b" = "x\"\n", c = [1, { d = true }] }"#);
    }
}
