//! Coverage of programs: of one collection, or of all that a process loads.

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline::Collection;
use paceline::coverage::{Counts, Report};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::guarded;
use crate::source::{os_error, path_of};

/// Whether objects are loaded with counters unless told otherwise, and their counts kept when they go.
static RECORDS: AtomicBool = AtomicBool::new(false);

/// Counts of the collections of this process while coverage was recorded.
static RECORDED: Mutex<Recorded> = Mutex::new(Recorded { there: Vec::new(), gone: Vec::new() });

struct Recorded {
    there: Vec<Weak<Watched>>,
    /// Of collections that are gone.
    gone: Vec<Counts>,
}

fn recorded() -> MutexGuard<'static, Recorded> {
    RECORDED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether objects are loaded with counters unless told otherwise.
pub(crate) fn is_recorded() -> bool {
    RECORDS.load(Ordering::Relaxed)
}

/// A collection whose counts are kept when it goes.
pub(crate) struct Watched(Collection);

impl Watched {
    /// `None` if no coverage is recorded.
    pub(crate) fn of(collection: &Collection) -> Option<Arc<Self>> {
        let watched = is_recorded().then(|| Arc::new(Self(collection.clone())))?;
        let mut recorded = recorded();
        recorded.there.retain(|other| other.strong_count() > 0);
        recorded.there.push(Arc::downgrade(&watched));
        Some(watched)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let counts = self.0.coverage();
        recorded().gone.extend(counts);
    }
}

/// Begins or ends to record the coverage of all objects that are loaded.
#[pyfunction]
pub(crate) fn record_coverage(on: bool) {
    RECORDS.store(on, Ordering::Relaxed);
}

/// The coverage that was recorded so far.
#[pyfunction]
pub(crate) fn recorded_coverage() -> PyCoverage {
    let (there, mut counts) = {
        let recorded = recorded();
        let there: Vec<_> = recorded.there.iter().filter_map(Weak::upgrade).collect();
        (there, recorded.gone.clone())
    };
    // These may be the last references, whose drop takes the lock.
    counts.extend(there.iter().flat_map(|watched| watched.0.coverage()));
    PyCoverage { counts }
}

/// How often lines, functions and branches ran.
#[pyclass(frozen, name = "Coverage", module = "paceline")]
pub(crate) struct PyCoverage {
    counts: Vec<Counts>,
}

impl PyCoverage {
    pub(crate) fn of(collection: &Collection) -> Self {
        Self { counts: collection.coverage() }
    }

    fn report(&self) -> Report {
        Report::new(&self.counts)
    }
}

#[pymethods]
impl PyCoverage {
    /// Both together.
    fn __add__(&self, other: &Self) -> Self {
        Self { counts: self.counts.iter().chain(&other.counts).cloned().collect() }
    }

    /// The report in LCOV's format.
    #[pyo3(signature = (test = ""))]
    fn lcov(&self, test: &str) -> PyResult<String> {
        guarded(|| {
            let mut text = Vec::new();
            self.report().write_lcov(&mut text, test)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        })
    }

    /// Writes the report in LCOV's format to a file.
    #[pyo3(signature = (path, test = ""))]
    fn write_lcov(&self, py: Python<'_>, path: &Bound<'_, PyAny>, test: &str) -> PyResult<()> {
        let (path, text) = (path_of(path)?, self.lcov(test)?);
        py.detach(|| fs::write(&path, text)).map_err(|error| os_error(py, &error, &path))
    }

    /// Numbers that ran and numbers there are: of `lines`, `functions` and `branches`.
    #[getter]
    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let (totals, dict) = (self.report().totals(), PyDict::new(py));
            dict.set_item("lines", totals.lines)?;
            dict.set_item("functions", totals.functions)?;
            dict.set_item("branches", totals.branches)?;
            Ok(dict)
        })
    }

    /// How often each line ran, by number, by file.
    #[getter]
    fn lines<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guarded(|| {
            let files = PyDict::new(py);
            for (name, file) in &self.report().files {
                let lines = PyDict::new(py);
                file.lines.iter().try_for_each(|(number, line)| lines.set_item(number, line.count))?;
                files.set_item(name.to_string(), lines)?;
            }
            Ok(files)
        })
    }

    fn __repr__(&self) -> String {
        let (ran, all) = self.report().totals().lines;
        format!("<Coverage: {ran} of {all} lines>")
    }
}
