//! JSON as Python objects.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::Value as Json;

pub(crate) fn to_python<'py>(py: Python<'py>, json: &Json) -> PyResult<Bound<'py, PyAny>> {
    match json {
        Json::Null => Ok(py.None().into_bound(py)),
        Json::Bool(value) => value.into_bound_py_any(py),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_bound_py_any(py),
            (None, Some(number)) => number.into_bound_py_any(py),
            (None, None) => number.as_f64().into_bound_py_any(py),
        },
        Json::String(text) => text.into_bound_py_any(py),
        Json::Array(elements) => {
            let elements = elements.iter().map(|element| to_python(py, element));
            Ok(PyList::new(py, elements.collect::<PyResult<Vec<_>>>()?)?.into_any())
        }
        Json::Object(members) => {
            let dict = PyDict::new(py);
            members.iter().try_for_each(|(name, value)| dict.set_item(name, to_python(py, value)?))?;
            Ok(dict.into_any())
        }
    }
}
