//! Filling maps with the elements of their files.

use std::sync::Arc;

use paceline::btf::Btf;
use paceline::json::JsonError;
use paceline::{Collection, EntryError, Errno, Map, MissingMap, NoProgram, Program};
use serde_json::Value as Json;

use super::encode::{encode, encode_key};
use super::error::{MapFailure, MapFileError, Problem};
use super::json_file::{JsonFile, Part};
use super::variables::variables;
use crate::common::suggest::closest;

const ELEMENTS: &str = "a map is filled by a list of elements {\"key\": ..., \"value\": ...}";

/// Loads a program of the object.
pub(crate) type LoadProgram<'a> = &'a dyn Fn(&str) -> Result<Program, NoProgram>;

/// Sets the elements that files list, in the maps of a loaded object.
pub(crate) fn set_elements<'a>(
    files: impl IntoIterator<Item = &'a JsonFile>,
    collection: &Collection,
    load: LoadProgram<'_>,
) -> Result<(), MapFileError> {
    for file in files {
        let Some(map) = collection.map(&file.map) else {
            let missing = collection.missing().iter().find(|missing| missing.name == file.map);
            let failure =
                |missing: &MissingMap| file.failure(MapFailure::Missing(Arc::clone(&missing.error)));
            missing.map_or(Ok(()), |missing| Err(failure(missing)))?;
            continue;
        };
        let target = Target { map, btf: collection.object().btf(), collection, load };
        if target.btf.and_then(|btf| variables(btf, map.spec())).is_none() {
            fill(file, &target).map_err(|failure| file.failure(failure))?;
        }
    }
    Ok(())
}

/// A map to fill, and the names that its elements may refer to.
struct Target<'a> {
    map: &'a Map,
    btf: Option<&'a Btf>,
    collection: &'a Collection,
    load: LoadProgram<'a>,
}

fn fill(file: &JsonFile, target: &Target<'_>) -> Result<(), MapFailure> {
    if file.replaces {
        target.clear();
    }
    fill_from(&file.root()?, target)
}

/// Sets the elements of a list, or of an object by their keys.
fn fill_from(root: &Part<'_>, target: &Target<'_>) -> Result<(), MapFailure> {
    if root.is_list() {
        let elements = root.list(ELEMENTS)?;
        return elements.into_iter().zip(1..).try_for_each(|(element, number): (_, usize)| {
            set_element(&element.named(format!("element {number}")), target)
        });
    }
    root.members(ELEMENTS)?.into_iter().try_for_each(|(key, value)| {
        let value = value.named(format!("key {key}"));
        let spec = target.map.spec();
        let key = encode_key(&value, &key_of_name(&key), target.btf, spec)?;
        target.store(&value, &key, Given::One(value.clone()))
    })
}

/// Keys of JSON objects are texts, those of maps mostly numbers.
fn key_of_name(name: &str) -> Json {
    serde_json::from_str(name).ok().filter(Json::is_number).unwrap_or_else(|| name.into())
}

