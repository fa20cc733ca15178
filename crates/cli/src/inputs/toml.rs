//! JSON as values of TOML.

use serde_json::Value as Json;

/// A value in one line; `None` for what TOML cannot say: null, and numbers above those of 63 bits.
pub(crate) fn value(json: &Json) -> Option<String> {
    Some(match json {
        Json::Null => return None,
        Json::Bool(value) => value.to_string(),
        Json::Number(number) if number.is_u64() && number.as_i64().is_none() => return None,
        Json::Number(number) => number.to_string(),
        Json::String(text) => string(text),
        Json::Array(values) => {
            let values: Option<Vec<_>> = values.iter().map(value).collect();
            format!("[{}]", values?.join(", "))
        }
        Json::Object(members) => {
            let members: Option<Vec<_>> = members
                .iter()
                .map(|(name, member)| Some(format!("{} = {}", string(name), value(member)?)))
                .collect();
            format!("{{ {} }}", members?.join(", "))
        }
    })
}

/// A text in quotation marks: JSON's escapes are TOML's too, but for the character that TOML forbids.
pub(crate) fn string(text: &str) -> String {
    Json::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// A number of seconds that test files read as these nanoseconds; `None` if there is none.
pub(crate) fn seconds(nanoseconds: u64) -> Option<f64> {
    const NEAR: usize = 8;
    /// Test files have fewer seconds.
    const END: f64 = 1e9;
    let start = nanoseconds as f64 / 1e9;
    let reads = |seconds: &f64| (0.0 + *seconds) * 1e9;
    let up = std::iter::successors(Some(start), |seconds| Some(seconds.next_up()));
    let down = std::iter::successors(Some(start), |seconds| Some(seconds.next_down()));
    up.take(NEAR)
        .chain(down.take(NEAR))
        .find(|seconds| (0.0..END).contains(seconds) && reads(seconds) as u64 == nanoseconds)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_what_toml_reads() {
        let json = json!({ "a b": [1, -2, true], "text": "\"\u{7f}\n", "deep": { "x": [] } });
        let text = format!("v = {}", value(&json).unwrap());
        let read = toml::de::DeTable::parse(&text).unwrap();
        let table = read.get_ref().get("v").and_then(|value| value.get_ref().as_table()).unwrap();
        assert_eq!(table.len(), 3);
        assert_eq!(table.get("text").and_then(|text| text.get_ref().as_str()), Some("\"\u{7f}\n"));
        assert_eq!(value(&json!(u64::MAX)), None);
    }

    #[test]
    fn times_are_read_back_to_the_nanosecond() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..10_000 {
            let nanoseconds = random.u64(..1 << 52) >> random.u32(0..52);
            let seconds = seconds(nanoseconds).unwrap();
            let read: f64 = format!("{seconds:?}").parse().unwrap();
            assert_eq!((read * 1e9) as u64, nanoseconds);
        }
        assert_eq!(seconds(u64::MAX), None);
    }
}
