//! Filling maps with elements.

use std::sync::Arc;

use paceline_btf::Btf;
use paceline_engine::Program;
use paceline_maps::Map;
use paceline_spec::Errno;
use serde_json::Value as Json;

use super::encode::{encode, encode_key};
use super::error::{ContentsCause, ContentsError, ContentsProblem};
use super::text::{MapContents, Part};
use crate::json::JsonError;
use crate::json::variables;
use crate::load::EntryError;
use crate::load::ProgramError;
use crate::load::VerifiedProgram;
use crate::load::{Collection, MissingMap};

const ELEMENTS: &str = "a map is filled by a list of elements {\"key\": ..., \"value\": ...}";

impl Collection {
    /// Sets the elements that these contents list, one after the other. Contents of maps that this collection does not have, and
    /// values of variables, which [`Object::set_variables`](crate::Object::set_variables) sets, are left out.
    ///
    /// Entries of program arrays are names of the object's programs, verified if `verifies`; entries of maps of maps are names of its
    /// maps, or lists of elements of new ones.
    ///
    /// # Errors
    /// [`ContentsError`]; elements before the wrong one are set.
    pub fn set_elements<'a>(
        &self,
        contents: impl IntoIterator<Item = &'a MapContents>,
        verifies: bool,
    ) -> Result<(), ContentsError> {
        contents.into_iter().try_for_each(|given| self.set_elements_of(given, verifies))
    }

    fn set_elements_of(&self, given: &MapContents, verifies: bool) -> Result<(), ContentsError> {
        let Some(map) = self.map(&given.map) else {
            let missing = self.missing().iter().find(|missing| missing.name == given.map);
            let failure =
                |missing: &MissingMap| given.failure(ContentsCause::Missing(Arc::clone(&missing.error)));
            return missing.map_or(Ok(()), |missing| Err(failure(missing)));
        };
        let target = Target { map, btf: self.object().btf(), collection: self, verifies };
        match target.btf.and_then(|btf| variables(btf, map.spec())) {
            Some(_) => Ok(()),
            None => fill(given, &target).map_err(|failure| given.failure(failure)),
        }
    }
}

/// A map to fill, and the names that its elements may refer to.
struct Target<'a> {
    map: &'a Map,
    btf: Option<&'a Btf>,
    collection: &'a Collection,
    /// Whether programs that entries name are verified.
    verifies: bool,
}

fn fill(given: &MapContents, target: &Target<'_>) -> Result<(), ContentsCause> {
    if given.replaces {
        target.clear();
    }
    fill_from(&given.root()?, target)
}

