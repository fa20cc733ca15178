//! Many packets through a program or chain, burst by burst.

use std::sync::Arc;

use paceline::{Burst, PushError};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::columns::{Columns, Table};
use crate::effects::Sent;
use crate::error::{Class, Failure};
use crate::packet::too_long;
use crate::packets::{Packets, Run, each};
use crate::settings::Settings;
use crate::subject::Subject;
use crate::table::{PyBatch, arrow_error};
use crate::worker::Worker;

/// A packet that ends a run of many.
enum Stop {
    Null(usize),
    TooLong(usize),
    Fault(Failure),
}

impl From<Stop> for PyErr {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Null(index) => PyValueError::new_err(format!("packets[{index}] is null")),
            Stop::TooLong(len) => too_long(len),
            Stop::Fault(failure) => failure.into(),
        }
    }
}

/// Runs the packets of an object, and gives columns about them.
pub(crate) fn run_many(
    subject: &Arc<Subject>,
    packets: &Bound<'_, PyAny>,
    columns: &Columns,
    settings: &Settings,
) -> PyResult<PyBatch> {
    let py = packets.py();
    let mut run = Many {
        subject,
        settings,
        cpu: None,
        table: columns.table(subject.ran_as(), 0),
        done: 0,
        sent: Sent::default(),
    };
    each(packets, &mut run)?;
    let Many { table, sent, .. } = run;
    let batch = py.detach(|| table.finish()).map_err(|error| arrow_error(&error))?;
    PyBatch::new(py, batch, sent)
}

struct Many<'a> {
    subject: &'a Subject,
    settings: &'a Settings,
    /// The CPU that the packets run on, once they do. It is free while Python gets the next ones ready, which may run packets itself.
    cpu: Option<usize>,
    table: Table,
    done: u64,
    sent: Sent,
}

impl Run for Many<'_> {
    fn run(&mut self, py: Python<'_>, packets: &impl Packets) -> PyResult<()> {
        let mut lease = match self.cpu {
            None => self.subject.lease(py),
            Some(cpu) => self.subject.workers().take_again(py, cpu),
        };
        let worker = lease.worker();
        match self.cpu {
            None => self.settings.apply(worker),
            Some(_) => self.settings.apply_again(worker),
        }
        self.cpu = Some(lease.cpu());
        let worker = lease.worker();
        let ran = py.detach(|| self.run_all(worker, packets));
        self.sent.add(worker.effects.take());
        Ok(ran?)
    }
}

impl Many<'_> {
    fn run_all(&mut self, worker: &mut Worker, packets: &impl Packets) -> Result<(), Stop> {
        let Worker { host, burst, chain, .. } = worker;
        let burst = burst.get_or_insert_default();
        let mut next = 0;
        while next < packets.len() {
            burst.clear();
            next = burst
                .limited(self.table.burst(), |burst| fill(burst, packets, next, self.settings, self.done))?;
            host.arrive(burst);
            host.fire_timers().map_err(|fault| Stop::Fault(self.subject.fault(&fault)))?;
            self.table.add_before(burst);
            self.subject.run_burst(chain, burst, host).map_err(|fault| {
                let number = self.done as usize + fault.index;
                Stop::Fault(Failure::of(Class::Fault, &fault.fault).at(format!("packets[{number}]")))
            })?;
            self.table.add_after(burst, host, self.done);
            self.done += burst.len() as u64;
        }
        Ok(())
    }
}

/// Fills an empty burst with the packets from an index on, and gives the index of the next.
fn fill(
    burst: &mut Burst,
    packets: &impl Packets,
    mut next: usize,
    settings: &Settings,
    done: u64,
) -> Result<usize, Stop> {
    while next < packets.len() {
        let packet = packets.get(next).ok_or(Stop::Null(done as usize + burst.len()))?;
        match burst.push(packet, settings.meta(packet.len())) {
            Ok(()) => next += 1,
            Err(PushError::Full) => break,
            Err(PushError::TooLong(len)) => return Err(Stop::TooLong(len)),
        }
    }
    settings.origin.receive(burst, 0);
    Ok(next)
}
