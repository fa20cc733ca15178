//! Counts of the workers, published once for each burst.

use std::collections::BTreeMap;
use std::ops::Add;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline_frame::Verdict;

use super::error::WorkerError;

/// Counts of packets by outcome. The end of each packet and of each copy is counted once ([`balance`](Self::balance)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PipelineCounts {
    /// Packets that workers took from ports and from queues of CPUs; those that waited for a CPU whose last worker went, too.
    pub received: u64,
    /// Copies of packets that are redirected to several places: one for each place but the first.
    pub copies: u64,
    /// Packets per verdict, in the order of [`Verdict::ALL`]. One that was handed over to another CPU counts there again.
    pub verdicts: [u64; 5],
    /// Packets whose program returned an invalid verdict; they count as aborted too.
    pub unknown: u64,
    /// Packets that ports and queues of CPUs took, those delivered included. One that is redirected to several counts for each.
    pub sent: u64,
    /// Packets that passed and were released, because the worker has no port for them.
    pub released: u64,
    /// Packets that ports and queues of CPUs had no room for.
    pub refused: u64,
    /// Redirects to where the worker has no port, to a CPU without worker, through a program that the pipeline does not have, or
    /// that had no target when the burst was over.
    pub no_target: u64,
    /// Packets that programs of device maps' entries did not pass.
    pub stopped: u64,
    /// Packets that were neither sent nor refused: one that faulted and those behind it that go the same way, those of a port
    /// that does not work any more, those that waited for a CPU whose last worker went, and those of sockets and of the host's network
    /// stack that waited when a worker ended in spite of them.
    pub lost: u64,
    /// Bursts.
    pub bursts: u64,
}

/// Counts of errors of an interface: each error that [`Worker::poll`](super::Worker::poll) met, including those it did not
/// return because an earlier error took precedence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortErrors {
    /// Receiving from it failed.
    pub receive: u64,
    /// Sending packets failed that came in there.
    pub send: u64,
    /// A packet of the interface caused an invalid access of a program.
    pub faults: u64,
}

impl PipelineCounts {
    const LEN: usize = 15;

    /// Packets that got a verdict.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.verdicts.iter().sum()
    }

    /// Packets with a verdict.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    /// Packets received and copies, less those whose end is counted: dropped, aborted, sent, or by one of the counts of packets that were
    /// not sent. It is 0 when no worker is within a burst. What waits in the queue of a CPU is sent, and not yet received.
    #[must_use]
    pub fn balance(&self) -> i64 {
        let Self { released, sent, refused, no_target, stopped, lost, .. } = *self;
        let dropped = self.of(Verdict::Drop) + self.of(Verdict::Aborted);
        let ended = dropped + released + sent + refused + no_target + stopped + lost;
        (self.received + self.copies).wrapping_sub(ended).cast_signed()
    }

    /// All counts, in one order.
    fn words(&mut self) -> [&mut u64; Self::LEN] {
        let Self { received, copies, verdicts: [a, b, c, d, e], unknown, .. } = self;
        let Self { sent, released, refused, no_target, stopped, lost, bursts, .. } = self;
        [received, copies, a, b, c, d, e, unknown, sent, released, refused, no_target, stopped, lost, bursts]
    }
}

/// The counts of one worker, written by it alone.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct Counts([AtomicU64; PipelineCounts::LEN]);

impl Counts {
    /// Adds the counts of one burst, which are those of every packet of it.
    pub(super) fn commit(&self, mut burst: PipelineCounts) {
        debug_assert_eq!(burst.balance(), 0, "the end of a packet is not counted: {burst:?}");
        for (count, packets) in self.0.iter().zip(burst.words()) {
            if *packets != 0 {
                more(count, *packets);
            }
        }
    }
}

/// Counts of a port of a worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PortCounts {
    /// The number that it was attached with: an interface, a socket, or 0 for the port of passed packets.
    pub number: u32,
    /// Packets received.
    pub received: u64,
    /// Packets sent.
    pub sent: u64,
    /// Packets that were to be sent, and had no room or were refused by the device.
    pub refused: u64,
    /// Sent packets that were copied to another pool's frames.
    pub copied: u64,
    /// Packets that arrived at the device and were dropped before they could be received
    /// ([`Port::dropped`](crate::port::Port::dropped)).
    pub dropped: u64,
}

impl Add for PortCounts {
    type Output = Self;

