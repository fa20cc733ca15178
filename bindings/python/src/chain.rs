//! Chains of programs, which change while packets run through them.

use std::sync::Arc;

use paceline::chain::Place;
use paceline::{Change, ChangeError, DEFAULT_BUDGET, LiveChain, LoadOptions, Member, Order};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};

use crate::chain_file::{self, How};
use crate::coverage;
use crate::error::{Class, Failure, guarded};
use crate::filter::PyFilter;
use crate::map::maps_of;
use crate::object::engine_of;
use crate::program::PyProgram;
use crate::runner::PyRunner;
use crate::source::path_of;
use crate::subject::{Part, Parts, Subject};
use crate::worker::{MAX_CPUS, Workers};

/// Programs that run one after the other.
#[pyclass(frozen, extends = PyRunner, name = "Chain", module = "paceline")]
pub(crate) struct PyChain {
    live: LiveChain,
}

fn refused(error: &ChangeError) -> Failure {
    Failure::of(Class::Chain, &error)
}

/// A member of a chain from a program, a filter, or a pair of a name and one of these.
fn member(given: &Bound<'_, PyAny>) -> PyResult<(Member, Part)> {
    let pair = given.cast::<PyTuple>().ok().filter(|pair| pair.len() == 2);
    let Some(pair) = pair else { return member_of(None, given) };
    let name = pair.get_item(0)?.cast_into::<PyString>()?.to_string();
    member_of(Some(name), &pair.get_item(1)?)
}

fn member_of(name: Option<String>, given: &Bound<'_, PyAny>) -> PyResult<(Member, Part)> {
    if let Ok(program) = given.cast::<PyProgram>() {
        let program = program.get();
        let part = program.part();
        let spec = part.program.spec();
        let name = name.unwrap_or_else(|| spec.name.clone());
        let config = program.shared().collection.object().run_config(&spec.name);
        let config = config.map_err(|error| Failure::of(Class::Chain, &error))?;
        let member = match &program.verified {
            Some(verified) => Member::new(name, verified),
            None => Member::unverified(name, part.program.clone()),
        };
        return Ok((member.with_config(config), part));
    }
    if let Ok(filter) = given.cast::<PyFilter>() {
        let program = filter.get().program();
        let name = name.unwrap_or_else(|| program.spec().name.clone());
        return Ok((Member::new(name, program), Part { program: program.program().clone(), shared: None }));
    }
    let kind = given.get_type().name()?;
    Err(PyTypeError::new_err(format!(
        "a chain is of programs, filters, and pairs of a name and one of these, not {kind}"
    )))
}

/// Equal names get numbers, from the second one on.
fn numbered(members: Vec<Member>) -> Vec<Member> {
    let mut named: Vec<Member> = Vec::new();
    for member in members {
        let name = unused(member.name(), |name| named.iter().any(|other| other.name() == name));
        named.push(member.renamed(name));
    }
    named
}

fn unused(name: &str, is_used: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u32| format!("{name}#{number}"));
    std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_used(name)).unwrap_or_default()
}

/// A chain of programs.
#[pyfunction]
#[pyo3(signature = (programs, *, order = "given", cpus = None))]
pub(crate) fn chain(programs: &Bound<'_, PyAny>, order: &str, cpus: Option<usize>) -> PyResult<Py<PyChain>> {
    let order = match order {
        "given" => Order::Given,
        "priority" => Order::Priority,
        other => {
            return Err(PyValueError::new_err(format!("order is \"given\" or \"priority\", not {other:?}")));
        }
    };
    let py = programs.py();
    let members: Vec<(Member, Part)> =
        programs.try_iter()?.map(|given| member(&given?)).collect::<PyResult<_>>()?;
    // A program cannot run on a CPU that its maps have no values for.
    let most = members.iter().filter_map(|(_, part)| part.cpus()).min();
    let cpus = cpus.or(most).unwrap_or(1);
    if cpus == 0 || cpus > most.unwrap_or(MAX_CPUS) {
        return Err(PyValueError::new_err(format!(
            "cpus is 1 to {}, which the programs have",
            most.unwrap_or(MAX_CPUS)
        )));
    }
    guarded(|| {
        let (members, parts) = members.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
        let live = py.detach(|| LiveChain::new(numbered(members), order)).map_err(|error| refused(&error))?;
        PyChain::make(py, live, parts, cpus)
    })
}

