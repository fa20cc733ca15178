//! One port for several workers: packets are dealt out by flow.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use paceline_frame::{Burst, FrameMeta, FramePool, MAX_BURST, PoolCache};
use rtrb::{Consumer, Producer, PushError, RingBuffer};

use crate::flow::queue_of;
use crate::port::{Group, Port, PortError, SendError};
use crate::waiting::Waiting;

/// Packets that wait for a worker.
const QUEUE: usize = 512;

/// Treatment of a packet for a worker whose queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overflow {
    /// The packet is dropped and counted, so that a slow worker does not delay the others: for devices.
    Drop,
    /// No worker receives more until there is room: for sources that wait, such as captures.
    Wait,
}

/// A worker's share of a port that has fewer queues than there are workers. All packets of a flow go to one worker, in order.
///
/// A worker without packets receives a burst from the port, and deals it out to the queues of all; while it does, the others go on with
/// theirs. Workers take turns to send. What waits for a worker that ends, and what is to come for it, goes to the others.
pub struct SpreadPort {
    source: Arc<Source>,
    queue: Consumer<Parcel>,
    cache: PoolCache,
    /// The pool of the port, for frames that are sent.
    pool: Option<Arc<FramePool>>,
    /// Index of its queue.
    number: usize,
    /// What it has reported of the port's counts.
    copied: AtomicU64,
    dropped: u64,
    is_stopped: bool,
    has_left: bool,
}

type Parcel = (Waiting, FrameMeta);

/// The port itself.
struct Source {
    dealer: Mutex<Dealer>,
    /// Whether all its packets have been dealt out.
    is_done: AtomicBool,
}

struct Dealer {
    port: Box<dyn Port>,
    burst: Burst,
    queues: Vec<Producer<Parcel>>,
    /// Packets of the burst for each queue, by index.
    groups: Vec<Vec<usize>>,
    /// Whether the worker of each queue is there.
    open: Vec<bool>,
    cache: PoolCache,
    overflow: Overflow,
    dropped: u64,
    /// Dropped and copied packets that shares have reported.
    reported: (u64, u64),
}

impl Dealer {
    /// The queue of a flow's packets: that of another worker if its own has ended.
    fn queue_for(&self, packet: &[u8]) -> usize {
        let (own, count) = (queue_of(packet, self.queues.len()), self.queues.len());
        let mut others = (own..count).chain(0..own);
        others.find(|&index| self.open.get(index) == Some(&true)).unwrap_or(own)
    }

    /// A worker ends: what waits for it goes to another one that has room, or is dropped.
    fn end(&mut self, number: usize, waiting: &mut Consumer<Parcel>) {
        self.open[number] = false;
        let next = (number..self.open.len()).chain(0..number).find(|&index| self.open[index]);
        while let Ok(parcel) = waiting.pop() {
            let refused = match next {
                Some(next) => self.queues[next].push(parcel).err().map(|PushError::Full(parcel)| parcel),
                None => Some(parcel),
            };
            if let Some((waiting, _)) = refused {
                self.dropped += 1;
                waiting.release(&mut self.cache);
            }
        }
    }

    /// Receives a burst and deals it out; returns its length.
    fn deal(&mut self) -> Result<usize, PortError> {
        let room = match self.overflow {
            Overflow::Drop => MAX_BURST,
            Overflow::Wait => {
                let open = self.queues.iter().zip(&self.open).filter(|(_, open)| **open);
                open.map(|(queue, _)| queue.slots()).min().unwrap_or(0)
            }
        };
        self.burst.clear();
        let port = &mut self.port;
        let received = self.burst.limited(room, |burst| port.receive(burst));
        for (index, frame) in self.burst.iter().enumerate() {
            let queue = self.queue_for(frame.packet());
            self.groups[queue].push(index);
        }
        for (queue, group) in self.queues.iter_mut().zip(&mut self.groups) {
            // One store publishes the group: single packets would move the queue's cache line to the other core and back each.
            let count = group.len().min(queue.slots());
            self.dropped += (group.len() - count) as u64;
            if let Ok(chunk) = queue.write_chunk_uninit(count) {
                let (burst, cache) = (&mut self.burst, &mut self.cache);
                chunk.fill_from_iter(group.drain(..count).map(|index| {
                    let waiting = match burst.take(index, cache.pool()) {
                        Some(taken) => Waiting::taken(taken),
                        None => Waiting::copy(burst.frame(index).packet(), cache),
                    };
                    (waiting, *burst.frame(index).meta())
                }));
            }
            group.clear();
        }
        received
    }
}

