//! Packets handed over to other CPUs (`kernel/bpf/cpumap.c`): each CPU has a queue, which its worker empties.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use paceline_frame::{Burst, FrameMeta, FrameRef};
use paceline_ports::Group;

use super::queue::Egress;

/// A packet on its way, with what stays known of it. The queue it came in on does not, as in the kernel.
#[derive(Default)]
struct Waiting {
    /// Metadata, and then the packet.
    bytes: Vec<u8>,
    metadata: usize,
    /// Offset of the packet in its buffer: the headroom that a program left of it.
    offset: usize,
    meta: FrameMeta,
    ingress: u32,
    program: u32,
}

impl Waiting {
    fn fill(&mut self, frame: FrameRef<'_>, program: u32) {
        self.bytes.clear();
        self.bytes.extend_from_slice(frame.metadata());
        self.bytes.extend_from_slice(frame.packet());
        (self.metadata, self.program) = (frame.metadata().len(), program);
        self.offset = frame.span().offset as usize;
        (self.meta, self.ingress) = (*frame.meta(), frame.ingress_ifindex());
    }

    /// Adds the packet to a burst that is not full; false if it does not fit, which no packet is known not to.
    fn push_to(&self, burst: &mut Burst) -> bool {
        let (metadata, packet) = self.bytes.split_at(self.metadata);
        burst.set_ingress(self.ingress, 0);
        burst.push_at(self.offset, metadata, packet, self.meta).is_ok()
    }
}

/// The queue of a CPU.
pub(super) struct CpuQueue {
    packets: Mutex<Packets>,
    /// Number of waiting packets: a reader that finds none does not lock.
    len: AtomicUsize,
    /// Count of packets that no worker ran.
    lost: Arc<AtomicU64>,
}

#[derive(Default)]
struct Packets {
    waiting: VecDeque<Waiting>,
    /// Buffers to use again.
    spare: Vec<Waiting>,
}

impl CpuQueue {
    fn new(lost: Arc<AtomicU64>) -> Self {
        Self { packets: Mutex::default(), len: AtomicUsize::new(0), lost }
    }

    /// Hands a group over; returns the number of packets that fit.
    pub(super) fn send(&self, group: &Group<'_>, through: Egress) -> usize {
        let mut packets = self.lock();
        let room = (through.room as usize).saturating_sub(packets.waiting.len());
        for frame in group.iter().take(room) {
            let mut waiting = packets.spare.pop().unwrap_or_default();
            waiting.fill(frame, through.program);
            packets.waiting.push_back(waiting);
        }
        self.len.store(packets.waiting.len(), Ordering::Release);
        group.len().min(room)
    }

    /// Adds the packets that have waited longest to an empty burst, as far as they go through the same program; gives that, and the number
    /// of packets that are lost because they do not fit.
    pub(super) fn receive(&self, burst: &mut Burst) -> (u32, u64) {
        if self.len.load(Ordering::Acquire) == 0 {
            return (0, 0);
        }
        let mut packets = self.lock();
        let (program, mut lost) = (packets.waiting.front().map_or(0, |first| first.program), 0);
        while !burst.is_full() && packets.waiting.front().is_some_and(|next| next.program == program) {
            let Some(next) = packets.waiting.pop_front() else { break };
            lost += u64::from(!next.push_to(burst));
            packets.spare.push(next);
        }
        self.len.store(packets.waiting.len(), Ordering::Release);
        (program, lost)
    }

    fn lock(&self) -> MutexGuard<'_, Packets> {
        self.packets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for CpuQueue {
    /// The last worker of the CPU has gone, and no worker hands packets over to it.
    fn drop(&mut self) {
        let waiting = self.lock().waiting.len();
        self.lost.fetch_add(waiting as u64, Ordering::Relaxed);
    }
}

/// The queues of the CPUs that have workers.
#[derive(Default)]
pub(super) struct CpuQueues {
    by_cpu: Mutex<HashMap<u32, Weak<CpuQueue>>>,
    /// Packets that waited when the last worker of their CPU went.
    lost: Arc<AtomicU64>,
}

impl CpuQueues {
    /// That of a worker. Workers of one CPU share it.
    pub(super) fn open(&self, cpu: u32) -> Arc<CpuQueue> {
        let mut cpu_queues = self.by_cpu.lock().unwrap_or_else(PoisonError::into_inner);
        cpu_queues.retain(|_, cpu_queue| cpu_queue.strong_count() > 0);
        if let Some(cpu_queue) = cpu_queues.get(&cpu).and_then(Weak::upgrade) {
            return cpu_queue;
        }
        let cpu_queue = Arc::new(CpuQueue::new(Arc::clone(&self.lost)));
        cpu_queues.insert(cpu, Arc::downgrade(&cpu_queue));
        cpu_queue
    }

    /// That of a CPU which has a worker.
    pub(super) fn get(&self, cpu: u32) -> Option<Weak<CpuQueue>> {
        let cpu_queues = self.by_cpu.lock().unwrap_or_else(PoisonError::into_inner);
        cpu_queues.get(&cpu).filter(|cpu_queue| cpu_queue.strong_count() > 0).cloned()
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}
