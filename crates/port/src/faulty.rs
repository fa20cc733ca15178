//! Faults of a network, made on purpose: packets that are lost, repeated, changed, cut, or come late.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use fastrand::Rng;
use paceline_frame::{Burst, FrameMeta, FramePool, MAX_BURST};

use crate::port::{Group, Port, PortError};

/// A late packet comes after up to this number of others.
const LATE: usize = 8;

/// Bursts that are received at once at most: all their packets may be lost.
const BURSTS: usize = 16;

/// Probabilities of faults, from 0 to 1, each of a packet on its own.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Faults {
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

/// Delivers the packets of a port with [`Faults`]. Packets are copied. Those that are sent have no faults.
pub struct Faulty<P> {
    port: P,
    faults: Faults,
    rng: Rng,
    incoming: Burst,
    /// Packets whose turn it is.
    ready: VecDeque<Packet>,
    /// Late packets, each with the number of packets that come before it.
    late: Vec<(usize, Packet)>,
    dropped: u64,
}

impl<P: Port> Faulty<P> {
    /// Adds faults to a port.
    #[must_use]
    pub fn new(port: P, faults: Faults) -> Self {
        Self {
            port,
            faults,
            rng: Rng::with_seed(faults.seed),
            incoming: Burst::new(MAX_BURST),
            ready: VecDeque::new(),
            late: Vec::new(),
            dropped: 0,
        }
    }

    fn happens(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.rng.f64() < probability
    }

    /// Receives until a packet's turn comes, or nothing has arrived: then that of late ones.
    fn refill(&mut self) -> Result<(), PortError> {
        for _ in 0..BURSTS {
            self.incoming.clear();
            let received = self.port.receive(&mut self.incoming);
            let packets: Vec<_> = self
                .incoming
                .iter()
                .map(|frame| Packet { bytes: frame.packet().to_vec(), meta: *frame.meta() })
                .collect();
            let is_idle = packets.is_empty();
            packets.into_iter().for_each(|packet| self.accept(packet));
            received?;
            if is_idle {
                self.ready.extend(self.late.drain(..).map(|(_, late)| late));
            }
            if is_idle || !self.ready.is_empty() {
                break;
            }
        }
        Ok(())
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
}

impl<P: Port> Port for Faulty<P> {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let before = burst.len();
        while !burst.is_full() {
            if self.ready.is_empty() {
                self.refill()?;
            }
            let Some(packet) = self.ready.pop_front() else { break };
            let _ = burst.push(&packet.bytes, packet.meta);
        }
        Ok(burst.len() - before)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, PortError> {
        self.port.send(group)
    }

    fn pool(&self) -> Option<&Arc<FramePool>> {
        self.port.pool()
    }

    fn copied(&self) -> u64 {
        self.port.copied()
    }

    /// None while packets are held back.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        if self.ready.is_empty() && self.late.is_empty() { self.port.descriptor() } else { None }
    }

    fn is_done(&self) -> bool {
        self.port.is_done() && self.ready.is_empty() && self.late.is_empty()
    }

    fn stop(&mut self) {
        self.port.stop();
    }

    fn dropped(&mut self) -> u64 {
        self.dropped + self.port.dropped()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Generator;

    const COUNT: u64 = 100_000;

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

    fn number(packet: &[u8]) -> u64 {
        u32::from_be_bytes(packet[..4].try_into().expect("four bytes")).into()
    }

    fn is_near(value: u64, expected: u64) -> bool {
        value.abs_diff(expected) < expected / 10
    }

    #[test]
    fn without_faults_nothing_changes() {
        let (received, dropped) = received(Faults::default());
        assert_eq!(dropped, 0);
        assert!(received.iter().map(|packet| number(packet)).eq(0..COUNT));
    }

    #[test]
    fn lost_and_repeated_packets_are_as_many_as_asked_for() {
        let (received, dropped) =
            received(Faults { drop: 0.1, duplicate: 0.05, seed: 1, ..Faults::default() });
        assert!(is_near(dropped, COUNT / 10), "{dropped}");
        let mut numbers: Vec<_> = received.iter().map(|packet| number(packet)).collect();
        assert!(numbers.is_sorted());
        let all = numbers.len() as u64;
        numbers.dedup();
        assert_eq!(numbers.len() as u64, COUNT - dropped);
        assert!(is_near(all - numbers.len() as u64, (COUNT - dropped) / 20), "{all}");
    }

    #[test]
    fn changed_packets_differ_in_a_bit_and_cut_ones_are_shorter() {
        let (received, _) = received(Faults { corrupt: 0.1, truncate: 0.1, seed: 2, ..Faults::default() });
        let (mut changed, mut cut) = (0, 0);
        for (packet, number) in received.iter().zip(0_u32..) {
            let sent = [&number.to_be_bytes()[..], &[0; 56]].concat();
            cut += u64::from(packet.len() < sent.len());
            let bits: u32 = packet.iter().zip(&sent).map(|(one, other)| (one ^ other).count_ones()).sum();
            assert!(bits <= 1 && !packet.is_empty());
            changed += u64::from(bits);
        }
        // Some of the inverted bits are cut off.
        assert!(is_near(cut, COUNT / 10) && is_near(changed, COUNT / 10 * 19 / 20), "{cut} {changed}");
    }

    #[test]
    fn late_packets_come_after_a_few_others_and_none_is_lost() {
        let (received, _) = received(Faults { reorder: 0.1, seed: 3, ..Faults::default() });
        let mut numbers: Vec<_> = received.iter().map(|packet| number(packet)).collect();
        let late = numbers.iter().zip(0..).filter(|&(&number, place)| number < place).count() as u64;
        assert!(is_near(late, COUNT / 10), "{late}");
        assert!(numbers.iter().zip(0..).all(|(&number, place)| number.abs_diff(place) <= 4 * LATE as u64));
        numbers.sort_unstable();
        assert!(numbers.into_iter().eq(0..COUNT));
    }
}