/// The value or values of a key in a file.
enum Given<'a> {
    One(Part<'a>),
    PerCpu(Vec<Part<'a>>),
}

fn set_element(element: &Part<'_>, target: &Target<'_>) -> Result<(), MapFailure> {
    let spec = target.map.spec();
    let mut members = element.members(ELEMENTS)?;
    if let Some(formatted) = members.remove("formatted") {
        members = formatted.members(ELEMENTS)?;
    }
    let [key, value, values] = ["key", "value", "values"].map(|name| members.remove(name));
    if let Some((name, member)) = members.pop_first() {
        return Err(member.fail(Problem::UnknownMember(name)));
    }
    let shape = || element.fail(Problem::Shape(ELEMENTS));
    let given = match (value, values) {
        (Some(value), None) => Given::One(value.named("value".to_owned())),
        (None, Some(values)) if spec.kind.is_per_cpu() => Given::PerCpu(values.list(ELEMENTS)?),
        (None, Some(values)) => return Err(values.fail(Problem::NotPerCpu)),
        _ => return Err(shape()),
    };
    let key = match key {
        Some(key) => {
            let key = key.named("key".to_owned());
            encode_key(&key, &key.value()?, target.btf, spec)?
        }
        // Queues and stacks.
        None if spec.key_size == 0 => Vec::new(),
        None => return Err(shape()),
    };
    target.store(element, &key, given)
}

impl Target<'_> {
    fn store(&self, element: &Part<'_>, key: &[u8], given: Given<'_>) -> Result<(), MapFailure> {
        let spec = self.map.spec();
        let value = match given {
            Given::One(part) if spec.kind.holds_programs() => return self.install(&part, key),
            Given::One(part) if spec.inner.is_some() => return self.put_map(&part, key),
            Given::One(part) if spec.kind.is_per_cpu() => {
                let mut value = self.encode(&part)?;
                value.resize(self.map.value_stride(), 0);
                value.repeat(self.map.user_value_size() / value.len())
            }
            Given::One(part) => self.encode(&part)?,
            Given::PerCpu(parts) => self.per_cpu(key, parts)?,
        };
        self.map.update(key, &value, 0).map_err(|errno| element.fail(Problem::refused(errno, spec)))
    }

    fn encode(&self, part: &Part<'_>) -> Result<Vec<u8>, MapFailure> {
        let spec = self.map.spec();
        encode(part, self.btf, spec.value_type, spec.value_size as usize)
    }

    /// The values of all CPUs; those that the file leaves out keep what they have.
    fn per_cpu(&self, key: &[u8], parts: Vec<Part<'_>>) -> Result<Vec<u8>, MapFailure> {
        let stride = self.map.value_stride();
        let mut all = self.map.lookup(key).unwrap_or_else(|_| vec![0; self.map.user_value_size()]);
        for part in parts {
            let (cpu, value) = value_of_cpu(&part)?;
            let bytes = self.encode(&value)?;
            let cpus = all.len() / stride;
            let start = usize::try_from(cpu).unwrap_or(usize::MAX).saturating_mul(stride);
            let place = all.get_mut(start..start.saturating_add(bytes.len()));
            place.ok_or_else(|| part.fail(Problem::Cpu { cpu, cpus }))?.copy_from_slice(&bytes);
        }
        Ok(all)
    }

    /// Removes all elements; array elements become zero.
    fn clear(&self) {
        let (map, spec) = (self.map, self.map.spec());
        if spec.kind.holds_programs() {
            (0..spec.max_entries).for_each(|index| drop(self.collection.uninstall(&spec.name, index)));
            return;
        }
        while map.pop().is_ok() {}
        // An element that cannot be removed is overwritten, or the map refuses the file too.
        for key in map.keys().into_iter().flatten() {
            let is_zero = || map.lookup(&key).is_ok_and(|value| value.iter().all(|&byte| byte == 0));
            if !spec.kind.is_array() {
                let _ = map.delete(&key);
            } else if !is_zero() {
                let _ = map.update(&key, &vec![0; map.user_value_size()], 0);
            }
        }
    }

    /// Entries of maps of maps are maps by name, new ones by their elements, or nothing.
    fn put_map(&self, part: &Part<'_>, key: &[u8]) -> Result<(), MapFailure> {
        let spec = self.map.spec();
        let refused = |errno| part.fail(Problem::refused(errno, spec));
        if part.is_list() || part.is_object() {
            let inner = self.collection.make_inner(self.map);
            let inner = inner.map_err(|error| part.fail(Problem::NotMade(error)))?;
            fill_from(part, &Target { map: &inner, ..*self })?;
            return self.map.update(key, &inner.id().to_ne_bytes(), 0).map_err(refused);
        }
        let name = match part.value()? {
            Json::Null => {
                return match self.map.delete(key) {
                    Ok(()) | Err(Errno::ENOENT) => Ok(()),
                    Err(errno) => Err(refused(errno)),
                };
            }
            Json::String(name) => name,
            _ => return Err(part.fail(Problem::NoMapName)),
        };
        let names = || self.collection.maps().iter().map(|map| map.spec().name.as_str());
        let inner = self.collection.map(&name).ok_or_else(|| {
            let suggestion = closest(&name, names());
            part.fail(Problem::NoInnerMap { name: name.clone(), suggestion })
        })?;
        let mismatch = |mismatch| part.fail(Problem::Inner { name: name.clone(), mismatch });
        self.map.check_inner(inner).map_err(mismatch)?;
        self.map.update(key, &inner.id().to_ne_bytes(), 0).map_err(refused)
    }

    /// Entries of program arrays are programs by name, or nothing.
    fn install(&self, part: &Part<'_>, key: &[u8]) -> Result<(), MapFailure> {
        let name = &self.map.spec().name;
        let index = key.try_into().map(u32::from_ne_bytes);
        let index = index.map_err(|_| part.fail(JsonError::Untyped { size: key.len() }.into()))?;
        let refused = |error: EntryError| part.fail(Problem::Entry(error.to_string()));
        match part.value()? {
            Json::Null => self.collection.uninstall(name, index).map(drop).map_err(refused),
            Json::String(program) => {
                let program = (self.load)(&program).map_err(|source| part.no_program(index, source))?;
                self.collection.install(name, index, &program).map_err(refused)
            }
            _ => Err(part.fail(Problem::NoName)),
        }
    }
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
