//! Elements of maps as JSON.

use paceline::btf::Type;
use paceline::generate::Element;
use paceline::{Object, json};
use serde_json::Value as Json;

use super::toml;

/// The elements of a map as test files expect them: without values that TOML cannot say.
pub(super) fn expected(of: &Object, map: usize, elements: &[Element]) -> Json {
    let Json::Array(all) = contents(of, map, elements) else { return contents(of, map, elements) };
    let Some(spec) = of.maps().get(map) else { return Json::Null };
    let element = |(json, element): (Json, &Element)| {
        let value = json::decode(&element.value, of.btf(), spec.value_type);
        match toml::value(&value) {
            Some(_) => serde_json::json!({ "key": json["key"], "value": value }),
            None => serde_json::json!({ "key": json["key"] }),
        }
    };
    all.into_iter().zip(elements).map(element).collect()
}

/// The elements of a map as test files have them.
pub(crate) fn contents(of: &Object, map: usize, elements: &[Element]) -> Json {
    let Some(spec) = of.maps().get(map) else { return Json::Null };
    let btf = of.btf();
    if let [only] = elements
        && btf.is_some_and(|btf| matches!(btf.get(spec.value_type), Some(Type::DataSection(_))))
    {
        // Variables, by their names.
        return json::decode(&only.value, btf, spec.value_type);
    }
    let typed = |bytes: &[u8], ty: u32, is_same: &dyn Fn(&Json) -> bool| {
        let json = json::decode(bytes, btf, ty);
        if is_same(&json) && toml::value(&json).is_some() { json } else { json::hex(bytes) }
    };
    let element = |element: &Element| {
        let key = typed(&element.key, spec.key_type, &|json| {
            json::encode_key(json, btf, spec).is_ok_and(|bytes| bytes == element.key)
        });
        let value = typed(&element.value, spec.value_type, &|json| {
            json::encode(json, btf, spec.value_type, element.value.len())
                .is_ok_and(|bytes| bytes == element.value)
        });
        serde_json::json!({ "key": key, "value": value })
    };
    elements.iter().map(element).collect()
}