    /// Adds the counts of another queue of the port.
    fn add(self, other: Self) -> Self {
        Self {
            number: self.number,
            received: self.received + other.received,
            sent: self.sent + other.sent,
            refused: self.refused + other.refused,
            copied: self.copied + other.copied,
            dropped: self.dropped + other.dropped,
        }
    }
}

/// Counts of one port, written by its worker alone.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct PortCounter {
    number: u32,
    received: AtomicU64,
    sent: AtomicU64,
    refused: AtomicU64,
    copied: AtomicU64,
    dropped: AtomicU64,
}

impl PortCounter {
    pub(super) fn receive(&self, packets: usize) {
        more(&self.received, packets as u64);
    }

    pub(super) fn send(&self, sent: usize, refused: usize) {
        more(&self.sent, sent as u64);
        more(&self.refused, refused as u64);
    }

    /// Stores what the port itself counts.
    pub(super) fn device(&self, copied: u64, dropped: u64) {
        self.copied.store(copied, Ordering::Relaxed);
        self.dropped.store(dropped, Ordering::Relaxed);
    }

    fn counts(&self) -> PortCounts {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        PortCounts {
            number: self.number,
            received: read(&self.received),
            sent: read(&self.sent),
            refused: read(&self.refused),
            copied: read(&self.copied),
            dropped: read(&self.dropped),
        }
    }
}

fn more(count: &AtomicU64, packets: u64) {
    count.store(count.load(Ordering::Relaxed).wrapping_add(packets), Ordering::Relaxed);
}

/// The counts of all ports, in the order in which they were attached. They stay when a worker goes.
#[derive(Default)]
pub(super) struct PortTotals(Mutex<Vec<Arc<PortCounter>>>);

impl PortTotals {
    pub(super) fn register(&self, number: u32) -> Arc<PortCounter> {
        let counter = Arc::new(PortCounter { number, ..PortCounter::default() });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&counter));
        counter
    }

    pub(super) fn all(&self) -> Vec<PortCounts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|port| port.counts()).collect()
    }
}

/// The errors of all workers, by interface. Seldom written, hence the lock.
#[derive(Default)]
pub(super) struct Errors(Mutex<BTreeMap<u32, PortErrors>>);

impl Errors {
    #[cold]
    pub(super) fn note(&self, error: &WorkerError) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = match *error {
            WorkerError::Receive { ifindex, .. } => &mut all.entry(ifindex).or_default().receive,
            WorkerError::Send { ifindex, .. } => &mut all.entry(ifindex).or_default().send,
            WorkerError::Fault { ifindex, .. } => &mut all.entry(ifindex).or_default().faults,
            // Of no interface.
            WorkerError::Timer { .. } => return,
        };
        *count += 1;
    }

    pub(super) fn all(&self) -> BTreeMap<u32, PortErrors> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The counts of all workers. They stay when a worker goes.
#[derive(Default)]
pub(super) struct Totals(Mutex<Vec<OfWorker>>);

/// The counts of a worker and its number; `None` for those of workers that others replaced.
struct OfWorker {
    number: Option<usize>,
    counts: Arc<Counts>,
}

impl Totals {
    pub(super) fn register(&self, number: usize) -> Arc<Counts> {
        let counts = Arc::<Counts>::default();
        let mut all = self.lock();
        // The counts of dropped workers are combined when others have their numbers.
        let (live, gone): (Vec<_>, Vec<_>) = all.drain(..).partition(|worker| {
            Arc::strong_count(&worker.counts) > 1 || worker.number.is_some_and(|other| other != number)
        });
        // The fence orders a worker's last counts before its drop; the number of handles alone does not.
        fence(Ordering::Acquire);
        let rest = OfWorker { number: None, counts: Arc::default() };
        rest.counts.commit(sum(&gone));
        all.extend(live);
        all.push(rest);
        all.push(OfWorker { number: Some(number), counts: Arc::clone(&counts) });
        counts
    }

    pub(super) fn sum(&self) -> PipelineCounts {
        sum(&self.lock())
    }

    /// Counts by number of the worker, of those that have not been replaced.
    pub(super) fn by_worker(&self) -> Vec<(usize, PipelineCounts)> {
        let all = self.lock();
        all.iter().filter_map(|worker| Some((worker.number?, sum(std::slice::from_ref(worker))))).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<OfWorker>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sum(all: &[OfWorker]) -> PipelineCounts {
    let mut counts = PipelineCounts::default();
    for (index, word) in counts.words().into_iter().enumerate() {
        *word = all.iter().map(|worker| worker.counts.0[index].load(Ordering::Relaxed)).sum();
    }
    counts
}
