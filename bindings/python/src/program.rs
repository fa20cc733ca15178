//! Programs.

use std::sync::Arc;

use paceline::{Program, ProgramError, VerifiedProgram};
use pyo3::prelude::*;

use crate::coverage::PyCoverage;
use crate::error::guarded;
use crate::map::{RawMap, maps_of};
use crate::runner::PyRunner;
use crate::shared::Shared;
use crate::subject::{Part, Subject};
use crate::variables::variables_of;

/// A program that is bound to its maps.
#[pyclass(frozen, extends = PyRunner, name = "Program", module = "paceline")]
pub(crate) struct PyProgram {
    program: Program,
    /// With the proof, unless it was loaded without one.
    pub(crate) verified: Option<VerifiedProgram>,
    shared: Arc<Shared>,
}

/// A program before it is an object of Python.
pub(crate) struct Made(PyProgram);

impl Made {
    /// A program of a collection, the only one if no name is given.
    pub(crate) fn of(shared: &Arc<Shared>, name: Option<&str>) -> Result<Self, ProgramError> {
        let (program, verified) = match shared.verifies {
            true => {
                let verified = shared.collection.program(name)?;
                (verified.program().clone(), Some(verified))
            }
            false => (shared.collection.program_unverified(name)?, None),
        };
        Ok(Self(PyProgram { program, verified, shared: Arc::clone(shared) }))
    }

    pub(crate) fn into_python(self, py: Python<'_>) -> PyResult<Py<PyProgram>> {
        let Self(made) = self;
        let base = PyRunner { subject: Arc::new(made.subject()) };
        Py::new(py, PyClassInitializer::from(base).add_subclass(made))
    }
}

impl PyProgram {
    /// As a program of a chain.
    pub(crate) fn part(&self) -> Part {
        Part { program: self.program.clone(), shared: Some(Arc::clone(&self.shared)) }
    }

    pub(crate) fn subject(&self) -> Subject {
        Subject::Program { program: self.program.clone(), shared: Arc::clone(&self.shared) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

#[pymethods]
impl PyProgram {
    #[getter]
    fn name(&self) -> &str {
        &self.program.spec().name
    }

    /// `xdp`, `socket_filter`, `sched_cls`.
    #[getter]
    fn kind(&self) -> &'static str {
        self.program.spec().kind.rules().name
    }

    #[getter]
    fn engine(&self) -> &'static str {
        self.program.engine().name()
    }

    #[getter]
    fn file(&self) -> Option<&str> {
        self.shared.file.as_deref()
    }

    #[getter]
    fn maps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        maps_of(py, &self.shared)
    }

    #[getter]
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        variables_of(py, &self.shared)
    }

    /// How often lines and branches of the object's programs ran so far.
    fn coverage(&self) -> PyResult<PyCoverage> {
        guarded(|| Ok(PyCoverage::of(&self.shared.collection)))
    }

    /// Puts the program into an entry of a program array.
    fn _install(&self, map: &RawMap, index: u32) -> PyResult<()> {
        guarded(|| map.install(index, &self.program))
    }

    fn __repr__(&self) -> String {
        format!(
            "<Program {} of {}>",
            self.name(),
            self.shared.file.as_deref().unwrap_or("an object from memory")
        )
    }
}
