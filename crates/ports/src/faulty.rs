//! Faults of a network, made on purpose: packets that are lost, repeated, changed, cut, or come late.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fastrand::Rng;
use paceline_frame::{Burst, FrameMeta, FramePool, FrameRef, MAX_BURST};

use crate::port::{Group, Port, PortError, SendError};
use crate::waiting::push_copy;

/// A late packet comes after up to this number of others.
const LATE: usize = 8;

/// Bursts that are received at once at most: all their packets may be lost.
const BURSTS: usize = 16;

/// The packets of a port that have faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Direction {
    /// Those that are received.
    #[default]
    In,
    /// Those that are sent.
    Out,
    /// All.
    Both,
}

/// Probabilities of faults, from 0 to 1, each of a packet on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
    /// The packets that have them.
    pub direction: Direction,
    /// The packet is lost, and counted as [`Port::dropped`].
    pub drop: f64,
    /// The packet comes twice.
    pub duplicate: f64,
    /// The packet comes after up to eight later ones, or when no more arrive.
    pub reorder: f64,
    /// A bit of the packet is inverted.
    pub corrupt: f64,
    /// The packet loses a part of its end; its length on the wire stays.
    pub truncate: f64,
    /// Start of the random numbers: the same packets have the same faults.
    pub seed: u64,
}

/// A packet that is to be delivered.
#[derive(Clone)]
struct Packet {
    bytes: Vec<u8>,
    meta: FrameMeta,
}

impl Packet {
    fn of(frame: &FrameRef<'_>) -> Self {
        Self { bytes: frame.packet().to_vec(), meta: *frame.meta() }
    }
}

/// A line in one direction: packets go in, and come out with faults.
struct Line {
    faults: Faults,
    rng: Rng,
    /// Packets whose turn it is.
    ready: VecDeque<Packet>,
    /// Late packets, each with the number of packets that come before it.
    late: Vec<(usize, Packet)>,
    dropped: u64,
}

impl Line {
    fn new(faults: Faults, seed: u64) -> Self {
        Self { faults, rng: Rng::with_seed(seed), ready: VecDeque::new(), late: Vec::new(), dropped: 0 }
    }

    fn is_empty(&self) -> bool {
        self.ready.is_empty() && self.late.is_empty()
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// Decides what becomes of a packet.
    fn accept(&mut self, mut packet: Packet) {
        if self.happens(self.faults.drop) {
            self.dropped += 1;
            return;
        }
        if self.happens(self.faults.corrupt) && !packet.bytes.is_empty() {
            let at = self.rng.usize(..packet.bytes.len());
            packet.bytes[at] ^= 1 << self.rng.u8(..8);
        }
        if self.happens(self.faults.truncate) && packet.bytes.len() > 1 {
            let len = self.rng.usize(1..packet.bytes.len());
            packet.bytes.truncate(len);
        }
        if self.happens(self.faults.duplicate) {
            self.deliver(packet.clone());
        }
        if self.happens(self.faults.reorder) {
            self.late.push((self.rng.usize(1..=LATE), packet));
        } else {
            self.deliver(packet);
        }
    }

    /// A packet's turn; late ones may follow it.
    fn deliver(&mut self, packet: Packet) {
        self.ready.push_back(packet);
        for (before, _) in &mut self.late {
            *before -= 1;
        }
        for (_, late) in self.late.extract_if(.., |(before, _)| *before == 0) {
            self.ready.push_back(late);
        }
    }

    /// Nothing else comes: late packets have their turn.
    fn release(&mut self) {
        self.ready.extend(self.late.drain(..).map(|(_, late)| late));
    }

    /// Adds packets whose turn it is to a burst, until it is full.
    fn fill(&mut self, burst: &mut Burst) {
        while !burst.is_full() {
            let Some(packet) = self.ready.pop_front() else { break };
            self.dropped += u64::from(push_copy(burst, &packet.bytes, packet.meta).is_err());
        }
    }
}

/// A port whose packets have [`Faults`]. Packets with faults are copied. Late ones that are sent follow when nothing is received, or when
/// the port ends.
pub struct Faulty<P: Port> {
    port: P,
    incoming: Option<Line>,
    outgoing: Option<Line>,
    burst: Burst,
}

impl<P: Port> std::fmt::Debug for Faulty<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faulty").finish_non_exhaustive()
    }
}

