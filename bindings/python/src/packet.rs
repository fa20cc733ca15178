//! Packets: bytes from Python objects, and layers.

use paceline::packet::{Layers, build, differences, to_text};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

use crate::error::{Class, Failure, guarded};

/// The bytes of a packet: of `bytes` as they are, of other buffers and of objects with `__bytes__`, such as packets of Scapy, a copy.
pub(crate) fn bytes_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyBytes>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(bytes.clone());
    }
    let py = object.py();
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(PyBytes::new(py, &bytes.to_vec()));
    }
    if object.is_instance_of::<PyString>() {
        return Err(PyTypeError::new_err("a packet is bytes, not str; pl.packet(text) makes one from words"));
    }
    if let Some(method) = object.getattr_opt("__bytes__")? {
        return method.call0()?.cast_into::<PyBytes>().map_err(|_| no_packet(object));
    }
    let view = PyMemoryView::from(object).map_err(|_| no_packet(object))?;
    Ok(view.call_method0("tobytes")?.cast_into()?)
}

fn no_packet(object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    PyTypeError::new_err(format!("a packet is bytes, a buffer or an object with __bytes__, not {kind}"))
}

/// The bytes of a packet from a text.
#[pyfunction]
pub(crate) fn build_packet<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyBytes>> {
    guarded(|| {
        let bytes = build(text)
            .map_err(|error| Failure::of(Class::Packet, &error).at(format!("column {}", error.column)))?;
        Ok(PyBytes::new(py, &bytes))
    })
}

/// The text that builds the packet.
#[pyfunction]
pub(crate) fn layers_text(packet: &Bound<'_, PyAny>) -> PyResult<String> {
    let bytes = bytes_of(packet)?;
    guarded(|| Ok(to_text(bytes.as_bytes())))
}

/// The names of the layers, outermost first.
#[pyfunction]
pub(crate) fn layer_names(packet: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let bytes = bytes_of(packet)?;
    guarded(|| Ok(Layers::new(bytes.as_bytes()).headers().iter().map(|layer| layer.name()).collect()))
}

/// The value of a field by its path, such as `ipv4.ttl`: a number where it is one, and text otherwise; `None` if there is no such field.
#[pyfunction]
pub(crate) fn packet_field<'py>(
    packet: &Bound<'py, PyAny>,
    path: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let bytes = bytes_of(packet)?;
    guarded(|| {
        let layers = Layers::new(bytes.as_bytes());
        let Some(field) = layers.field(path) else { return Ok(None) };
        let text = field.to_string();
        let number = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        Ok(Some(match number {
            Some(number) => number.into_bound_py_any(packet.py())?,
            None => text.into_bound_py_any(packet.py())?,
        }))
    })
}

/// A difference of two packets: name, value in the first, value in the second.
type Difference = (String, Option<String>, Option<String>);

/// The differences of two packets.
#[pyfunction]
pub(crate) fn packet_differences(
    first: &Bound<'_, PyAny>,
    second: &Bound<'_, PyAny>,
) -> PyResult<Vec<Difference>> {
    let (first, second) = (bytes_of(first)?, bytes_of(second)?);
    guarded(|| {
        let found = differences(first.as_bytes(), second.as_bytes());
        Ok(found.into_iter().map(|d| (d.name, d.before, d.after)).collect())
    })
}

/// The error of a packet that no frame holds.
pub(crate) fn too_long(len: usize) -> PyErr {
    Failure::new(Class::Packet, format!("packet of {len} bytes is longer than a frame")).into()
}

/// An error about a packet of many, counted from 0 as in Python.
pub(crate) fn at_index(index: usize, error: &PyErr, py: Python<'_>) -> PyErr {
    let text = format!("packets[{index}]: {}", error.value(py));
    if error.is_instance_of::<PyTypeError>(py) {
        PyTypeError::new_err(text)
    } else {
        PyValueError::new_err(text)
    }
}
