//! Packets over virtual wires.

use std::collections::HashSet;
use std::thread;
use std::time::{Duration, Instant};

use paceline::device::Interface;
use paceline_testkit::wire::Wire;

use super::live::PATIENCE;

/// Addresses of the packets: those for benchmarks (RFC 2544), which no host here has.
const ADDRESSES: [u8; 8] = [198, 18, 0, 1, 198, 18, 0, 2];
/// Number of flows.
const FLOWS: u32 = 64;
/// Packets that a socket's buffer holds.
const AT_ONCE: usize = 32;

/// An interface of this thread's namespace.
pub(crate) fn wire(interface: &str) -> Wire {
    Wire::open(number_of(interface)).expect("a packet socket")
}

/// Number of an interface.
pub(crate) fn number_of(interface: &str) -> u32 {
    Interface::by_name(interface).expect("it is there").index()
}

/// A UDP packet with a number in it, of one of many flows. Its first bytes are what `verdicts.o` and `places.o` read: a verdict, and
/// a key.
pub(crate) fn packet([verdict, key]: [u8; 2], number: u32, len: usize) -> Vec<u8> {
    let mut packet = vec![0; len];
    packet[..6].copy_from_slice(&[verdict, key, 0, 0, 0, 1]);
    packet[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 2]);
    packet[12..16].copy_from_slice(&[8, 0, 0x45, 0]);
    packet[16..18].copy_from_slice(&(len as u16 - 14).to_be_bytes());
    packet[22..24].copy_from_slice(&[64, 17]);
    packet[26..34].copy_from_slice(&ADDRESSES);
    packet[34..36].copy_from_slice(&(1000 + (number % FLOWS) as u16).to_be_bytes());
    packet[37] = 9;
    packet[38..40].copy_from_slice(&(len as u16 - 34).to_be_bytes());
    packet[42..46].copy_from_slice(&number.to_be_bytes());
    packet
}

/// The number of a packet, if it is one of [`packet`].
pub(crate) fn number(packet: &[u8]) -> Option<u32> {
    (packet.get(26..34) == Some(&ADDRESSES)).then_some(())?;
    packet.get(42..46)?.try_into().ok().map(u32::from_be_bytes)
}

/// Sends packets on one wire and returns those of their numbers that arrive at another one, where as many must come.
pub(crate) fn carried(from: &Wire, to: &Wire, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let numbers: HashSet<_> = packets.iter().filter_map(|packet| number(packet)).collect();
    let is_ours = |packet: &[u8]| number(packet).is_some_and(|number| numbers.contains(&number));
    let mut arrived = Vec::new();
    for some in packets.chunks(AT_ONCE) {
        some.iter().for_each(|packet| from.send(packet).expect("the wire takes a packet"));
        arrived.extend(arrivals(to, some.len(), PATIENCE, is_ours));
    }
    arrived
}

/// Packets of a kind that arrive at a wire: at most a number, and until a pause.
pub(crate) fn arrivals(
    wire: &Wire,
    most: usize,
    pause: Duration,
    is_ours: impl Fn(&[u8]) -> bool,
) -> Vec<Vec<u8>> {
    let (mut arrived, mut last) = (Vec::new(), Instant::now());
    while arrived.len() < most && last.elapsed() < pause {
        match wire.receive() {
            Some(packet) if is_ours(&packet) => {
                arrived.push(packet);
                last = Instant::now();
            }
            Some(_) => {}
            None => thread::sleep(Duration::from_micros(100)),
        }
    }
    arrived
}
