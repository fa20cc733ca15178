//! Contents of captures other than packet bytes.

use std::mem;
use std::ops::Range;

use paceline_frame::{MAX_BURST, MAX_PACKET};

use crate::byte_order::ByteOrder;

/// Maximum size in bytes of a record header: that of a pcapng Enhanced Packet Block.
pub(crate) const HEAD: usize = 28;

/// Minimum snapshot length that is written unchanged. A program can make packets longer than those of the input; libpcap truncates
/// packets above the snapshot length in pcap, and refuses them in pcapng.
const MIN_SNAPLEN: u32 = 65_535;

/// The snapshot length to write instead of the one read; 0 for no limit.
pub(crate) fn written_snaplen(read: u32) -> u32 {
    if (1..MIN_SNAPLEN).contains(&read) { MAX_PACKET as u32 } else { read }
}

/// Layout of packet records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// A 16-byte header before each packet.
    Pcap,
    /// A 24-byte header before each packet: Alexey Kuznetzov's variant, with interface and protocol.
    PcapModified,
    /// Blocks.
    Pcapng,
}

impl Layout {
    /// Size of a pcap record header in bytes.
    #[inline]
    pub(crate) fn pcap_head(self) -> usize {
        if self == Self::PcapModified { 24 } else { 16 }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::PcapModified => "modified pcap",
            Self::Pcapng => "pcapng",
        }
    }
}

/// The record of one packet. Its header is stored in the capture's own format, so that writing it back is lossless at any
/// resolution.
#[derive(Clone, Debug)]
pub(crate) struct PacketRecord {
    /// The record's header, up to the packet.
    pub(crate) head: [u8; HEAD],
    /// Captured length of the packet in bytes.
    pub(crate) captured: u32,
    /// Wire length in bytes.
    pub(crate) original: u32,
    /// Data after the packet and its padding (pcapng options), a range of `Records::bytes`.
    pub(crate) options: Range<usize>,
}

/// A block without a packet.
#[derive(Clone, Debug)]
struct Between {
    /// Number of packets of the burst before it.
    after: usize,
    /// The whole block, a range of `Records::bytes`.
    block: Range<usize>,
}

/// The capture's contents other than packet bytes, for one burst: record headers, options, and pcapng blocks between packets.
///
/// Passed from [`CaptureReader::records`](crate::CaptureReader::records) to [`CaptureWriter::write`](crate::CaptureWriter::write);
/// describes the last burst.
#[derive(Clone, Debug)]
pub struct Records {
    pub(crate) layout: Layout,
    pub(crate) order: ByteOrder,
    /// Number of the fill, by which a writer avoids writing a block twice.
    pub(crate) fill: u64,
    pub(crate) packets: Vec<PacketRecord>,
    between: Vec<Between>,
    bytes: Vec<u8>,
}

impl Records {
    pub(crate) fn new(layout: Layout, order: ByteOrder) -> Self {
        Self {
            layout,
            order,
            fill: 0,
            packets: Vec::with_capacity(MAX_BURST),
            between: Vec::new(),
            bytes: Vec::new(),
        }
    }

    /// Takes the records of the last fill.
    pub(crate) fn take(&mut self) -> Self {
        let Self { packets, between, bytes, .. } = self;
        let (packets, between, bytes) = (mem::take(packets), mem::take(between), mem::take(bytes));
        Self { packets, between, bytes, ..*self }
    }

    /// Drops the records of the last burst.
    pub(crate) fn restart(&mut self) {
        self.fill += 1;
        self.packets.clear();
        self.between.clear();
        self.bytes.clear();
    }

    /// Stores the record of a packet; `head` is padded with zeros if the record's own header is shorter.
    #[inline]
    pub(crate) fn push_packet(&mut self, head: [u8; HEAD], captured: u32, original: u32, options: &[u8]) {
        let options = if options.is_empty() { 0..0 } else { self.keep(options) };
        self.packets.push(PacketRecord { head, captured, original, options });
    }

    pub(crate) fn push_block(&mut self, block: &[u8]) {
        let block = self.keep(block);
        self.between.push(Between { after: self.packets.len(), block });
    }

    /// Number of bytes stored.
    pub(crate) fn kept(&self) -> usize {
        self.bytes.len()
    }

    #[cold]
    fn keep(&mut self, bytes: &[u8]) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(bytes);
        start..self.bytes.len()
    }

    pub(crate) fn options(&self, record: &PacketRecord) -> &[u8] {
        self.bytes.get(record.options.clone()).unwrap_or_default()
    }

    /// Blocks without a packet, each with the number of packets before it.
    pub(crate) fn blocks(&self) -> impl Iterator<Item = (usize, &[u8])> {
        self.between.iter().map(|b| (b.after, self.bytes.get(b.block.clone()).unwrap_or_default()))
    }
}