impl PyChain {
    fn make(py: Python<'_>, live: LiveChain, parts: Vec<Part>, cpus: usize) -> PyResult<Py<Self>> {
        let subject =
            Subject::Chain { live: live.clone(), parts: Parts::from(parts), workers: Workers::new(cpus) };
        let base = PyRunner { subject: Arc::new(subject) };
        Py::new(py, PyClassInitializer::from(base).add_subclass(Self { live }))
    }

    fn change(slf: &Bound<'_, Self>, change: Change, part: Option<Part>) -> PyResult<()> {
        let (py, live) = (slf.py(), &slf.get().live);
        let Subject::Chain { parts, workers, .. } = &*slf.as_super().get().subject else { return Ok(()) };
        if let Some(cpus) = part.as_ref().and_then(Part::cpus).filter(|cpus| *cpus < workers.cpus()) {
            let cause =
                format!("the chain runs on {} CPUs, the program was loaded for {cpus}", workers.cpus());
            return Err(Failure::new(Class::Chain, cause).into());
        }
        part.into_iter().for_each(|part| parts.add(part));
        guarded(|| {
            let changed = py.detach(|| live.change(None, vec![change]));
            parts.keep_those_of(live);
            changed.map_err(|error| refused(&error))?;
            Ok(())
        })
    }
}

#[pymethods]
impl PyChain {
    /// Loads a chain file, with the objects and maps that it names.
    #[classmethod]
    #[pyo3(signature = (path, *, engine = None, cpus = 1, budget = DEFAULT_BUDGET, verify = true, coverage = None))]
    fn from_file(
        class: &Bound<'_, PyType>,
        path: &Bound<'_, PyAny>,
        engine: Option<&str>,
        cpus: usize,
        budget: u64,
        verify: bool,
        coverage: Option<bool>,
    ) -> PyResult<Py<Self>> {
        let py = class.py();
        let (path, engine) = (path_of(path)?, engine_of(engine)?);
        if !(1..=MAX_CPUS).contains(&cpus) {
            return Err(PyValueError::new_err(format!("cpus is 1 to {MAX_CPUS}")));
        }
        let options = LoadOptions::default().engine(engine).cpus(cpus).budget(budget);
        let how = How { options, verifies: verify, counts: coverage.unwrap_or_else(coverage::is_recorded) };
        guarded(|| {
            let loaded = py.detach(|| chain_file::load(path.as_ref(), &how));
            let (live, parts) = loaded.map_err(|refused| refused.into_python(py))?;
            Self::make(py, live, parts, cpus)
        })
    }

    /// The maps of each program, by its name in the chain; filters have none.
    #[getter]
    fn maps<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let (py, maps) = (slf.py(), PyDict::new(slf.py()));
        let Subject::Chain { live, parts, .. } = &*slf.as_super().get().subject else { return Ok(maps) };
        for member in live.members() {
            let shared = parts.shared(member.program());
            if let Some(shared) = shared {
                maps.set_item(member.name(), maps_of(py, &shared)?)?;
            }
        }
        Ok(maps)
    }

    /// Names of the programs, in the order in which they are planned.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.live.layout().names
    }

    /// Number of changes so far.
    #[getter]
    fn revision(&self) -> u64 {
        self.live.layout().revision
    }

    /// Adds a program, last or before another.
    #[pyo3(signature = (program, *, before = None))]
    fn add(slf: &Bound<'_, Self>, program: &Bound<'_, PyAny>, before: Option<String>) -> PyResult<()> {
        let (member, part) = member(program)?;
        let names = slf.get().names();
        let name = unused(member.name(), |name| names.iter().any(|other| other == name));
        let place = before.map(Place::Before);
        Self::change(slf, Change::Add { member: member.renamed(name), place }, Some(part))
    }

    /// Removes a program.
    fn remove(slf: &Bound<'_, Self>, name: String) -> PyResult<()> {
        Self::change(slf, Change::Remove { name }, None)
    }

    /// Puts another program in the place of one, under its name.
    fn replace(slf: &Bound<'_, Self>, name: String, program: &Bound<'_, PyAny>) -> PyResult<()> {
        let (member, part) = member(program)?;
        Self::change(slf, Change::Replace { name: name.clone(), member: member.renamed(name) }, Some(part))
    }

    fn __repr__(&self) -> String {
        format!("<Chain: {}>", self.names().join(", "))
    }
}
