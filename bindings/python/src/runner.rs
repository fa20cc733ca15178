//! Programs and chains as Python runs packets through them.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::columns::Columns;
use crate::error::guarded;
use crate::many;
use crate::network::PyNetwork;
use crate::packet::bytes_of;
use crate::run::{self, Given, PyRun};
use crate::settings::Settings;
use crate::subject::Subject;
use crate::table::PyBatch;

/// Base of `Program`, `Chain` and `Filter`.
#[pyclass(frozen, subclass, name = "Runner", module = "paceline")]
pub(crate) struct PyRunner {
    pub(crate) subject: Arc<Subject>,
}

#[pymethods]
impl PyRunner {
    /// Runs one packet.
    #[pyo3(signature = (packet, *, ingress = None, queue = 0, context = None, time = None, seed = None, network = None, metadata = None, explain = false))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
    fn run(
        &self,
        packet: &Bound<'_, PyAny>,
        ingress: Option<&Bound<'_, PyAny>>,
        queue: u16,
        context: Option<&Bound<'_, PyDict>>,
        time: Option<&Bound<'_, PyAny>>,
        seed: Option<u64>,
        network: Option<&Bound<'_, PyNetwork>>,
        metadata: Option<&Bound<'_, PyBytes>>,
        explain: bool,
    ) -> PyResult<PyRun> {
        guarded(|| {
            let settings = Settings::new(ingress, queue, context, time, seed, network)?;
            let metadata = metadata.map(|metadata| metadata.as_bytes().to_vec()).unwrap_or_default();
            let given = Given { packet: bytes_of(packet)?, metadata, settings };
            if explain { run::run_explained(&self.subject, given) } else { run::run(&self.subject, given) }
        })
    }

    /// Runs many packets.
    #[pyo3(signature = (packets, *, columns = None, ingress = None, queue = 0, context = None, time = None, seed = None, network = None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
    fn run_many(
        &self,
        packets: &Bound<'_, PyAny>,
        columns: Option<Vec<String>>,
        ingress: Option<&Bound<'_, PyAny>>,
        queue: u16,
        context: Option<&Bound<'_, PyDict>>,
        time: Option<&Bound<'_, PyAny>>,
        seed: Option<u64>,
        network: Option<&Bound<'_, PyNetwork>>,
    ) -> PyResult<PyBatch> {
        guarded(|| {
            let settings = Settings::new(ingress, queue, context, time, seed, network)?;
            let columns = Columns::named(columns.as_deref().unwrap_or(&["verdict".to_owned()]))?;
            many::run_many(&self.subject, packets, &columns, &settings)
        })
    }
}
