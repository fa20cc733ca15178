//! The packets of the measurements.

use std::error::Error;

use paceline::{Burst, FrameMeta, FrameMut, MAX_BURST};

/// Number of mixed packets.
const MIXED: usize = 10_000;

/// Size in bytes of the packet's length before each packet, as metadata, for an engine that has no other place for it.
pub(crate) const LENGTH: usize = size_of::<u64>();

/// Packets in bursts, in the order of the runs.
pub(crate) struct Packets {
    /// `hit`, `few` or `miss`.
    pub(crate) name: &'static str,
    bursts: Vec<Burst>,
}

impl Packets {
    /// One packet that passes the filters, repeated.
    pub(crate) fn hit() -> Result<Self, Box<dyn Error>> {
        Self::new("hit", std::iter::once(tcp(&mut fastrand::Rng::with_seed(1), 40_000, 22, 32)))
    }

    /// As many mixed packets as a burst has, which stay in the cache. Unlike a single repeated packet, they do not serialize
    /// on one counter.
    pub(crate) fn few() -> Result<Self, Box<dyn Error>> {
        let mut rng = fastrand::Rng::with_seed(2);
        let packets: Vec<_> = (0..MAX_BURST).map(|_| mixed(&mut rng)).collect();
        Self::new("few", packets.into_iter())
    }

    /// Mixed packets: half TCP, some of it to port 22; UDP, IPv6, ICMP, ARP; options, fragments. None is truncated, because
    /// contenders without bounds checks would read beyond it.
    pub(crate) fn miss() -> Result<Self, Box<dyn Error>> {
        let mut rng = fastrand::Rng::with_seed(2);
        Self::new("miss", (0..MIXED).map(|_| mixed(&mut rng)))
    }

    fn new(name: &'static str, packets: impl Iterator<Item = Vec<u8>>) -> Result<Self, Box<dyn Error>> {
        let mut bursts: Vec<Burst> = Vec::new();
        for packet in packets {
            if bursts.last().is_none_or(Burst::is_full) {
                bursts.push(Burst::new(MAX_BURST));
            }
            if let Some(burst) = bursts.last_mut() {
                let index = burst.len();
                burst.push(&packet, FrameMeta::default())?;
                let length: [u8; LENGTH] = (packet.len() as u64).to_le_bytes();
                burst.frame_mut(index).set_metadata(&length)?;
            }
        }
        Ok(Self { name, bursts })
    }

    /// The bursts, each with its buffers in random order.
    pub(crate) fn into_shuffled(mut self) -> Vec<Burst> {
        let mut rng = fastrand::Rng::with_seed(3);
        for burst in &mut self.bursts {
            for index in (1..burst.len()).rev() {
                burst.swap(index, rng.usize(..=index));
            }
        }
        self.bursts
    }

    /// The frames in random order.
    pub(crate) fn frames(&mut self) -> Vec<FrameMut<'_>> {
        let mut frames: Vec<_> = self.bursts.iter_mut().flat_map(Burst::iter_mut).collect();
        fastrand::Rng::with_seed(3).shuffle(&mut frames);
        frames
    }
}

fn mixed(rng: &mut fastrand::Rng) -> Vec<u8> {
    let port = |rng: &mut fastrand::Rng| if rng.u8(..4) == 0 { 22 } else { rng.u16(1..) };
    let (source, destination, payload) = (port(rng), port(rng), rng.usize(0..200));
    match rng.u8(..21) {
        0..10 => tcp(rng, source, destination, payload),
        10..14 => ipv4(17, &transport(source, destination, 4 + payload)),
        14..17 => ipv6(if rng.bool() { 6 } else { 17 }, &transport(source, destination, 16 + payload)),
        17 => ipv4(1, &vec![8; 8 + payload]),
        18 => ethernet(0x0806, &[1; 46]),
        19 => options(&tcp(rng, source, destination, payload), rng.u8(1..=10)),
        _ => {
            let mut packet = tcp(rng, source, destination, payload);
            // A fragment other than the first.
            packet[20] = 0x20;
            packet[21] = 0x10;
            packet
        }
    }
}

/// The packet with this number of IPv4 option words without effect.
fn options(packet: &[u8], words: u8) -> Vec<u8> {
    let (header, segment) = packet.split_at(34);
    let mut packet = header.to_vec();
    packet[14] += words;
    let len = u16::from_be_bytes([packet[16], packet[17]]) + 4 * u16::from(words);
    packet[16..18].copy_from_slice(&len.to_be_bytes());
    packet.extend(std::iter::repeat_n(1, 4 * usize::from(words)));
    packet.extend(segment);
    packet
}

fn ethernet(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2];
    packet.extend(ethertype.to_be_bytes());
    packet.extend(payload);
    packet
}

fn ipv4(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((20 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 1, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(payload);
    ethernet(0x0800, &packet)
}

fn ipv6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([protocol, 64]);
    packet.extend([0xfd; 32]);
    packet.extend(payload);
    ethernet(0x86dd, &packet)
}

/// Ports and `rest` further bytes.
fn transport(source: u16, destination: u16, rest: usize) -> Vec<u8> {
    let mut packet = source.to_be_bytes().to_vec();
    packet.extend(destination.to_be_bytes());
    packet.resize(4 + rest, 0);
    packet
}

fn tcp(rng: &mut fastrand::Rng, source: u16, destination: u16, payload: usize) -> Vec<u8> {
    let mut segment = transport(source, destination, 16 + payload);
    segment[4..8].copy_from_slice(&rng.u32(..).to_be_bytes());
    segment[12] = 5 << 4;
    ipv4(6, &segment)
}