impl<P: Port> Faulty<P> {
    /// Adds faults to a port.
    #[must_use]
    pub fn new(port: P, faults: Faults) -> Self {
        // Each direction has random numbers of its own: the packets of one do not change what happens to those of the other.
        let line = |is_there: bool, seed| is_there.then(|| Line::new(faults, seed));
        Self {
            port,
            incoming: line(faults.direction != Direction::Out, faults.seed),
            outgoing: line(faults.direction != Direction::In, !faults.seed),
            burst: Burst::new(MAX_BURST),
        }
    }

    /// Receives until a packet's turn comes, or nothing has arrived: then that of late ones.
    fn refill(&mut self) -> Result<(), PortError> {
        let Some(line) = &mut self.incoming else { return Ok(()) };
        for _ in 0..BURSTS {
            self.burst.clear();
            let received = self.port.receive(&mut self.burst);
            self.burst.iter().for_each(|frame| line.accept(Packet::of(&frame)));
            received?;
            let is_idle = self.burst.is_empty();
            if is_idle {
                line.release();
            }
            if is_idle || !line.ready.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Receives packets that have the faults of their line.
    fn receive_faulty(&mut self, burst: &mut Burst) -> Result<(), PortError> {
        while !burst.is_full() {
            if self.incoming.as_ref().is_some_and(|line| line.ready.is_empty()) {
                self.refill()?;
            }
            let Some(line) = self.incoming.as_mut().filter(|line| !line.ready.is_empty()) else { break };
            line.fill(burst);
        }
        Ok(())
    }

    /// Sends the packets whose turn it is. Those without room, and those of a port that fails, are lost on the line.
    fn flush(&mut self) -> Result<(), PortError> {
        let Some(line) = &mut self.outgoing else { return Ok(()) };
        while !line.ready.is_empty() {
            self.burst.clear();
            line.fill(&mut self.burst);
            let all: Vec<u8> = (0..self.burst.len() as u8).collect();
            let sent = self.port.send(Group::new(&mut self.burst, &all, 0));
            let count = sent.as_ref().map_or_else(|failed| failed.sent, |&sent| sent);
            line.dropped += all.len().saturating_sub(count) as u64;
            sent.map_err(|failed| failed.error)?;
        }
        Ok(())
    }

    /// Sends late packets as well.
    fn finish(&mut self) -> Result<(), PortError> {
        self.outgoing.iter_mut().for_each(Line::release);
        self.flush()
    }

    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.incoming.iter().chain(&self.outgoing)
    }
}

impl<P: Port> Port for Faulty<P> {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        match self.incoming {
            Some(_) => self.receive_faulty(burst)?,
            None => drop(self.port.receive(burst)?),
        }
        let received = burst.len() - before;
        if received == 0 {
            self.finish()?;
        }
        Ok(received)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, SendError> {
        let Some(line) = &mut self.outgoing else { return self.port.send(group) };
        group.iter().for_each(|frame| line.accept(Packet::of(&frame)));
        // The line took all of them; what it loses then is its own.
        self.flush().map_err(|error| SendError { sent: group.len(), error })?;
        Ok(group.len())
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        self.port.pool()
    }

    fn copied(&self) -> u64 {
        self.port.copied()
    }

    /// None while packets are held back.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        if self.lines().all(Line::is_empty) { self.port.descriptor() } else { None }
    }

    fn is_done(&self) -> bool {
        self.port.is_done() && self.incoming.as_ref().is_none_or(Line::is_empty)
    }

    fn stop(&mut self) {
        self.port.stop();
    }

    fn dropped(&mut self) -> u64 {
        self.lines().map(|line| line.dropped).sum::<u64>() + self.port.dropped()
    }
}

impl<P: Port> Drop for Faulty<P> {
    fn drop(&mut self) {
        // Nobody is left to be told of a failure.
        let _ = self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Generator, MemoryPort};

    const COUNT: u64 = 20_000;

    /// Packets of a generator, numbered, with faults.
    fn received(faults: Faults) -> (Vec<Vec<u8>>, u64) {
        let packets = (0..COUNT as u32).map(|number| [&number.to_be_bytes()[..], &[0; 56]].concat());
        let mut port = Faulty::new(Generator::new(packets.collect(), Some(COUNT)), faults);
        let (mut burst, mut received) = (Burst::new(7), Vec::new());
        while !port.is_done() {
            burst.clear();
            port.receive(&mut burst).expect("no failure");
            received.extend(burst.iter().map(|frame| frame.packet().to_vec()));
        }
        (received, port.dropped())
    }

