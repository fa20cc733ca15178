//! Ports in memory: for tests, benchmarks, and communication between threads of a process.
//!
//! Ports store the parts of a packet's state one by one: a structure that is stored in halves and copied as a whole right after is
//! not forwarded from the store buffer, which cost 7 ns a packet.

use std::fmt;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline_frame::{Burst, FrameMeta, FramePool, MAX_BURST, MAX_PACKET, PoolCache};

use crate::port::{Group, Port, PortError, SendError};
use crate::waiting::Waiting;

/// A place of a queue. Its parts are stored one by one: a place that is built first and then moved is loaded as a whole right after
/// parts of it were stored, without store forwarding.
#[derive(Default)]
struct Place {
    waiting: Waiting,
    meta: FrameMeta,
}

/// A queue of packets with fixed capacity.
struct Ring {
    places: Box<[Place]>,
    /// Index of the oldest packet.
    first: usize,
    len: usize,
    cache: PoolCache,
    copied: u64,
    /// Packets that did not fit into a burst.
    dropped: u64,
}

impl Ring {
    fn new(capacity: usize, pool: &Arc<FramePool>) -> Arc<Mutex<Self>> {
        let places = (0..capacity.max(1)).map(|_| Place::default()).collect();
        let cache = PoolCache::new(pool);
        Arc::new(Mutex::new(Self { places, first: 0, len: 0, cache, copied: 0, dropped: 0 }))
    }

    fn is_full(&self) -> bool {
        self.len == self.places.len()
    }

    /// The index that follows another by a number of places, at most all.
    fn index(&self, after: usize) -> usize {
        let index = self.first + after;
        if index < self.places.len() { index } else { index - self.places.len() }
    }

    /// The next free place of a ring that is not full.
    fn next(&mut self) -> &mut Place {
        let index = self.index(self.len);
        self.len += 1;
        &mut self.places[index]
    }

    /// Removes the oldest packet of a ring that is not empty, and returns its place.
    fn first(&mut self) -> &mut Place {
        let index = self.first;
        (self.first, self.len) = (self.index(1), self.len - 1);
        &mut self.places[index]
    }

    /// Adds a copy of a packet.
    fn push(&mut self, packet: &[u8], meta: &FrameMeta) -> bool {
        if self.is_full() {
            return false;
        }
        let waiting = Waiting::copy(packet, &mut self.cache);
        let place = self.next();
        (place.waiting, place.meta) = (waiting, *meta);
        true
    }

    /// Adds a packet of a group, without a copy if its frame is of the pool.
    fn send(&mut self, group: &mut Group<'_>, position: usize) -> bool {
        if self.is_full() {
            return false;
        }
        let Some(taken) = group.take(position, self.cache.pool()) else {
            self.copied += 1;
            let frame = group.packet(position);
            return self.push(frame.packet(), frame.meta());
        };
        let place = self.next();
        place.waiting = Waiting::taken(taken);
        place.meta = *group.packet(position).meta();
        true
    }

    /// Moves the oldest packet into a burst that is not full; false if there is none.
    fn deliver(&mut self, burst: &mut Burst) -> bool {
        if self.len == 0 {
            return false;
        }
        let place = self.first();
        let (waiting, meta) = (mem::take(&mut place.waiting), place.meta);
        let is_delivered = waiting.deliver(meta, burst, &mut self.cache);
        self.dropped += u64::from(!is_delivered);
        true
    }

