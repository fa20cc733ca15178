//! The threads of a live run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::{io, thread};

use paceline::port::{FramePool, PortError};
use paceline::{Idle, Pipeline, Worker, WorkerError};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::beats::Beats;
use super::report::PortNames;
use crate::common::failure::CommandError;
use crate::ports::{OpenedPort, QueuePort};

/// A live run ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum LiveError {
    /// A worker's error, with the name of the port.
    #[error("{port}")]
    Port { port: String, source: PortError },
    #[error(transparent)]
    Worker(WorkerError),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    #[error("cannot bind a thread to a CPU: {0}")]
    Pin(io::Error),
    #[error("a worker ended without a result: this is a fault of Paceline")]
    Panic,
}

impl CommandError for LiveError {}

impl LiveError {
    /// Names the port of a worker's error.
    pub(super) fn new(error: WorkerError, ports: &PortNames) -> Self {
        match error {
            WorkerError::Receive { ifindex: port, source } | WorkerError::Send { port, source, .. } => {
                Self::Port { port: ports.of(port).to_owned(), source }
            }
            error => Self::Worker(error),
        }
    }

    /// Whether the interface of a port does not exist any more.
    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Self::Port { source: PortError::Gone { .. }, .. })
    }
}

/// State that the workers share.
pub(super) struct Common<'a> {
    pub(super) pipeline: &'a Pipeline,
    pub(super) pool: &'a Arc<FramePool>,
    /// Set to end the run: by a signal, by the time, by the first worker that fails.
    pub(super) stop: &'a AtomicBool,
    pub(super) idle: Idle,
    pub(super) beats: &'a Beats,
}

/// The ports of one worker.
#[derive(Default)]
pub(super) struct Share {
    /// With their interface numbers.
    ports: Vec<(u32, QueuePort)>,
    /// With the numbers that socket maps have for them.
    sockets: Vec<(u32, QueuePort)>,
    /// The queues of the port of passed packets, which are sent to the first.
    pass: Vec<QueuePort>,
}

/// The open ports of a run.
pub(super) struct Ports {
    /// Ports of `--port`, whose packets run through the programs.
    pub(super) ports: Vec<OpenedPort>,
    /// Ports of `--socket`, with the numbers that are in the maps.
    pub(super) sockets: Vec<OpenedPort>,
    /// The port of `--pass`.
    pub(super) pass: Option<OpenedPort>,
}

/// Deals the ports out.
pub(super) fn shares(ports: Ports, workers: usize) -> Vec<Share> {
    let mut shares: Vec<Share> = (0..workers).map(|_| Share::default()).collect();
    let numbered = |port: OpenedPort| {
        let queues = move |queues: Vec<QueuePort>| queues.into_iter().map(move |queue| (port.ifindex, queue));
        port.workers.into_iter().map(queues)
    };
    for port in ports.ports {
        shares.iter_mut().zip(numbered(port)).for_each(|(share, queues)| share.ports.extend(queues));
    }
    for socket in ports.sockets {
        shares.iter_mut().zip(numbered(socket)).for_each(|(share, queues)| share.sockets.extend(queues));
    }
    if let Some(pass) = ports.pass {
        shares.iter_mut().zip(pass.workers).for_each(|(share, queues)| share.pass = queues);
    }
    shares
}

/// The CPUs that the process may use; threads are bound to them by turns.
pub(super) fn cpus() -> Result<Vec<usize>, LiveError> {
    let set = sched_getaffinity(None).map_err(|errno| LiveError::Pin(errno.into()))?;
    Ok((0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect())
}

/// Starts a worker's thread; `cpu` binds it. `ended` is dropped when it ends.
pub(super) fn start<'scope, 'env>(
    scope: &'scope thread::Scope<'scope, 'env>,
    common: &'env Common<'_>,
    number: usize,
    cpu: Option<usize>,
    share: Share,
    ended: impl Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, Result<(), LiveOrWorker>>, LiveError> {
    let work = move || {
        let _ended = ended;
        let result = run(common, number, cpu, share);
        common.beats.end(number);
        // The others end with the first one that fails.
        if result.is_err() {
            common.stop.store(true, Ordering::Relaxed);
        }
        result
    };
    thread::Builder::new()
        .name(format!("worker {number}"))
        .spawn_scoped(scope, work)
        .map_err(LiveError::Thread)
}

/// An error of a thread.
pub(super) enum LiveOrWorker {
    Live(LiveError),
    Worker(WorkerError),
}

fn run(common: &Common<'_>, number: usize, cpu: Option<usize>, share: Share) -> Result<(), LiveOrWorker> {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set).map_err(|errno| LiveOrWorker::Live(LiveError::Pin(errno.into())))?;
    }
    let mut worker = worker(common, number, share);
    common.beats.begin(number, worker.polls());
    worker.run(common.stop, common.idle, |_| {}).map_err(LiveOrWorker::Worker)
}

fn worker(common: &Common<'_>, number: usize, share: Share) -> Worker {
    let mut worker = common.pipeline.worker(number);
    // With too few free frames, received packets are copied once more when they are sent.
    worker.use_pool(common.pool);
    for (ifindex, (queue, port)) in share.ports {
        worker.attach(ifindex, queue, port);
    }
    for (number, (_, port)) in share.sockets {
        worker.attach_socket(number, port);
    }
    let mut pass = share.pass.into_iter().map(|(_, port)| port);
    if let Some(port) = pass.next() {
        worker.connect_stack(port);
    }
    pass.for_each(|port| worker.connect_stack_queue(port));
    worker
}
