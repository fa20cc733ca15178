//! Filling maps with the elements of their files.

use paceline::btf::Btf;
use paceline::{Collection, Map};
use serde_json::Value as Json;

use super::encode::{encode, encode_json};
use super::failure::{MapFailure, Problem};
use super::json_file::{JsonFile, Part};
use super::variables::variables;
use crate::failure::Failure;

const ELEMENTS: &str = "a map is filled by a list of elements {\"key\": ..., \"value\": ...}";

/// Sets the elements that files list, in the maps of a loaded object.
pub(crate) fn set_elements(files: &[JsonFile], collection: &Collection) -> Result<(), Failure> {
    let btf = collection.object().btf.as_deref();
    for file in files {
        let Some(map) = collection.map(&file.map) else { continue };
        if btf.and_then(|btf| variables(btf, map.spec())).is_none() {
            fill(file, map, btf).map_err(|failure| file.failure(failure))?;
        }
    }
    Ok(())
}

fn fill(file: &JsonFile, map: &Map, btf: Option<&Btf>) -> Result<(), MapFailure> {
    let root = file.root()?;
    if root.is_list() {
        let elements = root.list(ELEMENTS)?;
        return elements.into_iter().zip(1..).try_for_each(|(element, number): (_, usize)| {
            set_element(&element.named(format!("element {number}")), map, btf)
        });
    }
    root.members(ELEMENTS)?.into_iter().try_for_each(|(key, value)| {
        let value = value.named(format!("key {key}"));
        let key = encode_json(&value, &key_of_name(&key), btf, map.spec().key_type, key_size(map))?;
        store(&value, map, &key, Given::One(value.clone()), btf)
    })
}

/// Keys of JSON objects are texts, those of maps mostly numbers.
fn key_of_name(name: &str) -> Json {
    serde_json::from_str(name).ok().filter(Json::is_number).unwrap_or_else(|| name.into())
}

/// What a file gives under a key.
enum Given<'a> {
    One(Part<'a>),
    PerCpu(Vec<Part<'a>>),
}

fn set_element(element: &Part<'_>, map: &Map, btf: Option<&Btf>) -> Result<(), MapFailure> {
    let mut members = element.members(ELEMENTS)?;
    if let Some(formatted) = members.remove("formatted") {
        members = formatted.members(ELEMENTS)?;
    }
    let [key, value, values] = ["key", "value", "values"].map(|name| members.remove(name));
    if let Some((name, member)) = members.pop_first() {
        return Err(member.fail(Problem::UnknownMember(name)));
    }
    let shape = || element.fail(Problem::Shape(ELEMENTS));
    let key = key.ok_or_else(shape)?.named("key".to_owned());
    let given = match (value, values) {
        (Some(value), None) => Given::One(value.named("value".to_owned())),
        (None, Some(values)) if map.spec().kind.is_per_cpu() => Given::PerCpu(values.list(ELEMENTS)?),
        (None, Some(values)) => return Err(values.fail(Problem::NotPerCpu)),
        _ => return Err(shape()),
    };
    let key = encode(&key, btf, map.spec().key_type, key_size(map))?;
    store(element, map, &key, given, btf)
}

fn store(
    element: &Part<'_>,
    map: &Map,
    key: &[u8],
    given: Given<'_>,
    btf: Option<&Btf>,
) -> Result<(), MapFailure> {
    let spec = map.spec();
    let encode = |part: &Part<'_>| encode(part, btf, spec.value_type, spec.value_size as usize);
    let value = match given {
        Given::One(part) if spec.kind.is_per_cpu() => {
            let mut value = encode(&part)?;
            value.resize(value.len().next_multiple_of(8), 0);
            value.repeat(map.user_value_size() / value.len().max(1))
        }
        Given::One(part) => encode(&part)?,
        Given::PerCpu(parts) => {
            let stride = (spec.value_size as usize).next_multiple_of(8);
            // CPUs that the file leaves out keep what they have.
            let mut all = map.get(key).unwrap_or_else(|_| vec![0; map.user_value_size()]);
            for part in parts {
                let (cpu, value) = value_of_cpu(&part)?;
                let bytes = encode(&value)?;
                let cpus = all.len() / stride.max(1);
                let start = usize::try_from(cpu).unwrap_or(usize::MAX).saturating_mul(stride);
                let place = all.get_mut(start..start.saturating_add(bytes.len()));
                place.ok_or_else(|| part.fail(Problem::Cpu { cpu, cpus }))?.copy_from_slice(&bytes);
            }
            all
        }
    };
    map.set(key, &value, 0).map_err(|errno| element.fail(Problem::refused(errno, spec)))
}

/// One of the values of a per-CPU element: `{"cpu": 0, "value": 5}`.
fn value_of_cpu<'a>(part: &Part<'a>) -> Result<(u64, Part<'a>), MapFailure> {
    const FORM: &str = "`values` is a list of {\"cpu\": ..., \"value\": ...}";
    let mut members = part.members(FORM)?;
    let shape = || part.fail(Problem::Shape(FORM));
    let cpu = members.remove("cpu").ok_or_else(shape)?.value()?.as_u64().ok_or_else(shape)?;
    let value = members.remove("value").ok_or_else(shape)?;
    Ok((cpu, value.named(format!("value of cpu {cpu}"))))
}

fn key_size(map: &Map) -> usize {
    map.spec().key_size as usize
}