impl SpreadPort {
    /// Shares of a port for this many workers. Packets of a port without a pool are copied into frames of `pool`.
    #[must_use]
    pub fn spread(
        port: impl Port + 'static,
        pool: &Arc<FramePool>,
        workers: usize,
        overflow: Overflow,
    ) -> Vec<Self> {
        let own = port.pool().cloned();
        let pool = own.as_ref().unwrap_or(pool);
        let (queues, consumers): (Vec<_>, Vec<_>) = (0..workers).map(|_| RingBuffer::new(QUEUE)).unzip();
        let dealer = Dealer {
            port: Box::new(port),
            burst: Burst::in_pool(MAX_BURST, pool).unwrap_or_default(),
            groups: queues.iter().map(|_| Vec::with_capacity(MAX_BURST)).collect(),
            open: vec![true; workers],
            queues,
            cache: PoolCache::new(pool),
            overflow,
            dropped: 0,
            reported: (0, 0),
        };
        let source = Arc::new(Source { dealer: Mutex::new(dealer), is_done: AtomicBool::new(false) });
        let share = |(number, queue)| Self {
            source: Arc::clone(&source),
            queue,
            cache: PoolCache::new(pool),
            pool: own.clone(),
            number,
            copied: AtomicU64::new(0),
            dropped: 0,
            is_stopped: false,
            has_left: false,
        };
        consumers.into_iter().enumerate().map(share).collect()
    }

    /// Receives what waits for this worker.
    fn take(&mut self, burst: &mut Burst) {
        let Ok(chunk) = self.queue.read_chunk(self.queue.slots().min(burst.room())) else { return };
        for (waiting, meta) in chunk {
            let is_delivered = waiting.deliver(meta, burst, &mut self.cache);
            self.dropped += u64::from(!is_delivered);
        }
    }

    /// Deals out a burst, unless another worker does, and returns its length. A worker that ends waits for those that deal out to it.
    fn deal(&self) -> Result<usize, PortError> {
        let mut dealer = if self.is_stopped {
            self.source.lock()
        } else {
            let Some(dealer) = self.source.try_lock() else { return Ok(0) };
            dealer
        };
        let dealt = dealer.deal();
        self.source.is_done.store(dealer.port.is_done(), Ordering::Release);
        dealt
    }
}

