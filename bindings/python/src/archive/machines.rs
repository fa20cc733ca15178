//! Programs on the threads of a scan, and their maps made one in the end.

use std::sync::Arc;

use paceline::scenario::Scenario;
use paceline::{Burst, BurstFault, ChainWorker, Host, ReplayOptions, Runner, TimeSource};
use paceline_archive::{MergeError, Rules, Snapshot, Worker};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::failure::not_merged;
use super::maps::{check, join, rules_of, state};
use crate::program::PyProgram;
use crate::runner::PyRunner;
use crate::subject::Subject;
use crate::worker::Turns;

/// Programs, one for each thread.
pub(super) struct Machines {
    runners: Vec<Py<PyRunner>>,
    /// For several.
    merge: Option<Merge>,
}

struct Merge {
    programs: Vec<Py<PyProgram>>,
    rules: Rules,
    before: Snapshot,
}

impl Machines {
    /// Checks that the maps of several programs can become one; `None` without programs.
    pub(super) fn of(
        programs: &[Bound<'_, PyRunner>],
        rules: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<Self>> {
        if programs.is_empty() {
            return Ok(None);
        }
        let merge = if programs.len() > 1 { Some(Merge::of(programs, rules)?) } else { None };
        let runners = programs.iter().map(|program| program.clone().unbind()).collect();
        Ok(Some(Self { runners, merge }))
    }

    pub(super) fn len(&self) -> usize {
        self.runners.len()
    }

    pub(super) fn workers(&self) -> Vec<Worker> {
        self.runners.iter().map(|runner| worker(&runner.get().subject)).collect()
    }

    /// Sets the maps of the first program to the result of all.
    pub(super) fn merge(&self) -> Result<(), MergeError> {
        let Some(Merge { programs, rules, before }) = &self.merge else { return Ok(()) };
        let after: Vec<_> =
            programs.iter().map(|program| state(program.get(), rules)).collect::<Result<_, _>>()?;
        join(programs[0].get(), rules, before, &after)
    }
}

impl Merge {
    fn of(programs: &[Bound<'_, PyRunner>], rules: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let program = |program: &Bound<'_, PyRunner>| {
            let program = program.clone().into_any().cast_into::<PyProgram>();
            let program =
                program.map_err(|_| PyTypeError::new_err("several workers run programs, not chains"));
            program.map(Bound::unbind)
        };
        let programs: Vec<_> = programs.iter().map(program).collect::<PyResult<_>>()?;
        let shared = |program: &Py<PyProgram>| Arc::as_ptr(program.get().shared());
        for (at, one) in programs.iter().enumerate() {
            if programs[..at].iter().any(|other| shared(other) == shared(one)) {
                return Err(PyValueError::new_err("each worker needs maps of its own: program() loads anew"));
            }
        }
        let rules = rules.map_or_else(|| Ok(Rules::default()), rules_of)?;
        check(programs[0].get(), &rules).map_err(not_merged)?;
        let before = state(programs[0].get(), &rules).map_err(not_merged)?;
        Ok(Self { programs, rules, before })
    }
}

/// A program on a thread; a CPU is taken for each burst, so that Python may run packets between them.
struct OnThread {
    subject: Arc<Subject>,
    turns: Turns,
    chain: Option<ChainWorker>,
}

impl Runner for OnThread {
    fn run_burst(&mut self, burst: &mut Burst, host: &mut Host) -> Result<(), BurstFault> {
        let turn = self.turns.take();
        host.set_cpu(turn.cpu());
        let ran = self.subject.run_burst(&mut self.chain, burst, host);
        host.give_back_cpu();
        ran
    }
}

/// A worker that runs the packets that match through a program, at their own times.
fn worker(subject: &Arc<Subject>) -> Worker {
    let mut scenario = Scenario::default();
    scenario.time = TimeSource::Packets;
    let (subject, turns) = (Arc::clone(subject), subject.workers().turns());
    let runner = OnThread { subject, turns, chain: None };
    Worker::with_program(Box::new(runner), scenario.host(0), ReplayOptions::default())
}