    fn pop(&mut self) -> Option<(Vec<u8>, FrameMeta)> {
        if self.len == 0 {
            return None;
        }
        let place = self.first();
        let (waiting, meta) = (mem::take(&mut place.waiting), place.meta);
        Some((waiting.into_bytes(&mut self.cache), meta))
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

/// One end of a link in memory. Clones are handles to the same end: queues of one port.
#[derive(Clone)]
pub struct MemoryPort {
    incoming: Arc<Mutex<Ring>>,
    outgoing: Arc<Mutex<Ring>>,
    pool: Arc<FramePool>,
}

impl MemoryPort {
    /// A link with two ends: packets sent to one are received from the other. At most `capacity` packets wait in each direction.
    #[must_use]
    pub fn link(capacity: usize) -> (Self, Self) {
        Self::link_in(&pool_for(2 * capacity), capacity)
    }

    /// A link with frames of a pool: packets go without a copy between ports of one pool.
    #[must_use]
    pub fn link_in(pool: &Arc<FramePool>, capacity: usize) -> (Self, Self) {
        let (left, right) = (Ring::new(capacity, pool), Ring::new(capacity, pool));
        let pool = Arc::clone(pool);
        let other =
            Self { incoming: Arc::clone(&right), outgoing: Arc::clone(&left), pool: Arc::clone(&pool) };
        (Self { incoming: left, outgoing: right, pool }, other)
    }

    /// An end that receives the packets it sends.
    #[must_use]
    pub fn loopback(capacity: usize) -> Self {
        Self::loopback_in(&pool_for(capacity), capacity)
    }

    /// An end that receives the packets it sends, with frames of a pool.
    #[must_use]
    pub fn loopback_in(pool: &Arc<FramePool>, capacity: usize) -> Self {
        let ring = Ring::new(capacity, pool);
        Self { incoming: Arc::clone(&ring), outgoing: ring, pool: Arc::clone(pool) }
    }

    /// Sends one packet; returns false if there is no room for it, or it is longer than [`MAX_PACKET`].
    pub fn push(&self, packet: &[u8], meta: FrameMeta) -> bool {
        packet.len() <= MAX_PACKET && lock(&self.outgoing).push(packet, &meta)
    }

    /// Receives the oldest packet.
    #[must_use]
    pub fn pop(&self) -> Option<(Vec<u8>, FrameMeta)> {
        lock(&self.incoming).pop()
    }
}

/// A pool for this many waiting packets, and some in bursts and caches.
fn pool_for(packets: usize) -> Arc<FramePool> {
    FramePool::on_heap(u32::try_from(packets.saturating_add(4 * MAX_BURST)).unwrap_or(1 << 20))
}

impl Port for MemoryPort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let (mut ring, before) = (lock(&self.incoming), burst.len());
        while !burst.is_full() && ring.deliver(burst) {}
        Ok(burst.len() - before)
    }

    fn send(&mut self, mut group: Group<'_>) -> Result<usize, SendError> {
        let mut ring = lock(&self.outgoing);
        Ok((0..group.len()).take_while(|&position| ring.send(&mut group, position)).count())
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        Some(&self.pool)
    }

    fn copied(&self) -> u64 {
        lock(&self.outgoing).copied
    }

    fn dropped(&mut self) -> u64 {
        lock(&self.incoming).dropped
    }
}

