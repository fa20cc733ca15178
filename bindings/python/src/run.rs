//! One packet through a program or chain, and what became of it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use paceline::explain::ChainExplanation;
use paceline::{
    Arrival, ArrivalError, Outcome, PushError, RanAs, Redirect, RedirectTarget, SkBuffMember, Verdict,
};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::effects::{Event, Sent};
use crate::error::{Class, Failure, guarded};
use crate::explanation::PyExplanation;
use crate::packet::too_long;
use crate::settings::Settings;
use crate::subject::{PATIENCE, Subject, is_in_use};
use crate::verdict;
use crate::worker::{Lease, Worker};

/// A run that takes longer lets other threads of Python run meanwhile. To do so for a shorter one would cost more than it gives: the
/// interpreter may be gone for milliseconds then.
const LONG: Duration = Duration::from_micros(20);

/// Outcome of a packet.
#[pyclass(frozen, name = "Run", module = "paceline")]
pub(crate) struct PyRun {
    /// The packet's outcome, without its bytes.
    outcome: Outcome,
    data: Py<PyBytes>,
    lines: Vec<String>,
    events: Vec<Py<Event>>,
    /// The packet as it came in.
    input: Py<PyBytes>,
    input_metadata: Vec<u8>,
    settings: Settings,
    subject: Arc<Subject>,
    /// If the run was recorded.
    explanation: Option<Py<PyExplanation>>,
}

/// Whether the run is kept whose verdict was asked for last.
static ASKED_IS_KEPT: AtomicBool = AtomicBool::new(false);
static ASKED: Mutex<Option<Py<PyRun>>> = Mutex::new(None);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has the run kept, or no longer, whose verdict was asked for last: pytest explains a comparison that fails by it.
#[pyfunction]
pub(crate) fn keep_asked(on: bool) {
    ASKED_IS_KEPT.store(on, Ordering::Relaxed);
    let _before = if on { None } else { lock(&ASKED).take() };
}

/// The run whose verdict was asked for last, if it is kept.
#[pyfunction]
pub(crate) fn asked(py: Python<'_>) -> Option<Py<PyRun>> {
    lock(&ASKED).as_ref().map(|run| run.clone_ref(py))
}

/// A packet, and the surroundings of its run.
pub(crate) struct Given<'py> {
    pub(crate) packet: Bound<'py, PyBytes>,
    pub(crate) metadata: Vec<u8>,
    pub(crate) settings: Settings,
}

impl Given<'_> {
    fn arrival(&self) -> Arrival<'_> {
        let bytes = self.packet.as_bytes();
        let arrival = self.settings.origin.arrival(bytes, self.settings.meta(bytes.len()));
        Arrival { metadata: &self.metadata, ..arrival }
    }
}

/// Runs a packet.
pub(crate) fn run(subject: &Arc<Subject>, given: Given<'_>) -> PyResult<PyRun> {
    let py = given.packet.py();
    let mut lease = subject.lease(py);
    receive(&given, &mut lease)?;
    let worker = lease.worker();
    worker.host.fire_timers().map_err(|fault| subject.fault(&fault))?;
    let start = Instant::now();
    let at_once = if worker.is_slow { None } else { subject.run_one_at_once(worker) };
    at_once.unwrap_or_else(|| py.detach(|| subject.run_one(worker)))?;
    worker.is_slow = start.elapsed() > LONG;
    let outcome = Outcome::of(worker.single.frame(0), &worker.host, subject.ran_as(), None);
    let sent = worker.effects.take();
    drop(lease);
    PyRun::new(py, subject, given, outcome, sent, None)
}

/// Runs a packet on the interpreter that records the run.
pub(crate) fn run_explained(subject: &Arc<Subject>, given: Given<'_>) -> PyResult<PyRun> {
    let py = given.packet.py();
    let mut lease = subject.lease(py);
    receive(&given, &mut lease)?;
    let worker = lease.worker();
    worker.host.fire_timers().map_err(|fault| subject.fault(&fault))?;
    let packet = given.arrival();
    let explanation =
        patiently(py, || subject.explainer().explain(&packet, &mut worker.host)).map_err(not_entered)?;
    let outcome = explanation.outcome.clone();
    if let Some(fault) = &outcome.fault {
        return Err(subject.fault(fault).into());
    }
    let sent = worker.effects.take();
    drop(lease);
    let explanation = Py::new(py, PyExplanation::new(explanation))?;
    PyRun::new(py, subject, given, outcome, sent, Some(explanation))
}

/// Explains a run as soon as no other collection or chain with the same per-CPU maps uses the CPU, with the interpreter released.
fn patiently(
    py: Python<'_>,
    mut explain: impl FnMut() -> Result<ChainExplanation, ArrivalError> + Send,
) -> Result<ChainExplanation, ArrivalError> {
    py.detach(|| {
        loop {
            let explained = explain()?;
            match &explained.outcome.fault {
                Some(fault) if is_in_use(fault) => thread::sleep(PATIENCE),
                _ => return Ok(explained),
            }
        }
    })
}

/// Places the packet in the worker's frame, and sets the worker's host up.
fn receive(given: &Given<'_>, lease: &mut Lease) -> PyResult<()> {
    given.settings.apply(lease.worker());
    let Worker { single, host, .. } = lease.worker();
    given.arrival().enter(single, host).map_err(not_entered)
}

/// The exception of a packet that does not enter.
fn not_entered(error: ArrivalError) -> PyErr {
    match error {
        ArrivalError::Packet(PushError::TooLong(len)) => too_long(len),
        error => Failure::of(Class::Packet, &error).into(),
    }
}