    /// Packets, numbered, that are sent one by one with faults.
    fn sent(faults: Faults) -> (Vec<Vec<u8>>, u64) {
        let (port, peer) = MemoryPort::link(2 * COUNT as usize);
        let mut port = Faulty::new(port, Faults { direction: Direction::Out, ..faults });
        for number in 0..COUNT as u32 {
            let mut burst = Burst::new(1);
            let _ = burst.push(&[&number.to_be_bytes()[..], &[0; 56]].concat(), FrameMeta::default());
            assert_eq!(port.send(Group::new(&mut burst, &[0], 0)).expect("no failure"), 1);
        }
        let dropped = port.dropped();
        drop(port);
        (std::iter::from_fn(|| peer.pop()).map(|(packet, _)| packet).collect(), dropped)
    }

    /// The packets of either direction, and the number of those that are lost.
    fn each_way(faults: Faults) -> [(Vec<Vec<u8>>, u64); 2] {
        [received(faults), sent(faults)]
    }

    fn number(packet: &[u8]) -> u64 {
        u32::from_be_bytes(packet[..4].try_into().expect("four bytes")).into()
    }

    fn is_near(value: u64, expected: u64) -> bool {
        value.abs_diff(expected) < expected / 10
    }

    #[test]
    fn without_faults_nothing_changes() {
        for (packets, dropped) in each_way(Faults::default()) {
            assert_eq!(dropped, 0);
            assert!(packets.iter().map(|packet| number(packet)).eq(0..COUNT));
        }
    }

    #[test]
    fn packets_of_the_other_direction_have_none() {
        let faults = Faults { drop: 1.0, ..Faults::default() };
        let (port, peer) = MemoryPort::link(4);
        let (mut port, mut burst) = (Faulty::new(port, faults), Burst::new(1));
        let _ = burst.push(&[7; 60], FrameMeta::default());
        assert_eq!(port.send(Group::new(&mut burst, &[0], 0)).expect("no failure"), 1);
        assert_eq!(peer.pop().map(|(packet, _)| packet), Some(vec![7; 60]));
        assert!(peer.push(&[8; 60], FrameMeta::default()));
        burst.clear();
        assert_eq!((port.receive(&mut burst).expect("no failure"), port.dropped()), (0, 1));
    }

    #[test]
    fn lost_and_repeated_packets_are_as_many_as_asked_for() {
        for (packets, dropped) in
            each_way(Faults { drop: 0.1, duplicate: 0.05, seed: 1, ..Faults::default() })
        {
            assert!(is_near(dropped, COUNT / 10), "{dropped}");
            let mut numbers: Vec<_> = packets.iter().map(|packet| number(packet)).collect();
            assert!(numbers.is_sorted());
            let all = numbers.len() as u64;
            numbers.dedup();
            assert_eq!(numbers.len() as u64, COUNT - dropped);
            assert!(is_near(all - numbers.len() as u64, (COUNT - dropped) / 20), "{all}");
        }
    }

    #[test]
    fn changed_packets_differ_in_a_bit_and_cut_ones_are_shorter() {
        for (packets, _) in each_way(Faults { corrupt: 0.1, truncate: 0.1, seed: 2, ..Faults::default() }) {
            let (mut changed, mut cut) = (0, 0);
            for (packet, number) in packets.iter().zip(0_u32..) {
                let sent = [&number.to_be_bytes()[..], &[0; 56]].concat();
                cut += u64::from(packet.len() < sent.len());
                let bits: u32 = packet.iter().zip(&sent).map(|(one, other)| (one ^ other).count_ones()).sum();
                assert!(bits <= 1 && !packet.is_empty());
                changed += u64::from(bits);
            }
            // Some of the inverted bits are cut off.
            assert!(is_near(cut, COUNT / 10) && is_near(changed, COUNT / 10 * 19 / 20), "{cut} {changed}");
        }
    }

    #[test]
    fn late_packets_come_after_a_few_others_and_none_is_lost() {
        for (packets, _) in each_way(Faults { reorder: 0.1, seed: 3, ..Faults::default() }) {
            let mut numbers: Vec<_> = packets.iter().map(|packet| number(packet)).collect();
            let late = numbers.iter().zip(0..).filter(|&(&number, place)| number < place).count() as u64;
            assert!(is_near(late, COUNT / 10), "{late}");
            assert!(
                numbers.iter().zip(0..).all(|(&number, place)| number.abs_diff(place) <= 4 * LATE as u64)
            );
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..COUNT));
        }
    }
}
