//! Observers: what programs did to packets, told while they run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use paceline_engine::{BurstFault, ByKey, Caller, Host};
use paceline_frame::{Burst, FrameRef, Redirect, Verdict};

use super::follow::{self, LastBranch};

/// A packet that ran through the program of its interface.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Observed {
    /// Number of the worker.
    pub worker: usize,
    /// The interface that it came from.
    pub ifindex: u32,
    /// The queue that it came from.
    pub queue: u16,
    /// Time of reception in nanoseconds since the epoch: that of the port, or else that of the burst.
    pub timestamp_ns: u64,
    /// Length on the wire in bytes.
    pub original_len: u32,
    /// The packet as it was received.
    pub before: Vec<u8>,
    /// The packet as it is now; `None` if it is the same.
    pub after: Option<Vec<u8>>,
    /// The verdict.
    pub verdict: Verdict,
    /// Where it is redirected to.
    pub redirect: Option<Redirect>,
    /// Name of the program that decided: the last one of a [`LiveChain`](crate::LiveChain) that ran.
    pub program: Option<Arc<str>>,
    /// The last branch of that program.
    pub branch: Option<LastBranch>,
}

/// The workers' side of an observer.
pub(super) struct Sink {
    pub(super) sender: SyncSender<Observed>,
    pub(super) lost: AtomicU64,
}

/// The observers of a pipeline.
#[derive(Default)]
pub(super) struct Observers {
    /// Whether there are any: all that a burst costs without.
    any: AtomicBool,
    sinks: Mutex<Vec<Arc<Sink>>>,
}

impl Observers {
    pub(super) fn add(&self, sink: Arc<Sink>) {
        let mut sinks = self.lock();
        sinks.push(sink);
        self.any.store(true, Ordering::Relaxed);
    }

    pub(super) fn remove(&self, sink: &Arc<Sink>) {
        let mut sinks = self.lock();
        sinks.retain(|other| !Arc::ptr_eq(other, sink));
        self.any.store(!sinks.is_empty(), Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn any(&self) -> bool {
        self.any.load(Ordering::Relaxed)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<Sink>>> {
        self.sinks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a burst through the program of an interface, as `caller` does but on the plain interpreter, and tells the observers.
    #[cold]
    pub(super) fn run_burst(
        &self,
        caller: &mut Caller<ByKey>,
        (ifindex, worker): (u32, usize),
        burst: &mut Burst,
        host: &mut Host,
    ) -> Result<(), BurstFault> {
        let before: Vec<Vec<u8>> = burst.iter().map(|frame| frame.packet().to_vec()).collect();
        let (ran, mut ways) = follow::run_burst(caller, u64::from(ifindex), burst, host);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let all = std::mem::take(&mut ways.all);
        for ((frame, before), way) in burst.iter().zip(before).zip(all) {
            let mut observed = observed(frame, before, worker, now.as_nanos() as u64);
            observed.program = ways.program(&way);
            observed.branch = way.branch;
            self.tell(&observed);
        }
        ran
    }

    fn tell(&self, observed: &Observed) {
        for sink in &*self.lock() {
            if let Err(TrySendError::Full(_)) = sink.sender.try_send(observed.clone()) {
                sink.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

fn observed(frame: FrameRef<'_>, before: Vec<u8>, worker: usize, now_ns: u64) -> Observed {
    let (meta, verdict) = (*frame.meta(), frame.verdict());
    Observed {
        worker,
        ifindex: frame.ingress_ifindex(),
        queue: frame.rx_queue(),
        timestamp_ns: if meta.timestamp_ns == 0 { now_ns } else { meta.timestamp_ns },
        original_len: meta.original_len,
        after: (frame.packet() != before).then(|| frame.packet().to_vec()),
        before,
        verdict,
        redirect: frame.redirect().filter(|_| verdict == Verdict::Redirect),
        program: None,
        branch: None,
    }
}
