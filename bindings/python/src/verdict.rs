//! Verdicts: members of an `enum.IntEnum` in Python.

use paceline::Verdict;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

/// The member of `paceline.Verdict`.
pub(crate) fn to_python(py: Python<'_>, verdict: Verdict) -> PyResult<Bound<'_, PyAny>> {
    static MEMBERS: PyOnceLock<Py<PyTuple>> = PyOnceLock::new();
    let members = MEMBERS.get_or_try_init(py, || {
        let class = py.import("paceline._verdict")?.getattr("Verdict")?;
        let members = Verdict::ALL.map(|verdict| class.call1((verdict as u32,)));
        Ok::<_, PyErr>(PyTuple::new(py, members.into_iter().collect::<PyResult<Vec<_>>>()?)?.unbind())
    })?;
    members.bind(py).get_item(verdict as usize)
}

/// Numbers of packets by the names of their verdicts, from those in the order of `Verdict::ALL`.
pub(crate) fn counts(py: Python<'_>, counts: [u64; 5]) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (verdict, packets) in Verdict::ALL.into_iter().zip(counts) {
        dict.set_item(verdict.name(), packets)?;
    }
    Ok(dict)
}
