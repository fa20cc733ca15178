//! Pipelines: packets from ports, through programs, to ports.

mod actions;
mod counted;
mod counts;
mod cpus;
mod dispatch;
mod entry_programs;
mod error;
mod failures;
mod follow;
mod known;
mod observe;
mod observer;
mod polls;
mod queue;
mod run;
mod shared;
mod worker;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use paceline_engine::{KeyedSite, Target, UpdateError};
use paceline_maps::Map;

pub use counts::{PipelineCounts, PortCounts, PortErrors};
pub use error::WorkerError;
pub use follow::{AbortPlace, ChainEdge, FollowCounts, LastBranch};
pub use observe::Observed;
pub use observer::Observer;
pub use polls::Polls;
pub use run::Idle;
pub use worker::Worker;

use counts::{Errors, PortTotals, Totals};
use cpus::CpuQueues;
use follow::Follow;
use known::KnownMaps;
use observe::Observers;
use shared::Shared;

/// Programs by interface, for any number of workers. Clones are handles to the same pipeline.
///
/// Programs are called through one call site ([`KeyedSite`]), by interface: a program that is replaced gets no burst that a worker
/// begins from then on, and no packet is lost or runs twice.
///
/// Redirects go where maps' entries lead when the burst is over:
/// - device maps to the port of the interface, by one entry or by all of them (`BPF_F_BROADCAST`, `BPF_F_EXCLUDE_INGRESS`), through
///   the entry's program;
/// - socket maps to the port that stands for the socket ([`Worker::attach_socket`]);
/// - CPU maps to the queue of the CPU, which its worker empties: there the packet goes through the entry's program, and passes.
///
/// Entries name their programs by [number](paceline_engine::Program::id), and keep them.
///
/// ```
/// use paceline::port::MemoryPort;
/// use paceline::{LoadOptions, Object, Pipeline, Target};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/counter.o");
/// let counter = Object::open(path)?.load(&LoadOptions::default())?.program(None)?;
/// let pipeline = Pipeline::new();
/// pipeline.set_program(1, Some(&Target::from(counter.program())))?;
///
/// let (card, wire) = MemoryPort::link(256);
/// let (stack, host) = MemoryPort::link(256);
/// let mut worker = pipeline.worker(0); // on each thread
/// worker.attach(1, 0, card);
/// worker.deliver_to(stack);
///
/// wire.push(&[0; 60], Default::default());
/// assert_eq!(worker.poll()?, 1);
/// assert!(host.pop().is_some(), "the program passes it");
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pipeline {
    shared: Arc<Shared>,
}

impl Pipeline {
    /// A pipeline without programs: all packets pass.
    #[must_use]
    pub fn new() -> Self {
        let shared = Shared {
            site: KeyedSite::by_key(),
            maps: KnownMaps::default(),
            cpu_queues: CpuQueues::default(),
            totals: Totals::default(),
            ports: PortTotals::default(),
            errors: Errors::default(),
            observers: Observers::default(),
            follow: Follow::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Sets or removes the program of an interface; packets pass without one. Workers use the new program from their next
    /// burst on.
    ///
    /// # Errors
    /// [`UpdateError`]; the pipeline is unchanged.
    pub fn set_program(&self, ifindex: u32, program: Option<&Target>) -> Result<(), UpdateError> {
        // The maps first: the program's packets may come any moment after.
        self.add_maps(&program.map_or_else(Vec::new, Target::maps));
        self.shared.site.set(u64::from(ifindex), program)
    }

    /// Makes maps known that packets may be redirected by. Those of the programs are, those of entries' programs too; those of
    /// programs that they come to by tail calls must be told. The pipeline does not keep them; a worker keeps those that it came
    /// upon until more become known, or it goes.
    pub fn add_maps(&self, maps: &[Arc<Map>]) {
        self.shared.maps.add(maps);
    }

    /// A worker, for a thread: the number is that of its CPU, for per-CPU maps.
    #[must_use]
    pub fn worker(&self, cpu: usize) -> Worker {
        Worker::new(Arc::clone(&self.shared), cpu)
    }

    /// Counts of all workers, up to the last burst of each.
    #[must_use]
    pub fn counts(&self) -> PipelineCounts {
        let mut counts = self.shared.totals.sum();
        let left = self.shared.cpu_queues.lost();
        (counts.received, counts.lost) = (counts.received + left, counts.lost + left);
        counts
    }

    /// Counts of each worker, with the number that it was made with, in the order in which they were made.
    #[must_use]
    pub fn workers(&self) -> Vec<(usize, PipelineCounts)> {
        self.shared.totals.by_worker()
    }

    /// Counts of the ports of all workers, in the order in which they were attached. What ports themselves count is as of the last
    /// [`Worker::update_counts`].
    #[must_use]
    pub fn ports(&self) -> Vec<PortCounts> {
        self.shared.ports.all()
    }

    /// Tells of every packet that runs through the program of an interface from now on, until the observer is dropped: at most
    /// `capacity` wait for it, and others are only counted ([`Observer::lost`]). Workers take longer for each packet meanwhile.
    #[must_use]
    pub fn observe(&self, capacity: usize) -> Observer {
        Observer::new(&self.shared, capacity)
    }

    /// Whether a sample of the packets is followed through their programs ([`followed`](Self::followed)). Each worker spends a hundredth
    /// of its time on it, at most. Some packets are followed in any case after one was aborted.
    pub fn follow(&self, is_wanted: bool) {
        self.shared.follow.want(is_wanted);
    }

    /// Counts of the packets that were followed: where they were aborted, and the ways that they took through chains.
    #[must_use]
    pub fn followed(&self) -> FollowCounts {
        self.shared.follow.counts()
    }

    /// Errors of all workers, by the interface of arrival.
    #[must_use]
    pub fn errors(&self) -> BTreeMap<u32, PortErrors> {
        self.shared.errors.all()
    }

    /// The site through which programs are called: its statistics, its code.
    #[must_use]
    pub fn site(&self) -> &KeyedSite {
        &self.shared.site
    }
}

impl Default for Pipeline {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Pipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipeline").field("site", &self.shared.site).finish_non_exhaustive()
    }
}