impl Source {
    fn lock(&self) -> MutexGuard<'_, Dealer> {
        self.dealer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` while another worker has it.
    fn try_lock(&self) -> Option<MutexGuard<'_, Dealer>> {
        match self.dealer.try_lock() {
            Ok(dealer) => Some(dealer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl Port for SpreadPort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        if std::mem::take(&mut self.has_left) {
            self.source.lock().open[self.number] = true;
        }
        let before = burst.len();
        self.take(burst);
        while !burst.is_full() {
            let dealt = self.deal();
            let had = burst.len();
            self.take(burst);
            let dealt = dealt?;
            // A worker that ends empties the port: another one that goes on would deal out to it later.
            if burst.len() == had && (dealt == 0 || !self.is_stopped) {
                break;
            }
        }
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        self.source.lock().port.send(group)
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        self.pool.as_ref()
    }

    fn copied(&self) -> u64 {
        // One that another worker deals out reports it.
        if let Some(mut dealer) = self.source.try_lock() {
            let all = dealer.port.copied();
            let reported = std::mem::replace(&mut dealer.reported.1, all);
            self.copied.fetch_add(all.saturating_sub(reported), Ordering::Relaxed);
        }
        self.copied.load(Ordering::Relaxed)
    }

    fn is_done(&self) -> bool {
        self.source.is_done.load(Ordering::Acquire) && self.queue.is_empty()
    }

    fn stop(&mut self) {
        self.is_stopped = true;
        self.source.lock().port.stop();
    }

    fn leave(&mut self) -> bool {
        let mut dealer = self.source.lock();
        let mut others = dealer.open.iter().enumerate().filter(|(number, _)| *number != self.number);
        if others.all(|(_, open)| !open) && self.queue.is_empty() {
            // The last one leaves nothing in the port; one that is in error has nothing.
            let _ = dealer.deal();
        }
        // Nothing is dealt out meanwhile.
        self.has_left = self.queue.is_empty();
        dealer.open[self.number] = !self.has_left;
        self.has_left
    }

    fn dropped(&mut self) -> u64 {
        if let Some(mut dealer) = self.source.try_lock() {
            let all = dealer.dropped + dealer.port.dropped();
            let reported = std::mem::replace(&mut dealer.reported.0, all);
            self.dropped += all.saturating_sub(reported);
        }
        self.dropped
    }
}

impl Drop for SpreadPort {
    fn drop(&mut self) {
        self.source.lock().end(self.number, &mut self.queue);
    }
}

impl fmt::Debug for SpreadPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SpreadPort").field("waiting", &self.queue.slots()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generator, MemoryPort};

    /// A UDP packet of a flow with a number.
    fn packet(flow: u8, number: u32) -> Vec<u8> {
        let mut packet = vec![0; 60];
        (packet[12], packet[14], packet[23], packet[35]) = (8, 0x45, 17, flow);
        packet[42..46].copy_from_slice(&number.to_be_bytes());
        packet
    }

    fn flow_and_number(packet: &[u8]) -> (u8, u32) {
        (packet[35], packet[42..46].iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
    }

    #[test]
    fn flows_stay_in_order_on_one_worker() {
        const FLOWS: u8 = 50;
        const EACH: u32 = 400;
        let packets = (0..EACH).flat_map(|number| (0..FLOWS).map(move |flow| packet(flow, number))).collect();
        let pool = FramePool::on_heap(4096);
        let count = u64::from(EACH) * u64::from(FLOWS);
        let shares = SpreadPort::spread(Generator::new(packets, Some(count)), &pool, 3, Overflow::Wait);
        let threads = shares.into_iter().map(|mut share| {
            std::thread::spawn(move || {
                let (mut burst, mut next) = (Burst::default(), [0_u32; FLOWS as usize]);
                while !share.is_done() {
                    burst.clear();
                    share.receive(&mut burst).expect("no failure");
                    for frame in burst.iter() {
                        let (flow, number) = flow_and_number(frame.packet());
                        assert_eq!(number, next[usize::from(flow)], "flow {flow}");
                        next[usize::from(flow)] += 1;
                    }
                }
                assert_eq!(share.dropped(), 0);
                next
            })
        });
        let threads = threads.collect::<Vec<_>>();
        let counts: Vec<_> = threads.into_iter().map(|thread| thread.join().expect("in order")).collect();
        assert!(counts.iter().all(|next| next.iter().any(|&count| count > 0)), "each worker has flows");
        for flow in 0..usize::from(FLOWS) {
            let mut of_flow: Vec<_> = counts.iter().map(|next| next[flow]).collect();
            of_flow.sort_unstable();
            assert_eq!(of_flow, [0, 0, EACH], "flow {flow}");
        }
        assert_eq!(pool.free(), 4096, "no frame is lost");
    }

    #[test]
    fn a_slow_worker_does_not_delay_the_others() {
        let (port, wire) = MemoryPort::link(64);
        let pool = FramePool::on_heap(4096);
        let mut shares = SpreadPort::spread(port, &pool, 2, Overflow::Drop);
        let (mut burst, mut received) = (Burst::default(), 0);
        for number in 0..2000 {
            for flow in 0..20 {
                assert!(wire.push(&packet(flow, number), FrameMeta::default()));
            }
            burst.clear();
            received += shares[0].receive(&mut burst).expect("no failure") as u64;
        }
        shares[0].stop();
        while {
            burst.clear();
            shares[0].receive(&mut burst).expect("no failure")
        } > 0
        {
            received += burst.len() as u64;
        }
        let dropped = shares[0].dropped();
        let mut waiting = 0;
        while {
            burst.clear();
            shares[1].receive(&mut burst).expect("no failure")
        } > 0
        {
            waiting += burst.len() as u64;
        }
        assert_eq!(waiting, QUEUE as u64);
        assert!(dropped > 0);
        assert_eq!(received + dropped + waiting, 40_000);
        assert_eq!(shares[1].dropped(), 0, "drops are reported once");
    }

    #[test]
    fn a_worker_that_ends_leaves_nothing_in_the_port() {
        let (port, wire) = MemoryPort::link(256);
        let pool = FramePool::on_heap(4096);
        let mut shares = SpreadPort::spread(port, &pool, 2, Overflow::Drop);
        let of_second = (0..100).find(|&flow| queue_of(&packet(flow, 0), 2) == 1).expect("a flow");
        (0..256).for_each(|number| assert!(wire.push(&packet(of_second, number), FrameMeta::default())));
        shares[0].stop();
        let mut burst = Burst::default();
        assert_eq!(shares[0].receive(&mut burst).expect("no failure"), 0);
        assert_eq!(shares[1].queue.slots(), 256);
    }

    /// All that a share receives now.
    fn emptied(share: &mut SpreadPort) -> Vec<(u8, u32)> {
        let (mut burst, mut all) = (Burst::default(), Vec::new());
        while {
            burst.clear();
            share.receive(&mut burst).expect("no failure") > 0
        } {
            all.extend(burst.iter().map(|frame| flow_and_number(frame.packet())));
        }
        all
    }

    #[test]
    fn packets_of_a_worker_that_ended_go_to_another() {
        for overflow in [Overflow::Drop, Overflow::Wait] {
            let (port, wire) = MemoryPort::link(1024);
            let pool = FramePool::on_heap(4096);
            let mut shares = SpreadPort::spread(port, &pool, 3, overflow);
            let of_last = (0..100).find(|&flow| queue_of(&packet(flow, 0), 3) == 2).expect("a flow");
            let send = |numbers: std::ops::Range<u32>| {
                numbers.for_each(|number| assert!(wire.push(&packet(of_last, number), FrameMeta::default())));
            };
            send(0..100);
            assert_eq!(emptied(&mut shares[0]), []);
            // Some wait for it, some are in the port, and some come later.
            send(100..150);
            drop(shares.pop());
            send(150..200);
            assert_eq!(emptied(&mut shares[1]), [], "{overflow:?}");
            let received = emptied(&mut shares[0]);
            assert!(received.into_iter().eq((0..200).map(|number| (of_last, number))), "{overflow:?}");
            send(200..500);
            let mut burst = Burst::default();
            (0..8).for_each(|_| assert_eq!(shares[1].receive(&mut burst).expect("no failure"), 0));
            assert_eq!(shares[0].queue.slots(), 300);
            drop(shares.remove(0));
            send(500..800);
            let received = emptied(&mut shares[0]);
            assert!(received.into_iter().eq((200..800).map(|number| (of_last, number))), "{overflow:?}");
            assert_eq!(shares[0].dropped(), 0);
            drop((shares, wire));
            assert_eq!(pool.free(), 4096, "no frame is lost");
        }
    }

    #[test]
    fn the_last_worker_leaves_nothing_behind() {
        let (port, wire) = MemoryPort::link(256);
        let pool = FramePool::on_heap(4096);
        let mut shares = SpreadPort::spread(port, &pool, 2, Overflow::Drop);
        let of_first = (0..100).find(|&flow| queue_of(&packet(flow, 0), 2) == 0).expect("a flow");
        let send = |number| assert!(wire.push(&packet(of_first, number), FrameMeta::default()));
        send(0);
        assert_eq!(emptied(&mut shares[1]), [], "it waits for the first");
        assert!(!shares[0].leave(), "it has to receive it");
        assert_eq!(emptied(&mut shares[0]), [(of_first, 0)]);
        assert!(shares[0].leave());
        send(1);
        assert!(!shares[1].leave(), "nobody else would receive it");
        assert_eq!(emptied(&mut shares[1]), [(of_first, 1)]);
        // One that receives again has its flows again.
        send(2);
        assert_eq!(emptied(&mut shares[0]), [(of_first, 2)]);
        assert!(shares[0].leave() && shares[1].leave());
    }

    #[test]
    fn a_source_that_waits_loses_nothing() {
        let packets = (0..100).map(|flow| packet(flow, 0)).collect();
        let pool = FramePool::on_heap(4096);
        let mut shares = SpreadPort::spread(Generator::new(packets, Some(5000)), &pool, 2, Overflow::Wait);
        let (mut burst, mut received) = (Burst::default(), 0);
        while !shares.iter().all(SpreadPort::is_done) {
            // The second takes packets only when the first cannot go on.
            while {
                burst.clear();
                shares[0].receive(&mut burst).expect("no failure")
            } > 0
            {
                received += burst.len();
            }
            burst.clear();
            received += shares[1].receive(&mut burst).expect("no failure");
        }
        assert_eq!((received, shares[0].dropped()), (5000, 0));
    }

    #[test]
    fn frames_go_through_without_a_copy() {
        let pool = FramePool::on_heap(4096);
        let (port, wire) = MemoryPort::link_in(&pool, 64);
        let mut shares = SpreadPort::spread(port, &pool, 2, Overflow::Drop);
        (0..20).for_each(|flow| assert!(wire.push(&packet(flow, 0), FrameMeta::default())));
        assert!(wire.push(&[7; 9000], FrameMeta::default()), "longer than a frame");
        let (mut burst, mut sent) = (Burst::default(), 0);
        for share in &mut shares {
            burst.clear();
            let received = share.receive(&mut burst).expect("no failure");
            let all: Vec<u8> = (0..received as u8).collect();
            sent += share.send(Group::new(&mut burst, &all, 0)).expect("no failure");
        }
        assert_eq!((sent, shares[0].copied(), shares[1].copied()), (21, 1, 0), "only the long one is copied");
        let lengths: Vec<_> = std::iter::from_fn(|| wire.pop()).map(|(packet, _)| packet.len()).collect();
        assert_eq!(lengths.iter().filter(|&&len| len == 9000).count(), 1);
        drop((shares, burst, wire));
        assert_eq!(pool.free(), 4096, "no frame is lost");
    }
}
