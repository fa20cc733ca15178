//! Maps by their BTF types. `paceline._maps` makes mutable mappings of them.

use std::sync::Arc;

use paceline::{Collection, Errno, Map, MapSpec, Program};
use pyo3::exceptions::{PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyMapping};
use pyo3_arrow::input::AnyRecordBatch;

use crate::codec::Codec;
use crate::effects::Sent;
use crate::error::{Class, Failure, guarded};
use crate::shared::Shared;
use crate::table::{PyBatch, arrow_error};

/// A map of a collection, as user space sees it.
#[pyclass(frozen, name = "RawMap", module = "paceline._paceline")]
pub(crate) struct RawMap {
    map: Arc<Map>,
    codec: Codec,
    shared: Arc<Shared>,
}

impl RawMap {
    pub(crate) fn new(map: &Arc<Map>, spec: &MapSpec, shared: &Arc<Shared>) -> Self {
        let codec = Codec::new(map, spec, shared.collection.object().shared_btf());
        Self { map: Arc::clone(map), codec, shared: Arc::clone(shared) }
    }

    fn collection(&self) -> &Collection {
        &self.shared.collection
    }

    fn refused(&self, errno: Errno) -> PyErr {
        let name = &self.codec.spec.name;
        let failure = Failure::new(Class::Map, format!("map {name}: {errno}"));
        failure.at(format!("map {name}")).with_data(serde_json::json!({ "errno": errno.0 })).into()
    }

    fn found<T>(&self, result: Result<T, Errno>) -> PyResult<Option<T>> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(Errno::ENOENT) => Ok(None),
            Err(errno) => Err(self.refused(errno)),
        }
    }

    /// The error of a missing key: as a list has it for arrays, and a dict for others.
    fn missing(&self, key: &Bound<'_, PyAny>) -> PyErr {
        match self.codec.spec.kind.is_array() {
            true => PyIndexError::new_err(format!(
                "map {} has {} elements",
                self.codec.spec.name,
                self.map.spec().max_entries
            )),
            false => PyKeyError::new_err(key.clone().unbind()),
        }
    }

    fn keys_bytes(&self) -> PyResult<Vec<Vec<u8>>> {
        Ok(self.map.keys().map_err(|errno| self.refused(errno))?.collect())
    }
}

#[pymethods]
impl RawMap {
    #[getter]
    fn name(&self) -> &str {
        &self.codec.spec.name
    }

    /// The kind's name, as in libbpf's maps without the prefix: `hash`, `percpu_array`.
    #[getter]
    fn kind(&self) -> String {
        self.codec.spec.kind.to_string()
    }

    #[getter]
    fn key_size(&self) -> u32 {
        self.codec.spec.key_size
    }

    #[getter]
    fn value_size(&self) -> u32 {
        self.codec.spec.value_size
    }

    #[getter]
    fn max_entries(&self) -> u32 {
        self.map.spec().max_entries
    }

    /// Number of the map, unique in the process.
    #[getter]
    fn id(&self) -> u32 {
        self.map.id()
    }

    /// Values of an element: one, or one for each CPU.
    #[getter]
    fn cpus(&self) -> usize {
        self.codec.cpus
    }

    #[getter]
    fn is_frozen(&self) -> bool {
        self.map.is_frozen()
    }

