//! Filling maps from their files.

use paceline::btf::{Btf, DataSection, SectionVar, Type};
use paceline::{Collection, InitialValue, Map, MapSpec, Object};
use serde_json::Value as Json;

use super::failure::{MapFailure, Problem};
use super::json;
use super::json_file::{JsonFile, Part};
use super::variables;
use crate::failure::{Failure, closest};

const ELEMENTS: &str = "a map is filled by a list of elements {\"key\": ..., \"value\": ...}";
const VARIABLES: &str = "global variables are set by an object of names and values";

/// Sets the global variables that files name, in the object itself: `.rodata` cannot be changed once it is a map.
pub(crate) fn set_variables(files: &[JsonFile], object: &mut Object) -> Result<(), Failure> {
    for file in files {
        let spec = object.map(&file.map).ok_or_else(|| file.failure(no_map(&file.map, object)))?;
        let btf = object.btf.clone();
        let Some(section) = variables(btf.as_deref(), spec) else { continue };
        let mut bytes = initial_bytes(spec);
        let set = |btf: &Btf, bytes: &mut Vec<u8>| {
            assignments(&file.root()?)?.iter().try_for_each(|(name, part)| {
                let part = part.clone().named(format!("variable {name}"));
                set_variable(btf, section, name, &part, bytes)
            })
        };
        btf.as_deref().map_or(Ok(()), |btf| set(btf, &mut bytes)).map_err(|failure| file.failure(failure))?;
        if let Some(spec) = object.specs_mut().maps.iter_mut().find(|spec| spec.name == file.map) {
            spec.contents = vec![(0u32.to_ne_bytes().to_vec(), InitialValue::Bytes(bytes))];
        }
    }
    Ok(())
}

fn no_map(map: &str, object: &Object) -> MapFailure {
    let names: Vec<&str> = object.maps.iter().map(|spec| spec.name.as_str()).collect();
    let hint = closest(map, names.iter().copied()).unwrap_or_else(|| match names.as_slice() {
        [] => "it has none".to_owned(),
        names => format!("it has {}", names.join(", ")),
    });
    MapFailure::NoMap { map: map.to_owned(), hint }
}

/// What a data section holds at the start.
fn initial_bytes(spec: &MapSpec) -> Vec<u8> {
    let mut bytes = match spec.contents.first() {
        Some((_, InitialValue::Bytes(bytes))) => bytes.clone(),
        _ => Vec::new(),
    };
    bytes.resize(spec.value_size as usize, 0);
    bytes
}

/// Names and values of variables: an object, or bpftool's list `[{"value": {".rodata": [{"x": 1}, {"y": 2}]}}]`.
fn assignments<'a>(root: &Part<'a>) -> Result<Vec<(String, Part<'a>)>, MapFailure> {
    if root.is_object() {
        return Ok(root.members(VARIABLES)?.into_iter().collect());
    }
    let mut found = Vec::new();
    for element in root.list(VARIABLES)? {
        let mut members = element.members(VARIABLES)?;
        if let Some(formatted) = members.remove("formatted") {
            members = formatted.members(VARIABLES)?;
        }
        let section = members.remove("value").ok_or_else(|| element.fail(Problem::Shape(VARIABLES)))?;
        for (_, list) in section.members(VARIABLES)? {
            for variable in list.list(VARIABLES)? {
                found.extend(variable.members(VARIABLES)?);
            }
        }
    }
    Ok(found)
}

fn set_variable(
    btf: &Btf,
    section: &DataSection,
    name: &str,
    part: &Part<'_>,
    bytes: &mut [u8],
) -> Result<(), MapFailure> {
    let var = section.vars.iter().find(|var| btf.type_name(var.ty) == name);
    let Some(&SectionVar { ty, offset, size }) = var else {
        let names = section.vars.iter().map(|var| btf.type_name(var.ty));
        let suggestion = closest(name, names);
        let section = btf.name(section.name).to_owned();
        return Err(part.fail(Problem::NoVariable { section, name: name.to_owned(), suggestion }));
    };
    let ty = match btf.get(ty) {
        Some(Type::Var { ty, .. }) => *ty,
        _ => ty,
    };
    let value = typed(part, btf, ty, size as usize)?;
    let (start, end) = (offset as usize, offset as usize + value.len());
    let len = bytes.len();
    let place =
        bytes.get_mut(start..end).ok_or_else(|| part.fail(Problem::Size { found: end, expected: len }))?;
    place.copy_from_slice(&value);
    Ok(())
}

/// Sets the elements that files list, in the maps of a loaded object.
pub(crate) fn set_elements(files: &[JsonFile], collection: &Collection) -> Result<(), Failure> {
    let btf = collection.object().btf.as_deref();
    for file in files {
        let Some(map) = collection.map(&file.map) else { continue };
        if variables(btf, map.spec()).is_none() {
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
        store(&value.clone(), map, &key, Given::One(value), btf)
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

/// The bytes of a key or value.
fn encode(part: &Part<'_>, btf: Option<&Btf>, ty: u32, size: usize) -> Result<Vec<u8>, MapFailure> {
    encode_json(part, &part.value()?, btf, ty, size)
}

fn encode_json(
    part: &Part<'_>,
    json: &Json,
    btf: Option<&Btf>,
    ty: u32,
    size: usize,
) -> Result<Vec<u8>, MapFailure> {
    if let Some(bytes) = json::from_hex(json, size) {
        return Ok(bytes);
    }
    match btf.filter(|_| ty != 0) {
        Some(btf) => typed_json(part, json, btf, ty, size),
        None => json::from_untyped(json, size).ok_or_else(|| part.fail(Problem::Untyped { size })),
    }
}

fn typed(part: &Part<'_>, btf: &Btf, ty: u32, size: usize) -> Result<Vec<u8>, MapFailure> {
    typed_json(part, &part.value()?, btf, ty, size)
}

fn typed_json(part: &Part<'_>, json: &Json, btf: &Btf, ty: u32, size: usize) -> Result<Vec<u8>, MapFailure> {
    let value = json::from_json(json).map_err(|problem| part.fail(problem))?;
    let bytes = btf.encode(ty, &value).map_err(|error| part.fail(Problem::Value(error)))?;
    if bytes.len() == size {
        Ok(bytes)
    } else {
        Err(part.fail(Problem::Size { found: bytes.len(), expected: size }))
    }
}
