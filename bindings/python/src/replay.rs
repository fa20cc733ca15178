//! Captures through programs and chains, as record batches.

use std::fs::File;
use std::io::{BufReader, Cursor, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use paceline::TimeSource;
use paceline::capture::{CaptureReader, ReadError};
use paceline::scenario::Origin;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyCapsule, PyDict};

use crate::columns::{Columns, Table};
use crate::error::{Class, Failure, guarded};
use crate::network::PyNetwork;
use crate::process::Call;
use crate::runner::PyRunner;
use crate::settings::Settings;
use crate::source::{os_error, path_of};
use crate::subject::Subject;
use crate::table::{PyBatch, stream};
use crate::verdict;
use crate::worker::Worker;

type Source = Box<dyn Read + Send>;

/// A capture that runs through a program or chain: an iterator of record batches, and a stream for Arrow's libraries.
#[pyclass(frozen, name = "Replay", module = "paceline")]
pub(crate) struct PyReplay {
    state: Arc<Mutex<State>>,
    subject: Arc<Subject>,
    columns: Columns,
}

/// The rest of a capture, and what its packets run on.
struct State {
    reader: CaptureReader<'static>,
    file: Option<String>,
    subject: Arc<Subject>,
    worker: Worker,
    columns: Columns,
    /// Of a batch.
    packets: usize,
    /// Packets that may still be read.
    left: u64,
    origin: Origin,
    verdicts: [u64; 5],
    done: u64,
    /// An error that came after packets of a batch, which is given first.
    error: Option<Failure>,
    is_done: bool,
}

/// Opens a capture and runs it through a program or chain.
#[pyfunction]
#[pyo3(signature = (
    capture, runner, *, columns = None, batch_size = 8192, count = None, ingress = None, queue = 0, context = None,
    clock = "packets", seed = None, network = None
))]
#[allow(clippy::too_many_arguments, reason = "keyword arguments of a Python function")]
pub(crate) fn replay(
    capture: &Bound<'_, PyAny>,
    runner: &Bound<'_, PyRunner>,
    columns: Option<Vec<String>>,
    batch_size: usize,
    count: Option<u64>,
    ingress: Option<&Bound<'_, PyAny>>,
    queue: u16,
    context: Option<&Bound<'_, PyDict>>,
    clock: &str,
    seed: Option<u64>,
    network: Option<&Bound<'_, PyNetwork>>,
) -> PyResult<PyReplay> {
    let standard = || ["number", "time", "verdict", "length"].map(str::to_owned).to_vec();
    let columns = Columns::named(&columns.unwrap_or_else(standard))?;
    if !(1..=1 << 20).contains(&batch_size) {
        return Err(PyValueError::new_err("batch_size is 1 to 1048576"));
    }
    let time = match clock {
        "packets" => TimeSource::Packets,
        "system" => TimeSource::System,
        other => {
            return Err(PyValueError::new_err(format!("clock is \"packets\" or \"system\", not {other:?}")));
        }
    };
    let (source, file) = open(capture)?;
    guarded(|| {
        let subject = Arc::clone(&runner.get().subject);
        let settings = Settings::new(ingress, queue, context, None, seed, network)?;
        let reader = capture.py().detach(|| CaptureReader::new(source));
        let reader = reader.map_err(|error| read_error(&error, file.as_deref()))?;
        let mut worker = Worker::new(0);
        settings.apply(&mut worker);
        worker.host.set_time(time);
        let state = State {
            reader,
            file,
            subject: Arc::clone(&subject),
            worker,
            columns: columns.clone(),
            packets: batch_size,
            left: count.unwrap_or(u64::MAX),
            origin: settings.origin,
            verdicts: [0; 5],
            done: 0,
            error: None,
            is_done: false,
        };
        Ok(PyReplay { state: Arc::new(Mutex::new(state)), subject, columns })
    })
}

fn open(capture: &Bound<'_, PyAny>) -> PyResult<(Source, Option<String>)> {
    if let Ok(bytes) = capture.cast::<PyBytes>() {
        return Ok((Box::new(Cursor::new(bytes.as_bytes().to_vec())), None));
    }
    if let Ok(bytes) = capture.cast::<PyByteArray>() {
        return Ok((Box::new(Cursor::new(bytes.to_vec())), None));
    }
    let path = path_of(capture)?;
    let file = File::open(&path).map_err(|error| os_error(capture.py(), &error, &path))?;
    Ok((Box::new(BufReader::with_capacity(1 << 18, file)), Some(path)))
}

