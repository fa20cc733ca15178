//! Networks that programs see.

use std::sync::Arc;

use paceline::network::{Network, of_host, parse};
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::error::{Class, Failure, guarded};
use crate::source::read_source;

/// A network that programs see: routes, neighbors, interfaces, sockets, tracked connections.
#[pyclass(frozen, name = "Network", module = "paceline")]
pub(crate) struct PyNetwork {
    pub(crate) network: Arc<Network>,
}

impl PyNetwork {
    fn of_text(text: &str, file: Option<&str>) -> PyResult<Self> {
        guarded(|| {
            let network = parse(text).map_err(|error| Failure::of(Class::Network, &error).in_file(file))?;
            Ok(Self { network: Arc::new(network) })
        })
    }
}

#[pymethods]
impl PyNetwork {
    /// From what `ip -j`, `ss -tuan`, `conntrack -L` and `sysctl` print, one after the other.
    #[new]
    fn new(text: &str) -> PyResult<Self> {
        Self::of_text(text, None)
    }

    /// From a file of the same.
    #[classmethod]
    fn read(_class: &Bound<'_, PyType>, path: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (bytes, file) = read_source(path)?;
        Self::of_text(&String::from_utf8_lossy(&bytes), file.as_deref())
    }

    /// This machine's.
    #[classmethod]
    fn of_host(class: &Bound<'_, PyType>) -> PyResult<Self> {
        guarded(|| {
            let network = class.py().detach(of_host).map_err(|error| Failure::of(Class::Network, &error))?;
            Ok(Self { network: Arc::new(network) })
        })
    }

    /// Names of the interfaces by their indices.
    #[getter]
    fn interfaces(&self) -> Vec<(u32, String)> {
        self.network.interfaces().iter().map(|interface| (interface.index, interface.name.clone())).collect()
    }

    fn __repr__(&self) -> String {
        format!("<Network of {} interfaces>", self.network.interfaces().len())
    }
}