impl fmt::Debug for MemoryPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryPort").field("pool", &self.pool).finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gather::{Gathered, PacketPort};
    use paceline_frame::FrameRef;

    fn burst_of(packets: &[&[u8]]) -> Burst {
        let mut burst = Burst::default();
        packets.iter().for_each(|packet| burst.push(packet, FrameMeta::default()).unwrap());
        burst
    }

    fn received(port: &mut impl Port) -> Vec<Vec<u8>> {
        let mut burst = Burst::default();
        port.receive(&mut burst).unwrap();
        burst.iter().map(|frame| frame.packet().to_vec()).collect()
    }

    #[test]
    fn groups_go_over_a_link_in_order() {
        let (mut left, mut right) = MemoryPort::link(3);
        let mut burst = burst_of(&[&[1], &[2], &[3], &[4], &[5]]);
        let group = [4, 0, 0, 2, 1];
        assert_eq!(left.send(Group::new(&mut burst, &group, 1)).unwrap(), 3, "there is room for three");
        assert_eq!(received(&mut right), [[5], [1], [1]]);
        assert!(received(&mut right).is_empty() && received(&mut left).is_empty());
        assert!(right.push(&[9], FrameMeta::default()));
        assert_eq!(left.pop().map(|(packet, _)| packet), Some(vec![9]));
        assert_eq!(left.pop(), None);
    }

    #[test]
    fn packets_between_ports_of_a_pool_are_not_copied() {
        let pool = FramePool::on_heap(300);
        let (mut left, wire) = MemoryPort::link_in(&pool, 10);
        let (mut right, end) = MemoryPort::link_in(&pool, 10);
        (1..4).for_each(|byte| assert!(wire.push(&[byte; 60], FrameMeta::default())));
        assert!(wire.push(&[4; 9000], FrameMeta::default()), "longer than a frame");
        let mut burst = Burst::default();
        assert_eq!(left.receive(&mut burst).unwrap(), 4);
        let addresses: Vec<_> = burst.iter().map(|frame| frame.hard_start()).collect();
        // The third is needed for another port, so its frame stays.
        assert_eq!(right.send(Group::new(&mut burst, &[2, 1, 2, 0, 3], 1 << 2)).unwrap(), 5);
        assert_eq!((right.copied(), burst.frame(2).packet()[0]), (3, 3));
        burst.clear();
        let mut other = end.clone();
        assert_eq!(other.receive(&mut burst).unwrap(), 5);
        let received: Vec<_> =
            burst.iter().map(|frame| (frame.packet()[0], frame.len(), frame.hard_start())).collect();
        let lengths: Vec<_> = received.iter().map(|&(byte, len, _)| (byte, len)).collect();
        assert_eq!(lengths, [(3, 60), (2, 60), (3, 60), (1, 60), (4, 9000)]);
        assert_eq!((received[1].2, received[3].2), (addresses[1], addresses[0]));
        drop((burst, left, right, wire, end, other));
        assert_eq!(pool.free(), 300, "no frame is lost");
    }

    #[test]
    fn a_link_holds_its_capacity_when_the_pool_is_empty() {
        let pool = FramePool::on_heap(2);
        let (mut left, right) = MemoryPort::link_in(&pool, 5);
        (0..5).for_each(|byte| assert!(right.push(&[byte], FrameMeta::default())));
        assert!(!right.push(&[5], FrameMeta::default()));
        assert_eq!(received(&mut left), [[0], [1], [2], [3], [4]]);
    }

    /// One packet at a time from a link.
    struct Slow(MemoryPort);

    impl PacketPort for Slow {
        fn receive_packet(&mut self, burst: &mut Burst) -> Result<bool, PortError> {
            let packet = self.0.pop();
            Ok(packet.is_some_and(|(packet, meta)| burst.push(&packet, meta).is_ok()))
        }

        fn send_packet(&mut self, packet: FrameRef<'_>) -> Result<bool, PortError> {
            Ok(self.0.push(packet.packet(), *packet.meta()))
        }
    }

    #[test]
    fn single_packets_are_gathered() {
        let (slow, mut other) = MemoryPort::link(100);
        let mut gathered = Gathered(Slow(slow));
        (0..70).for_each(|number| assert!(other.push(&[number], FrameMeta::default())));
        assert_eq!([received(&mut gathered).len(), received(&mut gathered).len()], [64, 6]);
        let mut burst = burst_of(&[&[1], &[2]]);
        assert_eq!(gathered.send(Group::new(&mut burst, &[1, 0], 0)).unwrap(), 2);
        assert_eq!(received(&mut other), [[2], [1]]);
    }

    #[test]
    fn a_burst_takes_what_it_has_room_for() {
        let mut port = MemoryPort::loopback(100);
        (0..70).for_each(|number| assert!(port.push(&[number], FrameMeta::default())));
        assert_eq!([received(&mut port).len(), received(&mut port).len()], [64, 6]);
    }
}
