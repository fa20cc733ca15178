//! Ports in memory: for tests, benchmarks, and communication between threads of a process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use paceline_frame::{Burst, FrameMeta};

use crate::port::{Group, Port, PortError};

/// A ring buffer of packets with fixed capacity. Packet buffers are reused.
#[derive(Debug)]
struct Ring {
    slots: Box<[(Vec<u8>, FrameMeta)]>,
    first: usize,
    len: usize,
}

impl Ring {
    fn new(capacity: usize) -> Arc<Mutex<Self>> {
        let slots = vec![(Vec::new(), FrameMeta::default()); capacity.max(1)].into();
        Arc::new(Mutex::new(Self { slots, first: 0, len: 0 }))
    }

    fn push(&mut self, packet: &[u8], meta: FrameMeta) -> bool {
        if self.len == self.slots.len() {
            return false;
        }
        let place = (self.first + self.len) % self.slots.len();
        let (bytes, slot_meta) = &mut self.slots[place];
        bytes.clear();
        bytes.extend_from_slice(packet);
        *slot_meta = meta;
        self.len += 1;
        true
    }

    /// The oldest packet.
    fn first(&self) -> Option<&(Vec<u8>, FrameMeta)> {
        (self.len > 0).then(|| &self.slots[self.first])
    }

    fn advance(&mut self) {
        self.first = (self.first + 1) % self.slots.len();
        self.len -= 1;
    }
}

/// One end of a link in memory. Clones are handles to the same end: queues of one port.
#[derive(Clone, Debug)]
pub struct MemoryPort {
    incoming: Arc<Mutex<Ring>>,
    outgoing: Arc<Mutex<Ring>>,
}

impl MemoryPort {
    /// A link with two ends: packets sent to one are received from the other. At most `capacity` packets wait in each direction.
    #[must_use]
    pub fn link(capacity: usize) -> (Self, Self) {
        let (left, right) = (Ring::new(capacity), Ring::new(capacity));
        let other = Self { incoming: Arc::clone(&right), outgoing: Arc::clone(&left) };
        (Self { incoming: left, outgoing: right }, other)
    }

    /// An end that receives the packets it sends.
    #[must_use]
    pub fn loopback(capacity: usize) -> Self {
        let ring = Ring::new(capacity);
        Self { incoming: Arc::clone(&ring), outgoing: ring }
    }

    /// Sends one packet; returns false if there is no room for it.
    pub fn push(&self, packet: &[u8], meta: FrameMeta) -> bool {
        lock(&self.outgoing).push(packet, meta)
    }

    /// Receives the oldest packet.
    #[must_use]
    pub fn pop(&self) -> Option<(Vec<u8>, FrameMeta)> {
        let mut ring = lock(&self.incoming);
        let packet = ring.first().cloned();
        if packet.is_some() {
            ring.advance();
        }
        packet
    }
}

impl Port for MemoryPort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let (mut ring, before) = (lock(&self.incoming), burst.len());
        while !burst.is_full()
            && let Some((packet, meta)) = ring.first()
        {
            // Packets that are too long for a frame are dropped, as a network card would do.
            let _ = burst.push(packet, *meta);
            ring.advance();
        }
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, PortError> {
        let mut ring = lock(&self.outgoing);
        Ok(group.iter().take_while(|frame| ring.push(frame.packet(), *frame.meta())).count())
    }
}

/// A source of packets in memory, which are repeated, and a sink for all packets sent to it.
#[derive(Clone, Debug)]
pub struct Generator {
    packets: Arc<[Vec<u8>]>,
    given: u64,
    most: u64,
}

impl Generator {
    /// Repeats these packets in order, `count` in total, or forever for `None`.
    #[must_use]
    pub fn new(packets: Vec<Vec<u8>>, count: Option<u64>) -> Self {
        let most = if packets.is_empty() { 0 } else { count.unwrap_or(u64::MAX) };
        Self { packets: packets.into(), given: 0, most }
    }
}

impl Port for Generator {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        while self.given < self.most && !burst.is_full() {
            let packet = &self.packets[(self.given % self.packets.len() as u64) as usize];
            let meta = FrameMeta { original_len: packet.len() as u32, ..FrameMeta::default() };
            let _ = burst.push(packet, meta);
            self.given += 1;
        }
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, PortError> {
        Ok(group.len())
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
        let burst = burst_of(&[&[1], &[2], &[3], &[4], &[5]]);
        let group = [4, 0, 0, 2, 1];
        assert_eq!(left.send(Group::new(&burst, &group)).unwrap(), 3, "there is room for three");
        assert_eq!(received(&mut right), [[5], [1], [1]]);
        assert!(received(&mut right).is_empty() && received(&mut left).is_empty());
        assert!(right.push(&[9], FrameMeta::default()));
        assert_eq!(left.pop().map(|(packet, _)| packet), Some(vec![9]));
        assert_eq!(left.pop(), None);
    }

    #[test]
    fn a_burst_takes_what_it_has_room_for() {
        let mut port = MemoryPort::loopback(100);
        (0..70).for_each(|number| assert!(port.push(&[number], FrameMeta::default())));
        assert_eq!([received(&mut port).len(), received(&mut port).len()], [64, 6]);
        let mut generator = Generator::new(vec![vec![1], vec![2]], Some(67));
        assert_eq!(received(&mut generator)[63], [2]);
        assert_eq!(received(&mut generator), [[1], [2], [1]]);
        assert!(received(&mut Generator::new(Vec::new(), None)).is_empty());
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
        let burst = burst_of(&[&[1], &[2]]);
        assert_eq!(gathered.send(Group::new(&burst, &[1, 0])).unwrap(), 2);
        assert_eq!(received(&mut other), [[2], [1]]);
    }
}
