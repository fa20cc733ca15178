//! Elements of maps as JSON.

use paceline::btf::{Type, Value};
use paceline::generate::Element;
use paceline::{Object, json};
use serde_json::Value as Json;

use super::toml;
use crate::maps::Form;

/// The elements of a map as test files expect them: without values that TOML cannot say.
pub(super) fn expected(of: &Object, map: usize, elements: &[Element]) -> Json {
    let all = contents(of, map, elements, Form::Written);
    let (Json::Array(all), Some(spec)) = (&all, of.maps().get(map)) else { return all };
    let element = |(json, element): (&Json, &Element)| {
        let value = spec.decode_value(of.btf(), &element.value);
        let value = value.map_or_else(|| json::hex(&element.value), |value| json::to_written_json(&value));
        match toml::value(&value) {
            Some(_) => serde_json::json!({ "key": json["key"], "value": value }),
            None => serde_json::json!({ "key": json["key"] }),
        }
    };
    all.iter().zip(elements).map(element).collect()
}

/// The elements of a map as test files have them, or as JSON has them for tools.
pub(crate) fn contents(of: &Object, map: usize, elements: &[Element], form: Form) -> Json {
    let Some(spec) = of.maps().get(map) else { return Json::Null };
    let btf = of.btf();
    if let [only] = elements
        && btf.is_some_and(|btf| matches!(btf.get(spec.value_type), Some(Type::DataSection(_))))
    {
        // Variables, by their names.
        return form.of(spec.decode_value(btf, &only.value), &only.value);
    }
    let typed = |bytes: &[u8], value: Option<Value>, is_same: &dyn Fn(&Json) -> bool| {
        let json = form.of(value, bytes);
        if is_same(&json) && toml::value(&json).is_some() { json } else { json::hex(bytes) }
    };
    let element = |element: &Element| {
        let key = typed(&element.key, spec.decode_key(btf, &element.key), &|json| {
            json::encode_key(json, btf, spec).is_ok_and(|bytes| bytes == element.key)
        });
        let value = typed(&element.value, spec.decode_value(btf, &element.value), &|json| {
            json::encode(json, btf, spec.value_type, element.value.len())
                .is_ok_and(|bytes| bytes == element.value)
        });
        serde_json::json!({ "key": key, "value": value })
    };
    elements.iter().map(element).collect()
}
