//! Files and bytes that Python gives.

use std::fs;
use std::io;

use pyo3::exceptions::{PyOSError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView, PyString};

/// A source of bytes: a path, or the bytes themselves; with the file's name.
pub(crate) fn read_source(source: &Bound<'_, PyAny>) -> PyResult<(Vec<u8>, Option<String>)> {
    if let Ok(bytes) = source.cast::<PyBytes>() {
        return Ok((bytes.as_bytes().to_vec(), None));
    }
    if let Ok(bytes) = source.cast::<PyByteArray>() {
        return Ok((bytes.to_vec(), None));
    }
    if source.is_instance_of::<PyMemoryView>() {
        return Ok((source.call_method0("tobytes")?.cast::<PyBytes>()?.as_bytes().to_vec(), None));
    }
    let path = path_of(source)?;
    let bytes =
        source.py().detach(|| fs::read(&path)).map_err(|error| os_error(source.py(), &error, &path))?;
    Ok((bytes, Some(path)))
}

/// The path that a `str` or `os.PathLike` is.
pub(crate) fn path_of(source: &Bound<'_, PyAny>) -> PyResult<String> {
    let path = source.py().import("os")?.call_method1("fspath", (source,))?;
    path.cast::<PyString>()
        .map(|path| path.to_string())
        .map_err(|_| PyTypeError::new_err("a path is a str or an os.PathLike of str"))
}

/// An `OSError` with the file's name, as `open` raises it.
pub(crate) fn os_error(py: Python<'_>, error: &io::Error, path: &str) -> PyErr {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let raised = match error.raw_os_error() {
        Some(number) => py.get_type::<PyOSError>().call1((number, text, path)),
        None => py.get_type::<PyOSError>().call1((format!("{path}: {text}"),)),
    };
    raised.map_or_else(|error| error, PyErr::from_value)
}
