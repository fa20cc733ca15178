//! Maps with keys and values in JSON.

use std::sync::Arc;

use paceline_btf::{Btf, DataSection, Type, Value};
use paceline_maps::{Map, UpdateMode};
use paceline_spec::{Errno, MapSpec};
use serde_json::Value as Json;

use super::value::{JsonError, encode, encode_key, hex, project, to_json, to_written_json};
use crate::load::Collection;

/// An element cannot be read or written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ElementError {
    /// The key does not fit.
    #[error("map {map}, key")]
    Key {
        /// Name of the map.
        map: String,
        /// Cause.
        source: JsonError,
    },
    /// The value does not fit.
    #[error("map {map}, value")]
    Value {
        /// Name of the map.
        map: String,
        /// Cause.
        source: JsonError,
    },
    /// The map refuses it; the methods of [`Map`] document the error numbers.
    #[error("map {map}: {errno}")]
    Refused {
        /// Name of the map.
        map: String,
        /// As the kernel would.
        errno: Errno,
    },
}

/// The variables of a map that is a section of global data; `None` for other maps.
#[must_use]
pub fn variables<'a>(btf: &'a Btf, spec: &MapSpec) -> Option<&'a DataSection> {
    match btf.get(spec.value_type)? {
        Type::DataSection(section) if spec.max_entries == 1 => Some(section),
        _ => None,
    }
}

/// A map as user space sees it, its keys and values in JSON by the types that its object gives; from [`Collection::json_map`].
/// In per-CPU kinds a value is a list of the values of all CPUs.
#[derive(Clone, Debug)]
pub struct JsonMap {
    map: Arc<Map>,
    /// Specification of the collection's own object: a shared map's type ids refer to another object's BTF.
    spec: MapSpec,
    btf: Option<Arc<Btf>>,
    is_written: bool,
}

impl Collection {
    /// The map of a name with keys and values in JSON.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use paceline::{LoadOptions, Object, with_causes};
    /// # use serde_json::json;
    /// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
    /// let counter = Object::open(path)?.load(&LoadOptions::default())?;
    /// let by_ethertype = counter.json_map("by_ethertype").ok_or("no such map")?;
    /// by_ethertype.insert(&json!(0x0800), &json!({"packets": 2, "bytes": 120}))?;
    /// assert_eq!(by_ethertype.lookup(&json!(0x0800))?, Some(json!({"packets": 2, "bytes": 120})));
    ///
    /// let error = by_ethertype.lookup(&json!(65536)).unwrap_err();
    /// let text = with_causes(&error);
    /// assert_eq!(text, "map by_ethertype, key: 65536 does not fit into `__u16` (0 to 65535)");
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn json_map(&self, name: &str) -> Option<JsonMap> {
        let (map, spec) = self.maps().iter().zip(self.object().maps()).find(|(_, spec)| spec.name == name)?;
        let spec = MapSpec { contents: Vec::new(), ..spec.clone() };
        Some(JsonMap { map: Arc::clone(map), spec, btf: self.object().shared_btf(), is_written: false })
    }
}

impl JsonMap {
    /// The same map, whose keys and values are shown as [`to_written_json`] makes them.
    #[must_use]
    pub fn written(mut self) -> Self {
        self.is_written = true;
        self
    }

    /// The map under a key of a map of maps, if there is one.
    ///
    /// # Errors
    /// [`ElementError::Key`]; [`ElementError::Refused`] as [`Map::lookup`] gives it, and with `EINVAL` of a map that holds no maps.
    pub fn inner(&self, key: &Json) -> Result<Option<Self>, ElementError> {
        let template = self.spec.inner.as_deref().ok_or_else(|| self.refused(Errno::EINVAL))?;
        let Some(id) = self.found(self.map.lookup(&self.key(key)?))? else { return Ok(None) };
        let id = id.try_into().map(u32::from_ne_bytes).map_err(|_| self.refused(Errno::EINVAL))?;
        let map = Map::by_id(id).ok_or_else(|| self.refused(Errno::ENOENT))?;
        let spec = MapSpec { name: map.spec().name.clone(), contents: Vec::new(), ..template.clone() };
        Ok(Some(Self { map, spec, btf: self.btf.clone(), is_written: self.is_written }))
    }

    /// Whether the map is a section of global variables, the only value of which is an object of their names and values.
    #[must_use]
    pub fn holds_variables(&self) -> bool {
        self.btf.as_deref().is_some_and(|btf| variables(btf, &self.spec).is_some())
    }

    /// The map as the object declares it, whose name it has there; the template in maps of maps.
    #[must_use]
    pub fn spec(&self) -> &MapSpec {
        &self.spec
    }

    /// A value, in per-CPU kinds of one CPU, in the form in which [`lookup`](Self::lookup) shows it: enumerators by their names, addresses as
    /// numbers or texts. Members of structures that it leaves out are left out.
    ///
    /// # Errors
    /// [`ElementError::Value`].
    pub fn normalized(&self, value: &Json) -> Result<Json, ElementError> {
        let bytes = self.one_value(value);
        let bytes = bytes.map_err(|source| ElementError::Value { map: self.spec.name.clone(), source })?;
        Ok(project(&self.show(self.spec.decode_value(self.btf.as_deref(), &bytes), &bytes), value))
    }

