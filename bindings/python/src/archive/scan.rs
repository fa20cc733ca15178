//! Captures scanned by threads, as record batches.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use arrow_array::RecordBatch;
use arrow_schema::ArrowError;
use paceline_archive::{
    Error, MergeError, Opened, Part, Report, Rows, Totals, Wanted, Worker, scan as scan_all,
};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use super::captures::{self, Given};
use super::columns::Columns;
use super::failure::{not_merged, raised};
use super::losses::{PyLost, warn};
use super::machines::Machines;
use crate::effects::Sent;
use crate::error::{Class, Failure, guarded};
use crate::object::engine_of;
use crate::process::{Call, attached, ends, forks};
use crate::runner::PyRunner;
use crate::table::{PyBatch, arrow_error, stream};
use crate::verdict;

/// Rows that wait for Python, at most.
const WAITING: usize = 4;
/// Time after which a wait looks for signals.
const PATIENCE: Duration = Duration::from_millis(100);

/// A result of the threads.
enum Message {
    Rows(Box<Rows>),
    End(Result<Report, Error>),
    Panic,
}

/// The next step of a scan.
enum Step {
    Batch(RecordBatch),
    /// Captures are damaged.
    Warn(Vec<PyLost>),
    Wait,
    Over,
}

/// The reason why a scan ended early. Exceptions are made of it when no lock is held, as that runs code of Python.
enum Problem {
    Archive(Error),
    Merge(MergeError),
    Arrow(ArrowError),
    Forked,
    /// The interpreter ends.
    Exit,
    Panic,
}

impl From<Problem> for PyErr {
    fn from(problem: Problem) -> Self {
        match problem {
            Problem::Archive(error) => raised(error),
            Problem::Merge(error) => not_merged(error),
            Problem::Arrow(error) => arrow_error(&error),
            Problem::Forked => PyRuntimeError::new_err("a scan goes on in the process that began it"),
            Problem::Exit => PyRuntimeError::new_err("the interpreter ends"),
            Problem::Panic => Failure::new(Class::Internal, "a fault of Paceline itself").into(),
        }
    }
}

/// Captures that are scanned: an iterator of record batches, and a stream for Arrow's libraries.
#[pyclass(frozen, name = "Scan", module = "paceline")]
pub(crate) struct PyScan {
    shared: Arc<Shared>,
    columns: Columns,
    program: Option<Py<PyRunner>>,
}

/// The state of a scan, in the process that began it: in the child of a fork a lock may be held for ever.
struct Shared {
    state: Mutex<State>,
    /// Forks before the process.
    forks: u64,
}

struct State {
    /// Results of the threads, until they end. Without a receiver they stop.
    receiver: Option<Receiver<Message>>,
    columns: Columns,
    /// Names of the captures.
    names: Vec<String>,
    /// Rows that are no batch yet.
    rows: Vec<Rows>,
    batch_size: usize,
    totals: Totals,
    losses: Vec<PyLost>,
    /// Whether there are losses that were not told yet.
    warns: bool,
    machines: Option<Machines>,
    /// An error that came after rows, which are given first.
    error: Option<Problem>,
}

/// Starts a scan; `program` is one for each thread.
#[pyfunction]
#[pyo3(name = "_scan", signature = (given, filter, programs, merge, columns, workers, batch_size, engine))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
pub(crate) fn scan(
    given: Vec<Given<'_>>,
    filter: Option<&Bound<'_, PyAny>>,
    programs: Vec<Bound<'_, PyRunner>>,
    merge: Option<&Bound<'_, PyAny>>,
    columns: Option<Vec<String>>,
    workers: Option<usize>,
    batch_size: usize,
    engine: Option<&str>,
) -> PyResult<PyScan> {
    let columns = Columns::named(columns, !programs.is_empty())?;
    if !(1..=1 << 20).contains(&batch_size) {
        return Err(PyValueError::new_err("batch_size is 1 to 1048576"));
    }
    guarded(|| {
        let machines = Machines::of(&programs, merge)?;
        let cpus = || thread::available_parallelism().map_or(1, usize::from);
        let workers = machines.as_ref().map_or_else(|| workers.unwrap_or_else(cpus), Machines::len);
        if !(1..=256).contains(&workers) {
            return Err(PyValueError::new_err("workers is 1 to 256"));
        }
        let mut captures = captures::open(&given)?;
        if let Some(filter) = filter {
            captures::filter(&mut captures, filter, engine_of(engine)?)?;
        }
        if machines.is_some() {
            captures.iter().try_for_each(Opened::check_for_programs).map_err(raised)?;
        }
        let parts = captures::cut(&given, &captures, workers, machines.is_some())?;
        let threads = match &machines {
            Some(machines) => machines.workers(),
            None => (0..workers).map(|_| Worker::default()).collect(),
        };
        let names = given.into_iter().map(|(name, ..)| name).collect();
        let receiver = start(captures, parts, threads, columns.wanted())?;
        let state = State {
            receiver: Some(receiver),
            columns: columns.clone(),
            names,
            rows: Vec::new(),
            batch_size,
            totals: Totals::default(),
            losses: Vec::new(),
            warns: false,
            machines,
            error: None,
        };
        let program = programs.into_iter().next().map(Bound::unbind);
        let shared = Shared { state: Mutex::new(state), forks: forks() };
        Ok(PyScan { shared: Arc::new(shared), columns, program })
    })
}

