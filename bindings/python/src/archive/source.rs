//! Captures that Python gives: paths, bytes, and objects that read bytes at an offset.

use std::io;
use std::sync::Arc;

use paceline::capture::ReadAt;
use paceline_archive::Source;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

use super::failure::raised;
use crate::process::attached;
use crate::source::os_error;

/// An object of Python with `read_at(offset, size) -> bytes`.
struct Reader(Py<PyAny>);

impl ReadAt for Reader {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let read = attached(|py| {
            let read =
                self.0.call_method1(py, "read_at", (offset, buffer.len())).map_err(io::Error::other)?;
            let bytes =
                read.bind(py).cast::<PyBytes>().map_err(|error| io::Error::other(PyErr::from(error)))?;
            let bytes = bytes.as_bytes();
            let room = buffer.get_mut(..bytes.len());
            let room =
                room.ok_or_else(|| io::Error::other("read_at gives more bytes than it is asked for"))?;
            room.copy_from_slice(bytes);
            Ok(bytes.len())
        });
        read.unwrap_or_else(|| Err(io::Error::other("the interpreter ends")))
    }
}

/// Bytes in memory.
struct Memory(Vec<u8>);

impl ReadAt for Memory {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.as_slice().read_at(offset, buffer)
    }
}

/// A source of a path, of bytes, or of an object with `size` and `read_at`; `name` is for messages.
pub(super) fn source_of(name: &str, given: &Bound<'_, PyAny>) -> PyResult<Source> {
    let py = given.py();
    let made = if let Ok(path) = given.cast::<PyString>() {
        let path = path.to_string();
        py.detach(|| Source::open(&path))
    } else if let Ok(bytes) = given.cast::<PyBytes>() {
        in_memory(name, bytes.as_bytes().to_vec())
    } else if let Ok(bytes) = given.cast::<PyByteArray>() {
        in_memory(name, bytes.to_vec())
    } else if given.hasattr("read_at")? {
        let (len, reader) = (given.getattr("size")?.extract()?, Reader(given.clone().unbind()));
        py.detach(|| Source::new(name, Arc::new(reader), len))
    } else {
        return Err(PyTypeError::new_err("a capture is a path, a URL, bytes, a binary file or a Split"));
    };
    made.map_err(|error| match error {
        paceline_archive::Error::Open { name, source } if source.get_ref().is_none() => {
            os_error(py, &source, &name)
        }
        error => raised(error),
    })
}

fn in_memory(name: &str, bytes: Vec<u8>) -> Result<Source, paceline_archive::Error> {
    let len = bytes.len() as u64;
    Source::new(name, Arc::new(Memory(bytes)), len)
}