    /// The map itself.
    #[must_use]
    pub fn map(&self) -> &Arc<Map> {
        &self.map
    }

    /// The value under a key, if there is one ([`Map::lookup`]).
    ///
    /// # Errors
    /// [`ElementError::Key`]; [`ElementError::Refused`] as [`Map::lookup`] gives it.
    pub fn lookup(&self, key: &Json) -> Result<Option<Json>, ElementError> {
        let bytes = self.found(self.map.lookup(&self.key(key)?))?;
        Ok(bytes.map(|bytes| self.show_value(&bytes)))
    }

    /// Sets the value under a key ([`Map::insert`]).
    ///
    /// # Errors
    /// [`ElementError`].
    pub fn insert(&self, key: &Json, value: &Json) -> Result<(), ElementError> {
        self.update_with(key, value, UpdateMode::Any)
    }

    /// Sets the value under a key if the mode allows it ([`Map::update_with`]).
    ///
    /// # Errors
    /// [`ElementError`].
    pub fn update_with(&self, key: &Json, value: &Json, mode: UpdateMode) -> Result<(), ElementError> {
        self.update_raw(key, value, mode.flags())
    }

    /// Sets the value under a key ([`Map::update_raw`], whose flags these are).
    ///
    /// # Errors
    /// [`ElementError`].
    pub fn update_raw(&self, key: &Json, value: &Json, flags: u64) -> Result<(), ElementError> {
        let (key, value) = (self.key(key)?, self.value(value)?);
        self.map.update_raw(&key, &value, flags).map_err(|errno| self.refused(errno))
    }

    /// Removes the element of a key ([`Map::delete`]); false where there was none.
    ///
    /// # Errors
    /// [`ElementError::Key`]; [`ElementError::Refused`] as [`Map::delete`] gives it.
    pub fn delete(&self, key: &Json) -> Result<bool, ElementError> {
        Ok(self.found(self.map.delete(&self.key(key)?))?.is_some())
    }

    /// All elements that can be read, without those that go meanwhile.
    ///
    /// # Errors
    /// [`ElementError::Refused`]: the map is write-only for user space.
    pub fn iter(&self) -> Result<impl Iterator<Item = (Json, Json)> + '_, ElementError> {
        let keys = self.map.keys().map_err(|errno| self.refused(errno))?;
        Ok(keys.filter_map(|key| {
            let value = self.map.lookup(&key).ok()?;
            let shown = self.show(self.spec.decode_key(self.btf.as_deref(), &key), &key);
            Some((shown, self.show_value(&value)))
        }))
    }

    fn key(&self, json: &Json) -> Result<Vec<u8>, ElementError> {
        if self.spec.key_size == 0 && json.is_null() {
            return Ok(Vec::new()); // of a queue
        }
        let key = encode_key(json, self.btf.as_deref(), &self.spec);
        key.map_err(|source| ElementError::Key { map: self.spec.name.clone(), source })
    }

    fn value(&self, json: &Json) -> Result<Vec<u8>, ElementError> {
        let value = if self.spec.kind.is_per_cpu() { self.per_cpu(json) } else { self.one_value(json) };
        value.map_err(|source| ElementError::Value { map: self.spec.name.clone(), source })
    }

    fn one_value(&self, json: &Json) -> Result<Vec<u8>, JsonError> {
        encode(json, self.btf.as_deref(), self.spec.value_type, self.spec.value_size as usize)
    }

    fn per_cpu(&self, json: &Json) -> Result<Vec<u8>, JsonError> {
        let (size, stride) = (self.map.user_value_size(), self.map.value_stride());
        let cpus = size / stride;
        let values = json.as_array().filter(|values| values.len() == cpus).ok_or(JsonError::Cpus(cpus))?;
        let mut all = Vec::with_capacity(size);
        for (value, end) in values.iter().zip((stride..).step_by(stride)) {
            all.extend(self.one_value(value)?);
            all.resize(end, 0);
        }
        Ok(all)
    }

    fn show_value(&self, bytes: &[u8]) -> Json {
        let one = |bytes: &[u8]| self.show(self.spec.decode_value(self.btf.as_deref(), bytes), bytes);
        if !self.spec.kind.is_per_cpu() {
            return one(bytes);
        }
        let size = self.spec.value_size as usize;
        bytes.chunks(self.map.value_stride()).map(|bytes| one(bytes.get(..size).unwrap_or(bytes))).collect()
    }

    fn show(&self, value: Option<Value>, bytes: &[u8]) -> Json {
        match value {
            Some(value) if self.is_written => to_written_json(&value),
            Some(value) => to_json(&value),
            None => hex(bytes),
        }
    }

    fn found<T>(&self, result: Result<T, Errno>) -> Result<Option<T>, ElementError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(self.refused(errno)),
        }
    }

    fn refused(&self, errno: Errno) -> ElementError {
        ElementError::Refused { map: self.spec.name.clone(), errno }
    }
}
