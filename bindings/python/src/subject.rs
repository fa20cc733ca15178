//! Subjects, which packets run through: a program, or a chain of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use paceline::explain::{ChainExplainer, Explainer};
use paceline::filter::PacketFilter;
use paceline::{
    Burst, BurstFault, ChainWorker, Fault, FaultKind, Host, LiveChain, Map, Meaning, Program, RanAs,
};
use pyo3::prelude::*;

use crate::error::{Class, Failure};
use crate::shared::Shared;
use crate::worker::{Lease, Worker, Workers};

/// A program, or a chain of them.
pub(crate) enum Subject {
    Program { program: Program, shared: Arc<Shared> },
    Chain { live: LiveChain, parts: Parts, workers: Workers },
    Filter { filter: PacketFilter, workers: Workers },
}

/// A program of a chain, with the collection that it is from; filters are of none.
#[derive(Clone)]
pub(crate) struct Part {
    pub(crate) program: Program,
    pub(crate) shared: Option<Arc<Shared>>,
}

impl Part {
    /// CPUs that its maps have values for; any for a filter.
    pub(crate) fn cpus(&self) -> Option<usize> {
        self.shared.as_ref().map(|shared| shared.workers.cpus())
    }
}

/// The programs that are or were in a chain, to find what belongs to one. Locked for moments only, with the interpreter held.
#[derive(Default)]
pub(crate) struct Parts(Mutex<Vec<Part>>);

impl Parts {
    pub(crate) fn add(&self, part: Part) {
        self.lock().push(part);
    }

    /// The object of a program, unless it is a filter.
    pub(crate) fn shared(&self, program: &Program) -> Option<Arc<Shared>> {
        self.lock().iter().find(|part| part.program.id() == program.id())?.shared.clone()
    }

    /// Forgets the programs that a chain has no more.
    pub(crate) fn keep_those_of(&self, live: &LiveChain) {
        let members = live.members();
        let is_there =
            |part: &mut Part| members.iter().any(|member| member.program().id() == part.program.id());
        let gone: Vec<Part> = self.lock().extract_if(.., |part| !is_there(part)).collect();
        // Their drop may take long.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Part>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Vec<Part>> for Parts {
    fn from(parts: Vec<Part>) -> Self {
        Self(Mutex::new(parts))
    }
}

/// Time until the CPU is tried again.
pub(crate) const PATIENCE: Duration = Duration::from_micros(20);

/// Whether a run did not begin, because another collection or chain with the same per-CPU maps uses the CPU.
pub(crate) fn is_in_use(fault: &Fault) -> bool {
    matches!(fault.kind, FaultKind::CpuInUse(_)) && fault.tail_called.is_none()
}

impl Subject {
    /// The workers that it runs on.
    pub(crate) fn workers(&self) -> &Workers {
        match self {
            Self::Program { shared, .. } => &shared.workers,
            Self::Chain { workers, .. } | Self::Filter { workers, .. } => workers,
        }
    }

    pub(crate) fn lease(&self, py: Python<'_>) -> Lease {
        self.workers().take(py)
    }

    /// Its name in messages.
    pub(crate) fn file(&self) -> Option<&str> {
        match self {
            Self::Program { shared, .. } => shared.file.as_deref(),
            Self::Chain { .. } | Self::Filter { .. } => None,
        }
    }

    /// Runs the packet in the worker's frame for one, as soon as no other collection or chain with the same per-CPU maps uses the CPU. Must
    /// not be called with the interpreter held, which the other may need to end.
    pub(crate) fn run_one(&self, worker: &mut Worker) -> Result<(), Failure> {
        loop {
            match self.try_one(worker) {
                Err(fault) if is_in_use(&fault) => thread::sleep(PATIENCE),
                ran => return ran.map_err(|fault| self.fault(&fault)),
            }
        }
    }