    /// Name of its class in `paceline._maps`.
    #[getter]
    fn form(&self) -> &'static str {
        let kind = self.codec.spec.kind;
        match () {
            () if kind.holds_programs() => "programs",
            () if self.codec.spec.inner.is_some() => "maps",
            () if kind.is_queue() => "queue",
            () if kind.tests_membership() => "bloom",
            () if self.map.ring_buffer().is_some() => "ring",
            () => "elements",
        }
    }

    /// The same map with keys and values as `bytes`.
    fn plain(&self) -> Self {
        Self { map: Arc::clone(&self.map), codec: self.codec.plain(), shared: Arc::clone(&self.shared) }
    }

    fn get<'py>(&self, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| {
            let bytes = self.codec.encode_key(key)?;
            match self.found(self.map.lookup(&bytes))? {
                Some(value) => self.codec.decode_value(key.py(), &value),
                None => Err(self.missing(key)),
            }
        })
    }

    #[pyo3(signature = (key, value, flags = 0))]
    fn set(&self, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>, flags: u64) -> PyResult<()> {
        guarded(|| {
            let (bytes, value) = (self.codec.encode_key(key)?, self.codec.encode_value(value)?);
            self.map.update_raw(&bytes, &value, flags).map_err(|errno| match errno {
                Errno::E2BIG if self.codec.spec.kind.is_array() => self.missing(key),
                errno => self.refused(errno),
            })
        })
    }

    fn delete(&self, key: &Bound<'_, PyAny>) -> PyResult<()> {
        guarded(|| match self.found(self.map.delete(&self.codec.encode_key(key)?))? {
            Some(()) => Ok(()),
            None => Err(self.missing(key)),
        })
    }

    fn contains(&self, key: &Bound<'_, PyAny>) -> PyResult<bool> {
        guarded(|| Ok(self.found(self.map.lookup(&self.codec.encode_key(key)?))?.is_some()))
    }

    fn len(&self) -> PyResult<usize> {
        guarded(|| Ok(self.map.keys().map_err(|errno| self.refused(errno))?.count()))
    }

    /// All keys there are now.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let keys = self.keys_bytes()?;
            let keys = keys.iter().map(|key| self.codec.decode_key(py, key));
            PyList::new(py, keys.collect::<PyResult<Vec<_>>>()?)
        })
    }

    /// All elements there are now.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let mut items = Vec::new();
            for key in self.keys_bytes()? {
                let Ok(value) = self.map.lookup(&key) else { continue };
                items.push((self.codec.decode_key(py, &key)?, self.codec.decode_value(py, &value)?));
            }
            PyList::new(py, items)
        })
    }

    /// The values of many keys, `None` for those that are not there.
    fn lookup_many<'py>(&self, keys: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let py = keys.py();
            let mut values = Vec::new();
            for key in keys.try_iter()? {
                values.push(match self.found(self.map.lookup(&self.codec.encode_key(&key?)?))? {
                    Some(value) => self.codec.decode_value(py, &value)?,
                    None => py.None().into_bound(py),
                });
            }
            PyList::new(py, values)
        })
    }

    /// Sets many elements, from a mapping or from pairs. All are checked against the types before the first is set.
    fn update_many(&self, elements: &Bound<'_, PyAny>) -> PyResult<usize> {
        guarded(|| {
            let items = match elements.cast::<PyMapping>() {
                Ok(mapping) => mapping.items()?.into_any(),
                Err(_) => elements.clone(),
            };
            let mut encoded = Vec::new();
            for item in items.try_iter()? {
                let (key, value) = item?.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
                encoded.push((self.codec.encode_key(&key)?, self.codec.encode_value(&value)?));
            }
            for (key, value) in &encoded {
                self.map.insert(key, value).map_err(|errno| self.refused(errno))?;
            }
            Ok(encoded.len())
        })
    }

    /// Sets the elements of a table of Arrow with the columns `key` and `value`. All are checked before the first is set.
    fn update_arrow(&self, table: &Bound<'_, PyAny>) -> PyResult<usize> {
        let py = table.py();
        let reader = table.extract::<AnyRecordBatch>()?.into_reader()?;
        guarded(|| {
            let mut encoded = Vec::new();
            for batch in reader {
                let batch = batch.map_err(|error| Failure::of(Class::Value, &error))?;
                let column = |name: &str| {
                    batch
                        .column_by_name(name)
                        .ok_or_else(|| PyKeyError::new_err(format!("the table has no column {name}")))
                };
                let columns = (column("key")?, column("value")?);
                for row in 0..batch.num_rows() {
                    encoded.push(self.codec.encode_row(columns, row, py)?);
                }
            }
            for (key, value) in &encoded {
                self.map.insert(key, value).map_err(|errno| self.refused(errno))?;
            }
            Ok(encoded.len())
        })
    }

    /// All elements there are now, as a table of Arrow with the columns `key` and `value`.
    fn to_arrow(&self, py: Python<'_>) -> PyResult<PyBatch> {
        guarded(|| {
            let mut elements = Vec::new();
            for key in self.keys_bytes()? {
                let Ok(value) = self.map.lookup(&key) else { continue };
                elements.push((key, value));
            }
            let table = self.codec.table(&elements).map_err(|error| arrow_error(&error))?;
            PyBatch::new(py, table, Sent::default())
        })
    }

    /// Removes all elements; those of arrays become zero.
    fn clear(&self) -> PyResult<()> {
        guarded(|| {
            for key in self.keys_bytes()? {
                match self.codec.spec.kind.is_array() {
                    true => self.map.insert(&key, &vec![0; self.map.user_value_size()]),
                    false => self
                        .map
                        .delete(&key)
                        .or_else(|errno| if errno == Errno::ENOENT { Ok(()) } else { Err(errno) }),
                }
                .map_err(|errno| self.refused(errno))?;
            }
            Ok(())
        })
    }

    /// Makes the map read-only for user space.
    fn freeze(&self) -> PyResult<()> {
        guarded(|| self.map.freeze().map_err(|errno| self.refused(errno)))
    }

    // Queues and stacks, and Bloom filters.

    #[pyo3(signature = (value, flags = 0))]
    fn push(&self, value: &Bound<'_, PyAny>, flags: u64) -> PyResult<()> {
        guarded(|| {
            self.map.push(&self.codec.encode_value(value)?, flags).map_err(|errno| self.refused(errno))
        })
    }

    fn pop<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| self.taken(py, self.map.pop()))
    }

    fn peek<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guarded(|| self.taken(py, self.map.peek()))
    }

    /// The values of a queue or stack, the oldest first.
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| {
            let values = self.map.values().map_err(|errno| self.refused(errno))?;
            let values = values.iter().map(|value| self.codec.decode_value(py, value));
            PyList::new(py, values.collect::<PyResult<Vec<_>>>()?)
        })
    }

    fn may_contain(&self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        guarded(|| {
            self.map.may_contain(&self.codec.encode_value(value)?).map_err(|errno| self.refused(errno))
        })
    }

    // Ring buffers.

    /// The records that programs submitted since the last call.
    fn records<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        guarded(|| {
            let mut records = Vec::new();
            if let Some(reader) = self.map.ring_buffer() {
                reader.consume(|record| records.push(PyBytes::new(py, record)));
            }
            Ok(records)
        })
    }

    // Maps of maps.

    /// The map in an entry.
    fn inner(&self, key: &Bound<'_, PyAny>) -> PyResult<Self> {
        guarded(|| {
            let bytes = self
                .found(self.map.lookup(&self.codec.encode_key(key)?))?
                .ok_or_else(|| self.missing(key))?;
            let id = bytes.as_slice().try_into().map(u32::from_ne_bytes).ok();
            let map = id.and_then(Map::by_id).ok_or_else(|| self.missing(key))?;
            Ok(self.of_inner(map))
        })
    }

    /// Makes a map such as this one holds.
    fn make_inner(&self) -> PyResult<Self> {
        guarded(|| {
            let map =
                self.collection().make_inner(&self.map).map_err(|error| Failure::of(Class::Map, &error))?;
            Ok(self.of_inner(map))
        })
    }

    fn set_inner(&self, key: &Bound<'_, PyAny>, inner: &Self) -> PyResult<()> {
        guarded(|| {
            self.map.check_inner(&inner.map).map_err(|mismatch| {
                let (name, inner) = (&self.codec.spec.name, &inner.codec.spec.name);
                Failure::new(Class::Map, format!("map {name} cannot hold map {inner}: {mismatch}"))
            })?;
            let id = inner.map.id().to_ne_bytes();
            self.map.insert(&self.codec.encode_key(key)?, &id).map_err(|errno| self.refused(errno))
        })
    }

    // Program arrays.

    fn uninstall(&self, index: u32) -> PyResult<bool> {
        guarded(|| {
            Ok(self
                .collection()
                .uninstall(&self.codec.spec.name, index)
                .map_err(|error| self.entry(&error))?)
        })
    }

    /// The name of the program in an entry, if it came there through this collection.
    fn installed(&self, index: u32) -> Option<String> {
        self.collection().installed(&self.codec.spec.name, index)
    }
}

