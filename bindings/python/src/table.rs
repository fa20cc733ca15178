//! Arrow record batches for Python, by the PyCapsule protocol.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{TimestampNanosecondType, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::{ArrowError, DataType, Field, FieldRef, Schema};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyTuple};
use pyo3_arrow::ffi::{ArrayIterator, to_array_pycapsules, to_schema_pycapsule, to_stream_pycapsule};

use crate::effects::{Event, Sent};
use crate::error::{Class, Failure, guarded};

/// The error of an operation of Arrow.
pub(crate) fn arrow_error(error: &ArrowError) -> PyErr {
    Failure::of(Class::Internal, &error).into()
}

/// The field of record batches of a schema.
fn field_of(schema: &Schema) -> FieldRef {
    Arc::new(Field::new("", DataType::Struct(schema.fields().clone()), false))
}

/// A stream of record batches for Arrow's libraries; errors are texts.
pub(crate) fn stream<'py>(
    py: Python<'py>,
    schema: &Schema,
    batches: impl Iterator<Item = Result<RecordBatch, String>> + Send + 'static,
    requested_schema: Option<Bound<'py, PyCapsule>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let batches = batches.map(|batch| match batch {
        Ok(batch) => Ok(Arc::new(StructArray::from(batch)) as ArrayRef),
        // The text becomes a string of C.
        Err(error) => Err(ArrowError::ExternalError(error.replace('\0', " ").into())),
    });
    let reader = ArrayIterator::new(batches, field_of(schema));
    Ok(to_stream_pycapsule(py, Box::new(reader), requested_schema)?)
}

/// A record batch, which Arrow's libraries take as a table.
#[pyclass(frozen, name = "Batch", module = "paceline")]
pub(crate) struct PyBatch {
    batch: RecordBatch,
    lines: Vec<String>,
    events: Vec<Py<Event>>,
}

impl PyBatch {
    pub(crate) fn new(py: Python<'_>, batch: RecordBatch, sent: Sent) -> PyResult<Self> {
        let lines = sent.lines();
        let events = sent.events.into_iter().map(|event| Py::new(py, event)).collect::<PyResult<_>>()?;
        Ok(Self { batch, lines, events })
    }
}

#[pymethods]
impl PyBatch {
    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Events of perf event arrays.
    #[getter]
    fn events(&self, py: Python<'_>) -> Vec<Py<Event>> {
        self.events.iter().map(|event| event.clone_ref(py)).collect()
    }

    /// Lines of `bpf_trace_printk`.
    #[getter]
    fn trace(&self) -> Vec<String> {
        self.lines.clone()
    }

    /// A column by its name.
    fn column(&self, name: &str) -> PyResult<PyColumn> {
        let schema = self.batch.schema_ref();
        let (index, field) = schema.column_with_name(name).ok_or_else(|| {
            PyKeyError::new_err(format!("no column {name} (available: {})", self.column_names().join(", ")))
        })?;
        Ok(PyColumn { array: Arc::clone(self.batch.column(index)), field: Arc::new(field.clone()) })
    }

    fn __getitem__(&self, name: &str) -> PyResult<PyColumn> {
        self.column(name)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.batch.schema_ref().as_ref())?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let array = StructArray::from(self.batch.clone());
        Ok(to_array_pycapsules(py, field_of(self.batch.schema_ref()), &array, requested_schema)?)
    }

    /// For those that take streams only: a stream of this batch.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        stream(py, self.batch.schema_ref(), std::iter::once(Ok(self.batch.clone())), requested_schema)
    }

    fn __repr__(&self) -> String {
        format!("<Batch of {} packets: {}>", self.batch.num_rows(), self.column_names().join(", "))
    }
}

fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match array.data_type() {
        DataType::UInt32 => PyList::new(py, array.as_primitive::<UInt32Type>().iter().collect::<Vec<_>>()),
        DataType::UInt64 => PyList::new(py, array.as_primitive::<UInt64Type>().iter().collect::<Vec<_>>()),
        DataType::Timestamp(..) => {
            PyList::new(py, array.as_primitive::<TimestampNanosecondType>().iter().collect::<Vec<_>>())
        }
        DataType::Dictionary(..) => {
            let words = array.as_any_dictionary();
            let names = words.values().as_string::<i32>();
            PyList::new(
                py,
                words.normalized_keys().into_iter().map(|key| names.value(key)).collect::<Vec<_>>(),
            )
        }
        _ => {
            let bytes = array.as_binary_opt::<i64>().into_iter().flat_map(|bytes| bytes.iter());
            PyList::new(py, bytes.map(|bytes| bytes.map(|bytes| PyBytes::new(py, bytes))).collect::<Vec<_>>())
        }
    }
}

/// A column of a record batch.
#[pyclass(frozen, name = "Column", module = "paceline")]
pub(crate) struct PyColumn {
    array: ArrayRef,
    field: FieldRef,
}

#[pymethods]
impl PyColumn {
    #[getter]
    fn name(&self) -> &str {
        self.field.name()
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    /// The values as Python objects, for those who have no Arrow library: int, str, bytes and `None`.
    fn to_list<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guarded(|| list(py, &self.array))
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        Ok(to_schema_pycapsule(py, self.field.as_ref())?)
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        Ok(to_array_pycapsules(py, Arc::clone(&self.field), &self.array, requested_schema)?)
    }

    fn __repr__(&self) -> String {
        format!("<Column {}: {} values>", self.field.name(), self.array.len())
    }
}