impl PyRun {
    fn new(
        py: Python<'_>,
        subject: &Arc<Subject>,
        given: Given<'_>,
        mut outcome: Outcome,
        sent: Sent,
        explanation: Option<Py<PyExplanation>>,
    ) -> PyResult<Self> {
        let data = PyBytes::new(py, &std::mem::take(&mut outcome.bytes)).unbind();
        let (lines, events) = match sent.is_empty() {
            true => Default::default(),
            false => (
                sent.lines(),
                sent.events.into_iter().map(|event| Py::new(py, event)).collect::<PyResult<_>>()?,
            ),
        };
        Ok(Self {
            outcome,
            data,
            lines,
            events,
            input: given.packet.unbind(),
            input_metadata: given.metadata,
            settings: given.settings,
            subject: Arc::clone(subject),
            explanation,
        })
    }

    /// Whether the verdict is pass.
    pub(crate) fn is_passed(&self) -> bool {
        self.outcome.verdict == Verdict::Pass
    }

    /// Explains the run by another one, which leaves maps as they are.
    fn rehearse(&self, py: Python<'_>) -> PyResult<PyExplanation> {
        let given = Given {
            packet: self.input.bind(py).clone(),
            metadata: self.input_metadata.clone(),
            settings: self.settings.clone(),
        };
        let mut lease = self.subject.lease(py);
        receive(&given, &mut lease)?;
        let host = &mut lease.worker().host;
        let packet = given.arrival();
        let explanation =
            patiently(py, || self.subject.explainer().rehearse(&packet, host)).map_err(not_entered)?;
        let outcome = &explanation.outcome;
        let same = outcome.fares_as(&self.outcome) && outcome.bytes == self.data.bind(py).as_bytes();
        if !same {
            let cause = "the program would do something else with the packet now, because maps, time or random numbers are \
                         others; run(packet, explain=True) records the run itself";
            return Err(Failure::new(Class::Program, cause).in_file(self.subject.file()).into());
        }
        Ok(PyExplanation::new(explanation))
    }
}

#[pymethods]
impl PyRun {
    #[getter]
    fn verdict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        if ASKED_IS_KEPT.load(Ordering::Relaxed) {
            let _before = lock(&ASKED).replace(slf.clone().unbind());
        }
        verdict::to_python(slf.py(), slf.get().outcome.verdict)
    }

    /// The program's return value in the numbers of its type; for socket filters the number of bytes to keep.
    #[getter]
    fn code(&self) -> i64 {
        let (RanAs::Program(meaning) | RanAs::Chain(meaning)) = self.subject.ran_as();
        meaning.number(self.outcome.returned)
    }

    /// The name of the return value in the program type's numbers, such as `TC_ACT_SHOT`.
    #[getter]
    fn action(&self) -> Option<&'static str> {
        let (RanAs::Program(meaning) | RanAs::Chain(meaning)) = self.subject.ran_as();
        meaning.name(self.outcome.returned)
    }

    /// The `sk_buff` that a TC classifier left: its fields by name.
    #[getter]
    fn context<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(skb) = &self.outcome.context else { return Ok(None) };
        let context = PyDict::new(py);
        for member in SkBuffMember::ALL {
            context.set_item(member.name, member.of(skb))?;
        }
        Ok(Some(context))
    }

    #[getter]
    fn data(&self, py: Python<'_>) -> Py<PyBytes> {
        self.data.clone_ref(py)
    }

    #[getter]
    fn input(&self, py: Python<'_>) -> Py<PyBytes> {
        self.input.clone_ref(py)
    }

    #[getter]
    fn metadata<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.outcome.metadata)
    }

    #[getter]
    fn redirect(&self) -> Option<PyRedirect> {
        self.outcome.redirect.map(|redirect| PyRedirect::of(redirect, &self.subject))
    }

    #[getter]
    fn events(&self, py: Python<'_>) -> Vec<Py<Event>> {
        self.events.iter().map(|event| event.clone_ref(py)).collect()
    }

    /// Lines of `bpf_trace_printk`.
    #[getter]
    fn trace(&self) -> Vec<String> {
        self.lines.clone()
    }

    /// Why the program did what it did.
    fn why(&self, py: Python<'_>) -> PyResult<Py<PyExplanation>> {
        guarded(|| match &self.explanation {
            Some(explanation) => Ok(explanation.clone_ref(py)),
            None => Py::new(py, self.rehearse(py)?),
        })
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Run: {}, {} bytes>", self.outcome.verdict.name(), self.data.bind(py).as_bytes().len())
    }
}

/// Where a packet is redirected to.
#[pyclass(frozen, name = "Redirect", module = "paceline", get_all, eq)]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PyRedirect {
    /// Index of the interface, for `bpf_redirect`.
    interface: Option<u32>,
    /// Name of the map, for `bpf_redirect_map`.
    map: Option<String>,
    /// Key in the map.
    key: Option<u32>,
    flags: u32,
}

impl PyRedirect {
    fn of(redirect: Redirect, subject: &Subject) -> Self {
        let flags = redirect.flags;
        match redirect.target {
            RedirectTarget::Interface { ifindex } => {
                Self { interface: Some(ifindex), map: None, key: None, flags }
            }
            RedirectTarget::Map { map, key } => {
                Self { interface: None, map: subject.map_name(map), key: Some(key), flags }
            }
        }
    }
}

#[pymethods]
impl PyRedirect {
    fn __repr__(&self) -> String {
        match (self.interface, &self.map, self.key) {
            (Some(interface), ..) => format!("<Redirect to interface {interface}>"),
            (None, map, key) => {
                format!(
                    "<Redirect to {}[{}]>",
                    map.as_deref().unwrap_or("another map"),
                    key.unwrap_or_default()
                )
            }
        }
    }
}