impl RawMap {
    pub(crate) fn install(&self, index: u32, program: &Program) -> PyResult<()> {
        Ok(self
            .collection()
            .install(&self.codec.spec.name, index, program)
            .map_err(|error| self.entry(&error))?)
    }

    fn taken<'py>(&self, py: Python<'py>, value: Result<Vec<u8>, Errno>) -> PyResult<Bound<'py, PyAny>> {
        match self.found(value)? {
            Some(value) => self.codec.decode_value(py, &value),
            None => Err(PyIndexError::new_err(format!("map {} is empty", self.codec.spec.name))),
        }
    }

    fn of_inner(&self, map: Arc<Map>) -> Self {
        let codec = self.codec.of_inner(&map);
        Self { map, codec, shared: Arc::clone(&self.shared) }
    }

    fn entry(&self, error: &paceline::EntryError) -> Failure {
        Failure::new(Class::Map, format!("map {}: {}", self.codec.spec.name, paceline::with_causes(error)))
    }
}

/// The maps of a collection, as a mapping in Python, without the counters of coverage.
pub(crate) fn maps_of<'py>(py: Python<'py>, shared: &Arc<Shared>) -> PyResult<Bound<'py, PyAny>> {
    let maps = PyDict::new(py);
    let specs = shared.collection.object().maps();
    for (map, spec) in shared.collection.maps().iter().zip(specs) {
        if !shared.collection.is_counters(&spec.name) {
            maps.set_item(&spec.name, RawMap::new(map, spec, shared))?;
        }
    }
    py.import("paceline._maps")?.call_method1("Maps", (maps,))
}
