//! Losses of damaged captures.

use std::ffi::CString;

use paceline::capture::Lost;
use paceline_archive::Report;
use pyo3::prelude::*;

/// Bytes of a capture that gave no packets.
#[pyclass(frozen, name = "Lost", module = "paceline")]
#[derive(Clone)]
pub(crate) struct PyLost {
    capture: String,
    lost: Lost,
}

impl PyLost {
    /// The losses of a scan; `names` are those of the captures.
    pub(super) fn all(report: &Report, names: &[String]) -> Vec<Self> {
        let captures = report.captures.iter().zip(names);
        let of = |(totals, name): (&paceline_archive::Totals, &String)| {
            let lost = |lost: &Lost| Self { capture: name.clone(), lost: lost.clone() };
            totals.lost.iter().map(lost).collect::<Vec<_>>()
        };
        captures.flat_map(of).collect()
    }
}

#[pymethods]
impl PyLost {
    /// Name of the capture.
    #[getter]
    fn capture(&self) -> &str {
        &self.capture
    }

    /// Offset of the first byte.
    #[getter]
    fn start(&self) -> u64 {
        self.lost.from
    }

    /// Offset after the last byte.
    #[getter]
    fn end(&self) -> u64 {
        self.lost.to
    }

    /// The reason.
    #[getter]
    fn damage(&self) -> String {
        self.lost.damage.to_string()
    }

    fn __repr__(&self) -> String {
        let Lost { from, to, damage } = &self.lost;
        format!("<Lost: {}, bytes {from} to {to}: {damage}>", self.capture)
    }
}

/// Warns of losses; an error where warnings are errors.
pub(super) fn warn(losses: &[PyLost]) -> PyResult<()> {
    let Some(first) = losses.first() else { return Ok(()) };
    let bytes: u64 = losses.iter().map(|PyLost { lost, .. }| lost.to - lost.from).sum();
    let text = format!("{} is damaged: {}; {bytes} bytes gave no packets", first.capture, first.lost.damage);
    Python::attach(|py| {
        let category = py.import("paceline._errors")?.getattr("CaptureWarning")?;
        let text = CString::new(text).unwrap_or_default();
        PyErr::warn(py, &category, &text, 1)
    })
}
