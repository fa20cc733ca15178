//! What a capture holds beside the packets' bytes.

use std::ops::Range;

use paceline_frame::{MAX_BURST, MAX_PACKET};

use crate::byte_order::ByteOrder;

/// Longest record header before a packet: that of a pcapng Enhanced Packet Block.
pub(crate) const HEAD: usize = 28;

/// Smallest snapshot length that is written as it was read. A program can make packets longer than those of the input;
/// libpcap cuts what is longer than the snapshot length of a pcap file, and refuses it in pcapng.
const MIN_SNAPLEN: u32 = 65_535;

/// Snapshot length to write in place of one that was read; 0 means no limit.
pub(crate) fn written_snaplen(read: u32) -> u32 {
    if (1..MIN_SNAPLEN).contains(&read) { MAX_PACKET as u32 } else { read }
}

/// How packets are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// 16 bytes before each packet.
    Pcap,
    /// 24 bytes before each packet: Alexey Kuznetzov's variant, with interface and protocol.
    PcapModified,
    /// Blocks.
    Pcapng,
}

impl Layout {
    /// Length of a pcap record header.
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

/// Record of one packet as it was found. Its header is kept in the capture's own form, so that writing it back
/// loses nothing, whatever its resolution.
#[derive(Clone, Debug)]
pub(crate) struct PacketRecord {
    /// First bytes of the record, up to the packet.
    pub(crate) head: [u8; HEAD],
    /// Bytes of the packet that the capture holds.
    pub(crate) captured: u32,
    /// Its length on the wire.
    pub(crate) original: u32,
    /// What follows the packet and its padding (pcapng options), in `Records::bytes`.
    pub(crate) options: Range<usize>,
}

/// A block without a packet.
#[derive(Clone, Debug)]
struct Between {
    /// Packets of the burst that come before it.
    after: usize,
    /// The whole block, in `Records::bytes`.
    block: Range<usize>,
}

/// What a capture holds beside the packets of one burst: record headers, options, and the pcapng blocks between.
///
/// Handed from [`CaptureReader::records`](crate::CaptureReader::records) to
/// [`CaptureWriter::write`](crate::CaptureWriter::write); describes the burst that was filled last.
#[derive(Clone, Debug)]
pub struct Records {
    pub(crate) layout: Layout,
    pub(crate) order: ByteOrder,
    /// Which fill this is, so that a writer puts no block out twice.
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

    /// Forgets the last burst.
    pub(crate) fn restart(&mut self) {
        self.fill += 1;
        self.packets.clear();
        self.between.clear();
        self.bytes.clear();
    }

    /// Keeps the record of a packet; `head` is filled up with zeros if the record's own is shorter.
    #[inline]
    pub(crate) fn push_packet(&mut self, head: [u8; HEAD], captured: u32, original: u32, options: &[u8]) {
        let options = if options.is_empty() { 0..0 } else { self.keep(options) };
        self.packets.push(PacketRecord { head, captured, original, options });
    }

    pub(crate) fn push_block(&mut self, block: &[u8]) {
        let block = self.keep(block);
        self.between.push(Between { after: self.packets.len(), block });
    }

    /// Bytes kept so far.
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