    /// The same with the interpreter held; `None` if the CPU is in use.
    pub(crate) fn run_one_at_once(&self, worker: &mut Worker) -> Option<Result<(), Failure>> {
        match self.try_one(worker) {
            Err(fault) if is_in_use(&fault) => None,
            ran => Some(ran.map_err(|fault| self.fault(&fault))),
        }
    }

    fn try_one(&self, worker: &mut Worker) -> Result<(), Box<Fault>> {
        let Worker { host, single, chain, .. } = worker;
        match self {
            Self::Program { program, .. } => program.run_raw(&mut single.frame_mut(0), host).map(drop),
            Self::Chain { live, .. } => {
                let chain = chain.get_or_insert_with(|| live.worker());
                chain.run_burst(single, host).map_err(|fault| fault.fault)
            }
            Self::Filter { filter, .. } => {
                filter.matches(single, host).map(drop).map_err(|fault| fault.fault)
            }
        }
    }

    /// Runs the packets of a burst, as soon as the CPU is not in use; not with the interpreter held.
    pub(crate) fn run_burst(
        &self,
        chain: &mut Option<ChainWorker>,
        burst: &mut Burst,
        host: &mut Host,
    ) -> Result<(), BurstFault> {
        loop {
            let ran = match self {
                Self::Program { program, .. } => program.run_burst(burst, host),
                Self::Chain { live, .. } => chain.get_or_insert_with(|| live.worker()).run_burst(burst, host),
                Self::Filter { filter, .. } => filter.matches(burst, host).map(drop),
            };
            match ran {
                Err(fault) if is_in_use(&fault.fault) => thread::sleep(PATIENCE),
                ran => return ran,
            }
        }
    }

    /// How its outcomes are read.
    pub(crate) fn ran_as(&self) -> RanAs {
        let meaning = |program: &Program| program.spec().kind.rules().meaning;
        match self {
            Self::Program { program, .. } => RanAs::Program(meaning(program)),
            // Programs of a chain are of one type.
            Self::Chain { live, .. } => {
                let first = live.members().first().map(|member| meaning(member.program()));
                RanAs::Chain(first.unwrap_or(Meaning::Verdict))
            }
            Self::Filter { filter, .. } => RanAs::Program(meaning(filter.program().program())),
        }
    }

    /// The exception of a fault.
    pub(crate) fn fault(&self, fault: &dyn std::error::Error) -> Failure {
        Failure::of(Class::Fault, fault).in_file(self.file())
    }

    /// An explainer of it.
    pub(crate) fn explainer(&self) -> ChainExplainer {
        let of = |program: &Program, shared: Option<&Arc<Shared>>| {
            Explainer::new(program.clone(), shared.and_then(|shared| shared.collection.object().shared_btf()))
        };
        match self {
            Self::Program { program, shared } => ChainExplainer::of_program(of(program, Some(shared))),
            Self::Chain { live, parts, .. } => {
                let worker = live.worker();
                let (programs, graph) = worker.parts();
                let parts = parts.lock();
                let explainers = programs.iter().map(|program| {
                    let part = parts.iter().find(|part| part.program.id() == program.id());
                    of(program, part.and_then(|part| part.shared.as_ref()))
                });
                ChainExplainer::new(explainers.collect(), graph.clone())
            }
            Self::Filter { filter, .. } => ChainExplainer::of_program(of(filter.program().program(), None)),
        }
    }

    /// The name of a map by its number, if it is one of the subject's.
    pub(crate) fn map_name(&self, id: u32) -> Option<String> {
        let name = |map: &Arc<Map>| (map.id() == id).then(|| map.spec().name.clone());
        match self {
            Self::Program { shared, .. } => shared.collection.maps().iter().find_map(name),
            Self::Chain { parts, .. } => {
                let parts = parts.lock();
                let collections = parts.iter().filter_map(|part| part.shared.as_ref());
                collections.flat_map(|shared| shared.collection.maps()).find_map(name)
            }
            Self::Filter { .. } => None,
        }
    }
}