/// Starts the threads, which end when the receiver is gone.
fn start(
    captures: Vec<Opened>,
    parts: Vec<(usize, Part)>,
    workers: Vec<Worker>,
    wanted: Wanted,
) -> PyResult<Receiver<Message>> {
    let (sender, receiver) = sync_channel(WAITING);
    let run = move || {
        let done = catch_unwind(AssertUnwindSafe(|| {
            scan_all(&captures, parts, workers, wanted, |rows| give(&sender, rows))
        }));
        // Without a receiver nobody waits for the end.
        let _ = sender.send(done.map_or(Message::Panic, Message::End));
    };
    let thread = thread::Builder::new().name("paceline-scan".to_owned()).spawn(run);
    thread.map_err(|error| PyRuntimeError::new_err(format!("no thread can be started: {error}")))?;
    Ok(receiver)
}

fn give(sender: &SyncSender<Message>, rows: Rows) -> ControlFlow<()> {
    match sender.send(Message::Rows(Box::new(rows))) {
        Ok(()) => ControlFlow::Continue(()),
        Err(_) => ControlFlow::Break(()),
    }
}

impl State {
    /// Takes results until there is a batch, or for a while.
    fn step(&mut self) -> Result<Step, Problem> {
        while let Some(receiver) = &self.receiver {
            match receiver.recv_timeout(PATIENCE) {
                Ok(Message::Rows(rows)) => self.add(*rows),
                Ok(Message::End(ended)) => self.error = self.end(ended).err(),
                Err(RecvTimeoutError::Timeout) => return Ok(Step::Wait),
                Ok(Message::Panic) | Err(RecvTimeoutError::Disconnected) => {
                    self.receiver = None;
                    self.error = Some(Problem::Panic);
                }
            }
            if self.len() >= self.batch_size {
                break;
            }
        }
        if self.len() > 0 {
            let rows = std::mem::take(&mut self.rows);
            return self.columns.batch(&rows, &self.names).map(Step::Batch).map_err(Problem::Arrow);
        }
        if std::mem::take(&mut self.warns) {
            return Ok(Step::Warn(self.losses.clone()));
        }
        self.error.take().map_or(Ok(Step::Over), Err)
    }

    fn len(&self) -> usize {
        self.rows.iter().map(Rows::len).sum()
    }

    fn add(&mut self, rows: Rows) {
        self.totals.read.packets += rows.read;
        self.totals.matched.packets += rows.len() as u64;
        rows.verdicts.iter().for_each(|verdict| self.totals.verdicts[*verdict as usize] += 1);
        if !rows.is_empty() {
            self.rows.push(rows);
        }
    }

    /// The end of the threads: maps become one, and losses are known.
    fn end(&mut self, ended: Result<Report, Error>) -> Result<(), Problem> {
        self.receiver = None;
        let report = ended.map_err(Problem::Archive)?;
        self.totals = report.totals();
        self.losses = PyLost::all(&report, &self.names);
        self.warns = !self.losses.is_empty();
        self.machines.as_ref().map_or(Ok(()), Machines::merge).map_err(Problem::Merge)
    }
}

impl Shared {
    fn lock(&self) -> Result<MutexGuard<'_, State>, Problem> {
        match self.forks == forks() {
            true => Ok(self.state.lock().unwrap_or_else(PoisonError::into_inner)),
            false => Err(Problem::Forked),
        }
    }

    /// A part of the state.
    fn get<T: Send>(&self, py: Python<'_>, part: impl Fn(&State) -> T + Sync) -> PyResult<T> {
        py.detach(|| self.lock().map(|state| part(&state))).map_err(PyErr::from)
    }

    /// The next batch, with the interpreter released: sources and signals need it.
    fn next(&self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        let _call = Call::begin().ok_or(Problem::Exit)?;
        loop {
            match py.detach(|| self.lock()?.step())? {
                Step::Batch(batch) => return Ok(Some(batch)),
                Step::Warn(losses) => warn(&losses)?,
                Step::Wait if ends() => return Err(Problem::Exit.into()),
                Step::Wait => py.check_signals()?,
                Step::Over => return Ok(None),
            }
        }
    }
}

#[pymethods]
impl PyScan {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyBatch>> {
        guarded(|| {
            let batch = self.shared.next(py)?;
            batch.map(|batch| PyBatch::new(py, batch, Sent::default())).transpose()
        })
    }

    /// Packets that were read so far.
    #[getter]
    fn packets(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.get(py, |state| state.totals.read.packets)
    }

    /// Packets that match so far.
    #[getter]
    fn matched(&self, py: Python<'_>) -> PyResult<u64> {
        self.shared.get(py, |state| state.totals.matched.packets)
    }

    /// Packets of each verdict so far.
    #[getter]
    fn verdicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        verdict::counts(py, self.shared.get(py, |state| state.totals.verdicts)?)
    }

    /// The bytes that gave no packets, at the end.
    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<Vec<PyLost>> {
        self.shared.get(py, |state| state.losses.clone())
    }

    /// The program whose maps are those of all threads, at the end.
    #[getter]
    fn program(&self, py: Python<'_>) -> Option<Py<PyRunner>> {
        self.program.as_ref().map(|program| program.clone_ref(py))
    }

    /// The rest as a stream of record batches.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let shared = Arc::clone(&self.shared);
        let batches = std::iter::from_fn(move || {
            let next = |py: Python<'_>| shared.next(py).map_err(|error| error.to_string());
            let found = catch_unwind(AssertUnwindSafe(|| attached(next)));
            let found = found.unwrap_or_else(|_| Some(Err("a fault of Paceline itself".to_owned())));
            found.unwrap_or_else(|| Err("the interpreter ends".to_owned())).transpose()
        });
        stream(py, self.columns.schema(), batches, requested_schema)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<Scan: {} of {} packets match so far>", self.matched(py)?, self.packets(py)?))
    }
}
