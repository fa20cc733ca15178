//! Parts of captures, which other threads, processes and machines read.

use paceline::capture::{LinkType, Preamble, Split};
use paceline_archive::{Opened, Part};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::failure::raised;
use super::source::source_of;
use crate::error::guarded;

/// A part of a capture: plain data, which can be pickled and compared.
#[pyclass(frozen, eq, name = "Split", module = "paceline")]
#[derive(Clone, PartialEq)]
pub(crate) struct PySplit {
    /// The capture as it was given: a path or URL.
    capture: String,
    /// The whole capture if there is none.
    split: Option<Split>,
}

impl PySplit {
    pub(super) fn part(&self) -> Part {
        // Other parts are read elsewhere.
        Part { split: self.split.clone(), is_alone: true }
    }
}

/// Members of a `Split` in its pickle.
type Pickled<'py> = (String, Option<Fields<Bound<'py, PyBytes>>>);

/// Preamble (bytes, interfaces before, link type), start, end, and both flags.
type Fields<B> = (B, u32, u32, u64, u64, bool, bool);

#[pymethods]
impl PySplit {
    #[new]
    #[pyo3(signature = (capture, split))]
    fn new(capture: String, split: Option<Fields<Vec<u8>>>) -> PyResult<Self> {
        let split = split.map(|(bytes, interfaces_before, link_type, start, end, is_last, is_walked)| {
            let preamble = Preamble { bytes, interfaces_before, link_type: LinkType(link_type) };
            Split { preamble, start, end, is_last, is_walked }
        });
        if split.as_ref().is_some_and(|split| split.start > split.end) {
            return Err(PyValueError::new_err("a part ends before it starts"));
        }
        Ok(Self { capture, split })
    }

    /// Path or URL of the capture.
    #[getter]
    fn capture(&self) -> &str {
        &self.capture
    }

    /// Offset of the first record.
    #[getter]
    fn start(&self) -> u64 {
        self.split.as_ref().map_or(0, |split| split.start)
    }

    /// Offset after the last record; `None` if the part is the whole capture.
    #[getter]
    fn end(&self) -> Option<u64> {
        self.split.as_ref().map(|split| split.end)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, Pickled<'py>)> {
        let (py, this) = (slf.py(), slf.get());
        let split = this.split.as_ref().map(|split| {
            let Split { preamble, start, end, is_last, is_walked } = split;
            let bytes = PyBytes::new(py, &preamble.bytes);
            (bytes, preamble.interfaces_before, preamble.link_type.0, *start, *end, *is_last, *is_walked)
        });
        Ok((slf.get_type().into_any(), (this.capture.clone(), split)))
    }

    fn __repr__(&self) -> String {
        match &self.split {
            Some(split) => format!("<Split of {}: bytes {} to {}>", self.capture, split.start, split.end),
            None => format!("<Split of {}: all of it>", self.capture),
        }
    }
}

/// Cuts a capture; `name` is the path or URL that the parts have.
#[pyfunction]
#[pyo3(name = "_splits")]
pub(crate) fn splits(
    name: &str,
    source: &Bound<'_, PyAny>,
    parts: usize,
    walk: bool,
) -> PyResult<Vec<PySplit>> {
    if parts == 0 {
        return Err(PyValueError::new_err("a capture has at least one part"));
    }
    let source = source_of(name, source)?;
    guarded(|| {
        let found = Python::attach(|py| py.detach(|| Opened::open(source, None)?.parts(parts, walk)));
        let split = |part: Part| PySplit { capture: name.to_owned(), split: part.split };
        Ok(found.map_err(raised)?.into_iter().map(split).collect())
    })
}