fn read_error(error: &ReadError, file: Option<&str>) -> Failure {
    Failure::of(Class::Capture, &error).in_file(file)
}

impl State {
    /// The next batch; `None` at the end. The CPU is free until the one after it.
    fn next(&mut self) -> Result<Option<RecordBatch>, Failure> {
        let batch = self.next_on_cpu();
        self.worker.host.give_back_cpu();
        batch
    }

    fn next_on_cpu(&mut self) -> Result<Option<RecordBatch>, Failure> {
        if let Some(error) = self.error.take() {
            self.is_done = true;
            return Err(error);
        }
        if self.is_done {
            return Ok(None);
        }
        let mut table = self.columns.table(self.subject.ran_as(), self.packets);
        while table.len() < self.packets {
            match self.run_burst(&mut table) {
                Ok(true) => {}
                Ok(false) => {
                    self.is_done = true;
                    break;
                }
                Err(error) if table.len() == 0 => {
                    self.is_done = true;
                    return Err(error);
                }
                Err(error) => {
                    self.error = Some(error);
                    break;
                }
            }
        }
        if table.len() == 0 {
            return Ok(None);
        }
        table.finish().map(Some).map_err(|error| Failure::of(Class::Internal, &error))
    }

    /// Runs one burst, as `paceline run` does. False at the end.
    fn run_burst(&mut self, table: &mut Table) -> Result<bool, Failure> {
        let room = (self.packets - table.len()).min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let Self { reader, worker, .. } = self;
        let Worker { host, burst, chain, .. } = worker;
        let burst = burst.get_or_insert_default();
        burst.clear();
        let read = burst.limited(room.min(table.burst()), |burst| reader.fill(burst));
        let read = read.map_err(|error| read_error(&error, self.file.as_deref()))?;
        if read == 0 {
            host.fire_timers().map_err(|fault| self.subject.fault(&fault))?;
            return Ok(false);
        }
        self.origin.receive(burst, 0);
        host.arrive(burst);
        host.fire_timers().map_err(|fault| self.subject.fault(&fault))?;
        table.add_before(burst);
        self.subject.run_burst(chain, burst, host).map_err(|fault| {
            let packet = self.done + fault.index as u64 + 1;
            Failure::of(Class::Fault, &fault.fault)
                .at(format!("packet {packet}"))
                .in_file(self.file.as_deref())
        })?;
        table.add_after(burst, host, self.done);
        let ran = self.subject.ran_as();
        burst.iter().for_each(|frame| self.verdicts[ran.verdict(frame) as usize] += 1);
        self.done += burst.len() as u64;
        self.left -= burst.len() as u64;
        Ok(true)
    }

    /// As [`next`](Self::next); a panic is an error.
    fn next_guarded(&mut self) -> Result<Option<RecordBatch>, Failure> {
        catch_unwind(AssertUnwindSafe(|| self.next())).unwrap_or_else(|_| {
            self.is_done = true;
            self.worker.host.give_back_cpu();
            Err(Failure::new(Class::Internal, "a fault of Paceline itself"))
        })
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

#[pymethods]
impl PyReplay {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyBatch>> {
        guarded(|| {
            // The CPU is this capture's while a batch runs.
            let lease = self.subject.lease(py);
            let cpu = lease.cpu();
            let (batch, sent) = py.detach(|| {
                let mut state = lock(&self.state);
                state.worker.host.set_cpu(cpu);
                let batch = state.next_guarded();
                batch.map(|batch| (batch, state.worker.effects.take()))
            })?;
            drop(lease);
            batch.map(|batch| PyBatch::new(py, batch, sent)).transpose()
        })
    }

    /// Packets of each verdict so far.
    #[getter]
    fn verdicts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        verdict::counts(py, py.detach(|| lock(&self.state).verdicts))
    }

    /// Packets so far.
    #[getter]
    fn packets(&self, py: Python<'_>) -> u64 {
        py.detach(|| lock(&self.state).done)
    }

    /// The rest of the capture as a stream of record batches.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyCapsule>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let state = Arc::clone(&self.state);
        let batches = std::iter::from_fn(move || {
            // The reader may hold the interpreter, which the run that has the CPU may need to end.
            let call = Call::begin();
            let next = || lock(&state).next_guarded();
            let batch = if call.is_some() { Python::attach(|py| py.detach(next)) } else { next() };
            let batch = batch.transpose()?;
            Some(batch.map_err(|failure| failure.to_string()))
        });
        stream(py, self.columns.schema(), batches, requested_schema)
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("<Replay: {} packets so far>", self.packets(py))
    }
}
