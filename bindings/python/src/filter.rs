//! Packet filters from tcpdump's expressions.

use std::sync::Arc;

use paceline::capture::{Link, LinkType};
use paceline::filter::{
    ConvertOptions, Filter, Libpcap, PacketFilter, Purpose, Rules, SockFilter, Target, text,
};
use paceline::{Engine, VerifiedProgram};
use pyo3::prelude::*;

use crate::error::{Class, Failure, guarded};
use crate::object::engine_of;
use crate::packet::bytes_of;
use crate::run::{self, Given};
use crate::runner::PyRunner;
use crate::settings::Settings;
use crate::subject::Subject;
use crate::worker::Workers;

/// A packet filter: passes what matches, and drops the rest.
#[pyclass(frozen, extends = PyRunner, name = "Filter", module = "paceline")]
pub(crate) struct PyFilter {
    expression: String,
    filter: PacketFilter,
}

impl PyFilter {
    /// The filter for packets of a link: an expression was compiled for Ethernet.
    pub(crate) fn for_link(&self, link: Link) -> Result<PacketFilter, Failure> {
        match self.expression.is_empty() || link.link_type == LinkType::ETHERNET {
            true => Ok(self.filter.clone()),
            false => {
                let cause = format!("the filter is for Ethernet, and the link type is {}", link.link_type);
                Err(Failure::new(Class::Filter, cause).at(format!("expression {:?}", self.expression)))
            }
        }
    }

    /// The program that passes what matches.
    pub(crate) fn program(&self) -> &VerifiedProgram {
        self.filter.program()
    }

    fn make(
        py: Python<'_>,
        expression: &str,
        insns: Vec<SockFilter>,
        engine: Option<&str>,
    ) -> PyResult<Py<Self>> {
        let engine = engine_of(engine)?;
        let filter = made(insns, Purpose::Socket, engine)?;
        let subject = Subject::Filter { filter: filter.clone(), workers: Workers::new(1) };
        let base = PyRunner { subject: Arc::new(subject) };
        let expression = expression.to_owned();
        Py::new(py, PyClassInitializer::from(base).add_subclass(Self { expression, filter }))
    }
}

/// The classic program of an expression.
pub(crate) fn compiled(
    libpcap: &Libpcap,
    expression: &str,
    target: Target,
) -> Result<Vec<SockFilter>, Failure> {
    let insns = libpcap.compile(expression, target);
    insns.map_err(|error| Failure::of(Class::Filter, &error).at(format!("expression {expression:?}")))
}

/// A filter of a classic program.
pub(crate) fn made(
    insns: Vec<SockFilter>,
    purpose: Purpose,
    engine: Engine,
) -> Result<PacketFilter, Failure> {
    let filter = Filter::new(insns, purpose).map_err(|error| Failure::of(Class::Filter, &error))?;
    let options = ConvertOptions::default().rules(Rules::Libpcap);
    PacketFilter::new("filter", filter, &options, engine).map_err(|error| Failure::of(Class::Filter, &error))
}

/// A filter from an expression of tcpdump, for Ethernet; by libpcap, which is loaded when it is needed.
#[pyfunction]
#[pyo3(signature = (expression, *, engine = None))]
pub(crate) fn filter(py: Python<'_>, expression: &str, engine: Option<&str>) -> PyResult<Py<PyFilter>> {
    guarded(|| {
        let libpcap = Libpcap::open().map_err(|error| Failure::of(Class::Filter, &error))?;
        let insns = compiled(&libpcap, expression, Target::default())?;
        PyFilter::make(py, expression, insns, engine)
    })
}

/// A filter from a classic program, as `tcpdump -d`, `-dd` or `-ddd` print it.
#[pyfunction]
#[pyo3(signature = (program, *, engine = None))]
pub(crate) fn classic_filter(py: Python<'_>, program: &str, engine: Option<&str>) -> PyResult<Py<PyFilter>> {
    guarded(|| {
        let insns = text::parse(program).map_err(|error| Failure::of(Class::Filter, &error))?;
        PyFilter::make(py, "", insns, engine)
    })
}

#[pymethods]
impl PyFilter {
    /// The expression; empty for a classic program.
    #[getter]
    fn expression(&self) -> &str {
        &self.expression
    }

    /// Whether a packet matches.
    fn matches(slf: &Bound<'_, Self>, packet: &Bound<'_, PyAny>) -> PyResult<bool> {
        guarded(|| {
            let settings = Settings::default();
            let given = Given { packet: bytes_of(packet)?, metadata: Vec::new(), settings };
            Ok(run::run(&slf.as_super().get().subject, given)?.is_passed())
        })
    }

    fn __call__(slf: &Bound<'_, Self>, packet: &Bound<'_, PyAny>) -> PyResult<bool> {
        Self::matches(slf, packet)
    }

    fn __repr__(&self) -> String {
        format!("<Filter {:?}>", self.expression)
    }
}
