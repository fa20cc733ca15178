//! Output of programs besides packets: events of perf event arrays, and lines of `bpf_trace_printk`.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline::Host;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// An event that a program sent to a perf event array.
#[pyclass(frozen, module = "paceline")]
#[derive(Debug)]
pub(crate) struct Event {
    map: String,
    cpu: u32,
    packet: Option<u64>,
    time: u64,
    data: Vec<u8>,
    captured: Vec<u8>,
}

#[pymethods]
impl Event {
    #[getter]
    fn map(&self) -> &str {
        &self.map
    }

    #[getter]
    fn cpu(&self) -> u32 {
        self.cpu
    }

    #[getter]
    fn packet(&self) -> Option<u64> {
        self.packet
    }

    #[getter]
    fn time(&self) -> u64 {
        self.time
    }

    #[getter]
    fn data<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.data)
    }

    #[getter]
    fn captured<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.captured)
    }

    fn __repr__(&self) -> String {
        format!("<Event of {}, {} bytes>", self.map, self.data.len())
    }
}

/// Events and lines since they were taken last.
#[derive(Debug, Default)]
pub(crate) struct Sent {
    pub(crate) events: Vec<Event>,
    pub(crate) trace: Vec<u8>,
}

impl Sent {
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty() && self.trace.is_empty()
    }

    /// Adds what was sent later.
    pub(crate) fn add(&mut self, later: Self) {
        self.events.extend(later.events);
        self.trace.extend(later.trace);
    }

    /// The lines of `bpf_trace_printk`.
    pub(crate) fn lines(&self) -> Vec<String> {
        String::from_utf8_lossy(&self.trace).lines().map(str::to_owned).collect()
    }
}

/// Receives what the programs of a host send.
#[derive(Clone, Default)]
pub(crate) struct Effects(Arc<Mutex<Sent>>);

impl Effects {
    /// The receiver of a host.
    pub(crate) fn of(host: &mut Host) -> Self {
        let effects = Self::default();
        let sent = effects.clone();
        host.set_events(Box::new(move |event| {
            sent.lock().events.push(Event {
                map: event.map.to_owned(),
                cpu: event.cpu,
                packet: event.packet,
                time: event.time_ns,
                data: event.data.to_vec(),
                captured: event.captured.to_vec(),
            });
        }));
        host.set_trace(effects.clone());
        effects
    }

    /// Takes what was sent.
    pub(crate) fn take(&self) -> Sent {
        let mut sent = self.lock();
        if sent.is_empty() { Sent::default() } else { std::mem::take(&mut sent) }
    }

    fn lock(&self) -> MutexGuard<'_, Sent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Effects {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.lock().trace.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
