//! Objects, and what is loaded from them.

use std::sync::Arc;

use paceline::coverage::Counting;
use paceline::{DEFAULT_BUDGET, Engine, LoadOptions, Object, ObjectOptions, ProgramError, ProgramSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::coverage::{self, PyCoverage, Watched};
use crate::error::{Class, Failure, guarded};
use crate::map::maps_of;
use crate::process::is_forked;
use crate::program::{Made, PyProgram};
use crate::shared::Shared;
use crate::source::read_source;
use crate::variables::{set_initial, variables_of};
use crate::worker::{MAX_CPUS, Workers};

/// The programs and maps of an object file; nothing is made yet.
#[pyclass(frozen, name = "Object", module = "paceline")]
pub(crate) struct PyObject {
    object: Object,
    file: Option<String>,
}

impl PyObject {
    pub(crate) fn of(object: Object, file: Option<String>) -> Self {
        Self { object, file }
    }
}

/// The engine of a name; the fastest one without, which in the child of a fork is not native code.
pub(crate) fn engine_of(name: Option<&str>) -> PyResult<Engine> {
    let fastest = if is_forked() { Engine::Threaded } else { Engine::best() };
    name.map_or(Ok(fastest), |name| {
        name.parse().map_err(|error: paceline::NoSuchEngine| PyValueError::new_err(error.to_string()))
    })
}

#[pymethods]
impl PyObject {
    #[new]
    #[pyo3(signature = (source, *, locals = false))]
    fn new(source: &Bound<'_, PyAny>, locals: bool) -> PyResult<Self> {
        let (bytes, file) = read_source(source)?;
        guarded(|| {
            let options = ObjectOptions::default().variables(locals);
            let object = source.py().detach(|| Object::parse_with(&bytes, &options));
            let object =
                object.map_err(|error| Failure::of(Class::Object, &error).in_file(file.as_deref()))?;
            Ok(Self { object, file })
        })
    }

    /// An object of one program from a classic filter, as `tcpdump -d`, `-dd` or `-ddd` print it.
    #[classmethod]
    fn from_classic(_class: &Bound<'_, PyType>, name: &str, text: &str) -> PyResult<Self> {
        guarded(|| {
            let object = Object::of_filter(name, text).map_err(|error| Failure::of(Class::Filter, &error))?;
            Ok(Self { object, file: None })
        })
    }

    #[getter]
    fn file(&self) -> Option<&str> {
        self.file.as_deref()
    }

    /// Names of the programs that can be loaded.
    #[getter]
    fn programs(&self) -> Vec<&str> {
        self.object.programs().iter().map(|program| program.name.as_str()).collect()
    }

    /// Names of the maps.
    #[getter]
    fn maps(&self) -> Vec<&str> {
        self.object.maps().iter().map(|map| map.name.as_str()).collect()
    }

    #[getter]
    fn license(&self) -> &str {
        self.object.license()
    }

    /// Verifies a program; raises `VerifierError` if it is refused.
    #[pyo3(signature = (program = None))]
    fn verify(&self, py: Python<'_>, program: Option<&str>) -> PyResult<()> {
        let failed = |error| Failure::no_program(self.file.as_deref(), &self.object, &error);
        guarded(|| {
            let programs = self.object.programs_named(program).map_err(failed)?;
            py.detach(|| {
                programs.into_iter().try_for_each(|spec: &ProgramSpec| {
                    let refused = self.object.verify(spec).err();
                    refused.map_or(Ok(()), |refused| Err(failed(ProgramError::Refused(Box::new(refused)))))
                })
            })?;
            Ok(())
        })
    }

    /// Makes the maps and fills them.
    #[pyo3(signature = (*, engine = None, cpus = 1, budget = DEFAULT_BUDGET, verify = true, coverage = None, variables = None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
    fn load(
        &self,
        py: Python<'_>,
        engine: Option<&str>,
        cpus: usize,
        budget: u64,
        verify: bool,
        coverage: Option<bool>,
        variables: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyCollection> {
        let engine = engine_of(engine)?;
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(PyValueError::new_err(format!("cpus is 1 to {MAX_CPUS}")));
        }
        let failed =
            |class, error: &dyn std::error::Error| Failure::of(class, error).in_file(self.file.as_deref());
        guarded(|| {
            let mut object = self.object.clone();
            if let Some(variables) = variables {
                set_initial(&mut object, variables)?;
            }
            let options = LoadOptions::default().engine(engine).cpus(cpus).budget(budget);
            let collection = py.detach(|| {
                if coverage.unwrap_or_else(coverage::is_recorded) {
                    object = object
                        .with_coverage(Counting::Plain)
                        .map_err(|error| failed(Class::Program, &error))?;
                }
                object.load(&options).map_err(|error| failed(Class::Object, &error))
            })?;
            let counts = Watched::of(&collection);
            let (file, workers) = (self.file.clone(), Workers::new(cpus));
            Ok(PyCollection {
                shared: Arc::new(Shared { collection, file, workers, verifies: verify, _counts: counts }),
            })
        })
    }

    fn __repr__(&self) -> String {
        format!("<Object {}: {}>", self.file.as_deref().unwrap_or("from memory"), self.programs().join(", "))
    }
}

/// The maps of an object, made and filled, and its programs.
#[pyclass(frozen, name = "Collection", module = "paceline")]
#[derive(Clone)]
pub(crate) struct PyCollection {
    shared: Arc<Shared>,
}

#[pymethods]
impl PyCollection {
    /// Names of the programs.
    #[getter]
    fn programs(&self) -> Vec<&str> {
        self.shared.collection.object().programs().iter().map(|program| program.name.as_str()).collect()
    }

    /// The program of a name, verified and bound to the maps; the only one without a name.
    #[pyo3(signature = (name = None))]
    fn program(&self, py: Python<'_>, name: Option<&str>) -> PyResult<Py<PyProgram>> {
        guarded(|| {
            let made = py.detach(|| Made::of(&self.shared, name));
            let Shared { collection, file, .. } = &*self.shared;
            let failed = |error| Failure::no_program(file.as_deref(), collection.object(), &error);
            made.map_err(failed)?.into_python(py)
        })
    }

    #[getter]
    fn maps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        maps_of(py, &self.shared)
    }

    #[getter]
    fn variables<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        variables_of(py, &self.shared)
    }

    #[getter]
    fn engine(&self) -> &'static str {
        self.shared.collection.engine().name()
    }

    /// How often lines and branches ran so far.
    fn coverage(&self) -> PyCoverage {
        PyCoverage::of(&self.shared.collection)
    }

    fn __repr__(&self) -> String {
        format!(
            "<Collection {}: {}>",
            self.shared.file.as_deref().unwrap_or("from memory"),
            self.programs().join(", ")
        )
    }
}