/// Sets the elements of a list, or of an object by their keys.
fn fill_from(root: &Part<'_>, target: &Target<'_>) -> Result<(), ContentsCause> {
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

fn set_element(element: &Part<'_>, target: &Target<'_>) -> Result<(), ContentsCause> {
    let spec = target.map.spec();
    let mut members = element.members(ELEMENTS)?;
    if let Some(formatted) = members.remove("formatted") {
        members = formatted.members(ELEMENTS)?;
    }
    // What `--json` has beside key and value for people.
    drop(members.remove("written"));
    let [key, value, values] = ["key", "value", "values"].map(|name| members.remove(name));
    if let Some((name, member)) = members.pop_first() {
        return Err(member.fail(ContentsProblem::UnknownMember(name)));
    }
    let shape = || element.fail(ContentsProblem::Shape(ELEMENTS));
    let given = match (value, values) {
        (Some(value), None) => Given::One(value.named("value".to_owned())),
        (None, Some(values)) if spec.kind.is_per_cpu() => Given::PerCpu(values.list(ELEMENTS)?),
        (None, Some(values)) => return Err(values.fail(ContentsProblem::NotPerCpu)),
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
    fn store(&self, element: &Part<'_>, key: &[u8], given: Given<'_>) -> Result<(), ContentsCause> {
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
        self.map.insert(key, &value).map_err(|errno| element.fail(ContentsProblem::refused(errno, spec)))
    }

    fn encode(&self, part: &Part<'_>) -> Result<Vec<u8>, ContentsCause> {
        let spec = self.map.spec();
        encode(part, self.btf, spec.value_type, spec.value_size as usize)
    }

    /// The values of all CPUs; those that the file leaves out keep what they have.
    fn per_cpu(&self, key: &[u8], parts: Vec<Part<'_>>) -> Result<Vec<u8>, ContentsCause> {
        let stride = self.map.value_stride();
        let mut all = self.map.lookup(key).unwrap_or_else(|_| vec![0; self.map.user_value_size()]);
        for part in parts {
            let (cpu, value) = value_of_cpu(&part)?;
            let bytes = self.encode(&value)?;
            let cpus = all.len() / stride;
            let start = usize::try_from(cpu).unwrap_or(usize::MAX).saturating_mul(stride);
            let place = all.get_mut(start..start.saturating_add(bytes.len()));
            place.ok_or_else(|| part.fail(ContentsProblem::Cpu { cpu, cpus }))?.copy_from_slice(&bytes);
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
                let _ = map.insert(&key, &vec![0; map.user_value_size()]);
            }
        }
    }

    /// Entries of maps of maps are maps by name, new ones by their elements, or nothing.
    fn put_map(&self, part: &Part<'_>, key: &[u8]) -> Result<(), ContentsCause> {
        let spec = self.map.spec();
        let refused = |errno| part.fail(ContentsProblem::refused(errno, spec));
        if part.is_list() || part.is_object() {
            let inner = self.collection.make_inner(self.map);
            let inner = inner.map_err(|error| part.fail(ContentsProblem::NotMade(error)))?;
            fill_from(part, &Target { map: &inner, ..*self })?;
            return self.map.insert(key, &inner.id().to_ne_bytes()).map_err(refused);
        }
        let name = match part.value()? {
            Json::Null => {
                return match self.map.delete(key) {
                    Ok(()) | Err(Errno::ENOENT) => Ok(()),
                    Err(errno) => Err(refused(errno)),
                };
            }
            Json::String(name) => name,
            _ => return Err(part.fail(ContentsProblem::NoMapName)),
        };
        let inner = self.collection.map(&name).ok_or_else(|| {
            let names = self.collection.maps().iter().map(|map| map.spec().name.clone()).collect();
            part.fail(ContentsProblem::NoInnerMap { name: name.clone(), names })
        })?;
        let mismatch = |mismatch| part.fail(ContentsProblem::Inner { name: name.clone(), mismatch });
        self.map.check_inner(inner).map_err(mismatch)?;
        self.map.insert(key, &inner.id().to_ne_bytes()).map_err(refused)
    }

    fn program(&self, name: &str) -> Result<Program, ProgramError> {
        match self.verifies {
            true => self.collection.program(Some(name)).map(VerifiedProgram::into_program),
            false => self.collection.program_unverified(Some(name)),
        }
    }

    /// Entries of program arrays are programs by name, or nothing.
    fn install(&self, part: &Part<'_>, key: &[u8]) -> Result<(), ContentsCause> {
        let name = &self.map.spec().name;
        let index = key.try_into().map(u32::from_ne_bytes);
        let index = index.map_err(|_| part.fail(JsonError::Untyped { size: key.len() }.into()))?;
        let refused = |error: EntryError| part.fail(ContentsProblem::Entry(error));
        match part.value()? {
            Json::Null => self.collection.uninstall(name, index).map(drop).map_err(refused),
            Json::String(program) => {
                let program = self.program(&program).map_err(|source| part.no_program(index, source))?;
                self.collection.install(name, index, &program).map_err(refused)
            }
            _ => Err(part.fail(ContentsProblem::NoName)),
        }
    }
}

/// One of the values of a per-CPU element: `{"cpu": 0, "value": 5}`.
fn value_of_cpu<'a>(part: &Part<'a>) -> Result<(u64, Part<'a>), ContentsCause> {
    const FORM: &str = "`values` is a list of {\"cpu\": ..., \"value\": ...}";
    let mut members = part.members(FORM)?;
    let shape = || part.fail(ContentsProblem::Shape(FORM));
    let cpu = members.remove("cpu").ok_or_else(shape)?.value()?.as_u64().ok_or_else(shape)?;
    let value = members.remove("value").ok_or_else(shape)?;
    Ok((cpu, value.named(format!("value of cpu {cpu}"))))
}
