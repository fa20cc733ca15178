//! The shipped capture: varied synthetic traffic, with the same bytes on every run.
//!
//! `cargo run -p paceline-testkit --bin paceline-testkit -- traffic examples` writes it. Addresses are those reserved for
//! documentation (RFC 5737, RFC 3849) and locally administered MAC addresses; the services are those of the example
//! programs: the balancer's 192.0.2.10 and 192.0.2.53, the firewall's blocked 203.0.113.66 and 198.51.100.7, the reflector's
//! 02:00:00:00:00:01.

mod conversations;
mod layers;
mod link;
mod network;
mod odd;
mod pcapng;

use paceline_capture::{CaptureWriter, Header, PcapHeader, Resolution, WriteError};
use paceline_frame::FrameMeta;

/// One captured packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Microseconds since the epoch.
    pub stamp: u64,
    /// Captured bytes.
    pub bytes: Vec<u8>,
    /// Length on the wire, more than `bytes` if the capture truncated it.
    pub original: u32,
}

/// When the capture starts, in microseconds since the epoch: 14 November 2023, 22:13:20 UTC.
const START: u64 = 1_700_000_000_000_000;

/// Consecutive packets, with time passing between them.
struct Trace {
    packets: Vec<Packet>,
    clock: u64,
    seed: u64,
}

impl Trace {
    fn new() -> Self {
        Self { packets: Vec::new(), clock: START, seed: 2 }
    }

    /// A pseudo-random number (Knuth's linear congruential generator). A crate's generator could change with its version,
    /// and the capture with it.
    fn number(&mut self) -> u32 {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.seed >> 32) as u32
    }

    /// A packet without padding, however short.
    fn put(&mut self, bytes: Vec<u8>) {
        let original = bytes.len();
        self.put_cut(bytes, original);
    }

    /// A packet with the padding to 60 bytes that a network card adds.
    fn put_padded(&mut self, mut bytes: Vec<u8>) {
        bytes.resize(bytes.len().max(60), 0);
        self.put(bytes);
    }

    /// A packet of which the capture has only the first `kept` bytes.
    fn put_truncated(&mut self, mut bytes: Vec<u8>, kept: usize) {
        let original = bytes.len();
        bytes.truncate(kept);
        self.put_cut(bytes, original);
    }

    fn put_cut(&mut self, bytes: Vec<u8>, original: usize) {
        self.packets.push(Packet { stamp: self.clock, bytes, original: original as u32 });
        self.clock += 3 + u64::from(self.number() % 2_500);
    }
}

/// All packets of the capture. The packets that are shorter than an Ethernet header, which the kernel's test run refuses,
/// are the last [`SHORT`] ones.
#[must_use]
pub fn packets() -> Vec<Packet> {
    let mut trace = Trace::new();
    link::neighbors(&mut trace);
    conversations::tcp_conversations(&mut trace);
    conversations::udp_conversations(&mut trace);
    network::control_messages(&mut trace);
    network::fragments(&mut trace);
    network::ipv4_options(&mut trace);
    network::ipv6_extensions(&mut trace);
    network::protocols(&mut trace);
    link::tags(&mut trace);
    link::other_protocols(&mut trace);
    odd::wrong_headers(&mut trace);
    odd::wrong_checksums(&mut trace);
    odd::cut_headers(&mut trace);
    odd::truncated_by_capture(&mut trace);
    odd::shorter_than_ethernet(&mut trace);
    trace.packets
}

/// Packets at the end of the capture that are shorter than an Ethernet header.
pub const SHORT: usize = 2;

/// The capture in the pcap format: little-endian, microseconds.
///
/// # Errors
/// Never: a vector accepts all bytes.
pub fn pcap() -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    let mut writer = CaptureWriter::new(&mut out, &Header::Pcap(PcapHeader::new(Resolution::Micro)))?;
    for packet in packets() {
        let meta =
            FrameMeta { timestamp_ns: packet.stamp * 1_000, original_len: packet.original, interface: 0 };
        writer.push(&packet.bytes, &meta)?;
    }
    writer.flush()?;
    drop(writer);
    Ok(out)
}

pub use pcapng::pcapng;
