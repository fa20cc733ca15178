//! Keys and values of a map: as objects of Python, and as rows of Arrow tables.

use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::{ArrowError, Field, Schema};
use paceline::btf::{Btf, Value};
use paceline::{Map, MapSpec};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::elements::Shape;
use crate::error::{Class, Failure};
use crate::rows::value_at;
use crate::value::Typing;

/// The types of a map's elements.
#[derive(Clone)]
pub(crate) struct Codec {
    /// As the collection's own object says: the type ids of a shared map refer to another object's BTF.
    pub(crate) spec: MapSpec,
    btf: Option<Arc<Btf>>,
    /// Whether keys and values are `bytes`, whatever their types.
    is_plain: bool,
    /// Bytes from one CPU's value to the next.
    stride: usize,
    /// Values of an element.
    pub(crate) cpus: usize,
}

impl Codec {
    pub(crate) fn new(map: &Map, spec: &MapSpec, btf: Option<Arc<Btf>>) -> Self {
        let spec = MapSpec { contents: Vec::new(), ..spec.clone() };
        let stride = map.value_stride().max(1);
        Self { spec, btf, is_plain: false, stride, cpus: map.user_value_size() / stride }
    }

    /// The same with keys and values as `bytes`.
    pub(crate) fn plain(&self) -> Self {
        Self { is_plain: true, ..self.clone() }
    }

    /// That of the maps in a map of maps: their types are those of the template.
    pub(crate) fn of_inner(&self, map: &Map) -> Self {
        let template = self.spec.inner.as_deref().unwrap_or(&self.spec);
        let spec = MapSpec { name: map.spec().name.clone(), ..template.clone() };
        Self { is_plain: self.is_plain, ..Self::new(map, &spec, self.btf.clone()) }
    }

    fn key_typing(&self) -> Typing<'_> {
        Typing {
            btf: self.btf.as_deref().filter(|_| !self.is_plain),
            ty: self.spec.key_type,
            size: self.spec.key_size as usize,
            is_prefix: self.spec.kind.has_prefixes(),
        }
    }

    fn value_typing(&self) -> Typing<'_> {
        Typing {
            btf: self.btf.as_deref().filter(|_| !self.is_plain),
            ty: self.spec.value_type,
            size: self.spec.value_size as usize,
            is_prefix: false,
        }
    }

    pub(crate) fn decode_key<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        match <[u8; 4]>::try_from(key) {
            // An index, whether the object says so or not.
            Ok(index) if self.spec.kind.is_array() && !self.is_plain => {
                u32::from_ne_bytes(index).into_bound_py_any(py)
            }
            _ => self.key_typing().decode(py, key),
        }
    }

    pub(crate) fn encode_key(&self, key: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        self.key_typing().encode(key).map_err(|error| self.about("key", &error, key.py()))
    }

    pub(crate) fn encode_value(&self, value: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
        let encoded = match self.spec.kind.is_per_cpu() {
            true => match value.extract::<Vec<Bound<'_, PyAny>>>() {
                Ok(values) => {
                    self.per_cpu(values.len(), values.iter().map(|value| self.value_typing().encode(value)))
                }
                Err(_) => Err(self.wrong_cpus()),
            },
            false => self.value_typing().encode(value),
        };
        encoded.map_err(|error| self.about("value", &error, value.py()))
    }

    /// The bytes of the values of all CPUs.
    fn per_cpu(&self, count: usize, values: impl Iterator<Item = PyResult<Vec<u8>>>) -> PyResult<Vec<u8>> {
        if count != self.cpus {
            return Err(self.wrong_cpus());
        }
        let mut all = Vec::with_capacity(self.cpus * self.stride);
        for value in values {
            all.extend(value?);
            all.resize(all.len().next_multiple_of(self.stride), 0);
        }
        Ok(all)
    }

    /// The bytes of a key and a value of a table of Arrow.
    pub(crate) fn encode_row(
        &self,
        (key, value): (&ArrayRef, &ArrayRef),
        row: usize,
        py: Python<'_>,
    ) -> PyResult<(Vec<u8>, Vec<u8>)> {
        let value_of = |array: &ArrayRef| {
            value_at(array, row).map_err(|cause| PyErr::from(Failure::new(Class::Value, cause)))
        };
        let key = value_of(key).and_then(|key| self.key_typing().encode_value(key));
        let key = key.map_err(|error| self.about("key", &error, py))?;
        let value = value_of(value).and_then(|value| match (self.spec.kind.is_per_cpu(), value) {
            (true, Value::Array(values)) => {
                let count = values.len();
                self.per_cpu(count, values.into_iter().map(|value| self.value_typing().encode_value(value)))
            }
            (true, _) => Err(self.wrong_cpus()),
            (false, value) => self.value_typing().encode_value(value),
        });
        Ok((key, value.map_err(|error| self.about("value", &error, py))?))
    }

    fn wrong_cpus(&self) -> PyErr {
        let cpus = self.cpus;
        Failure::new(
            Class::Value,
            format!("a per-CPU map takes a sequence of {cpus} values, one for each CPU"),
        )
        .into()
    }

    pub(crate) fn decode_value<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        if !self.spec.kind.is_per_cpu() {
            return self.value_typing().decode(py, bytes);
        }
        let size = self.spec.value_size as usize;
        let values = bytes.chunks(self.stride);
        let values = values.map(|value| self.value_typing().decode(py, value.get(..size).unwrap_or(value)));
        Ok(PyTuple::new(py, values.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    /// Names the map and the part of the element in an error of a value.
    fn about(&self, part: &str, error: &PyErr, py: Python<'_>) -> PyErr {
        let cause = error.value(py).to_string();
        let failure = Failure::new(Class::Value, format!("map {}, {part}: {cause}", self.spec.name));
        match error.is_instance_of::<PyTypeError>(py) {
            true => PyTypeError::new_err(format!("map {}, {part}: {cause}", self.spec.name)),
            false => failure.at(format!("map {}", self.spec.name)).into(),
        }
    }

    /// A table of elements, from their keys and their values as user space reads them.
    pub(crate) fn table(&self, elements: &[(Vec<u8>, Vec<u8>)]) -> Result<RecordBatch, ArrowError> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        let size = self.spec.value_size as usize;
        for (key, value) in elements {
            keys.extend_from_slice(key);
            // Without what fills the values of CPUs up to whole words.
            value
                .chunks(self.stride)
                .for_each(|value| values.extend_from_slice(value.get(..size).unwrap_or(value)));
        }
        let shape = |of: Typing<'_>| Shape::of(of.btf, of.ty, of.size);
        let (key, value) = (shape(self.key_typing()), shape(self.value_typing()));
        let value = if self.spec.kind.is_per_cpu() { value.repeated(self.cpus) } else { value };
        table_of(&[("key", &key, &keys), ("value", &value, &values)], elements.len())
    }
}

/// A table of columns of so many elements, from their bytes.
fn table_of(columns: &[(&str, &Shape, &[u8])], count: usize) -> Result<RecordBatch, ArrowError> {
    let field =
        |(name, shape, _): &(&str, &Shape, &[u8])| Field::new(*name, shape.data_type().clone(), false);
    let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
    let arrays = columns.iter().map(|(_, shape, bytes)| shape.array(bytes, bytes.len() / count.max(1), 0));
    let options = RecordBatchOptions::new().with_row_count(Some(count));
    RecordBatch::try_new_with_options(Arc::new(schema), arrays.collect::<Result<_, _>>()?, &options)
}
