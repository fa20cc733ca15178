//! The pcap format: a header of 24 bytes, then records.
//!
//! Layout: draft-ietf-opsawg-pcap, and libpcap's `savefile.c` and `sf-pcap.c` where files differ from it.

use paceline_frame::{Burst, FrameMeta, MAX_PACKET};

use crate::byte_order::ByteOrder;
use crate::reader::{Link, Stop};
use crate::records::{HEAD, Layout, Records};
use crate::{LinkType, Part, ReadError};

/// Length of the file header.
pub(crate) const FILE_HEADER: usize = 24;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

/// Unit of the fraction in a pcap time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
}

impl Resolution {
    /// Nanoseconds in a unit.
    pub(crate) const fn nanoseconds(self) -> u64 {
        match self {
            Self::Micro => 1_000,
            Self::Nano => 1,
        }
    }
}

/// File header of a pcap capture, kept as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcapHeader {
    pub(crate) bytes: [u8; FILE_HEADER],
    pub(crate) order: ByteOrder,
    pub(crate) layout: Layout,
    pub(crate) resolution: Resolution,
}

impl PcapHeader {
    /// A little-endian header of version 2.4 for Ethernet and packets of any length.
    #[must_use]
    pub fn new(resolution: Resolution) -> Self {
        let magic = match resolution {
            Resolution::Micro => MAGIC_MICROSECONDS,
            Resolution::Nano => MAGIC_NANOSECONDS,
        };
        let mut bytes = [0; FILE_HEADER];
        bytes[0..4].copy_from_slice(&magic.to_le_bytes());
        bytes[4..6].copy_from_slice(&2u16.to_le_bytes());
        bytes[6..8].copy_from_slice(&4u16.to_le_bytes());
        bytes[16..20].copy_from_slice(&(MAX_PACKET as u32).to_le_bytes());
        bytes[20..24].copy_from_slice(&LinkType::ETHERNET.0.to_le_bytes());
        Self { bytes, order: ByteOrder::Little, layout: Layout::Pcap, resolution }
    }

    /// Whether `magic`, the first four bytes, is that of a pcap file, and what it says.
    pub(crate) fn recognize(magic: [u8; 4]) -> Option<(ByteOrder, Layout, Resolution)> {
        [ByteOrder::Little, ByteOrder::Big].into_iter().find_map(|order| {
            let (layout, resolution) = match order.u32(&magic, 0) {
                MAGIC_MICROSECONDS => (Layout::Pcap, Resolution::Micro),
                MAGIC_NANOSECONDS => (Layout::Pcap, Resolution::Nano),
                MAGIC_MODIFIED => (Layout::PcapModified, Resolution::Micro),
                _ => return None,
            };
            Some((order, layout, resolution))
        })
    }

    /// Reads a header whose magic number was recognized.
    pub(crate) fn decode(
        bytes: [u8; FILE_HEADER],
        (order, layout, resolution): (ByteOrder, Layout, Resolution),
    ) -> Result<Self, ReadError> {
        let (major, minor) = (order.u16(&bytes, 4), order.u16(&bytes, 6));
        // Before 2.3 the two lengths of a record were exchanged, and 2.3 has both kinds.
        if (major, minor) != (2, 4) {
            return Err(ReadError::Version { format: "pcap", major, minor, offset: 0 });
        }
        Ok(Self { bytes, order, layout, resolution })
    }

    /// What the packets are.
    pub(crate) fn link(&self) -> Link {
        // The upper six bits tell whether, and how long, a frame check sequence ends each packet.
        let link_type = LinkType(self.order.u32(&self.bytes, 20) & 0x03ff_ffff);
        Link { link_type, snaplen: self.order.u32(&self.bytes, 16) }
    }
}

/// Reads records.
pub(crate) struct Decoder {
    order: ByteOrder,
    layout: Layout,
    unit: u64,
    /// Packets read so far.
    pub(crate) packets: u64,
}

impl Decoder {
    pub(crate) fn new(header: &PcapHeader) -> Self {
        Self { order: header.order, layout: header.layout, unit: header.resolution.nanoseconds(), packets: 0 }
    }

    /// Takes one packet and returns the length of its record.
    #[inline]
    pub(crate) fn take(
        &mut self,
        data: &[u8],
        offset: u64,
        burst: &mut Burst,
        records: &mut Records,
    ) -> Result<usize, Stop> {
        let head_len = self.layout.pcap_head();
        let (Some(head), Some(rest)) = (data.first_chunk::<16>(), data.get(head_len..)) else {
            return Err(Stop::More(head_len));
        };
        let (captured, original) = (self.order.u32(head, 8), self.order.u32(head, 12));
        if captured as usize > MAX_PACKET {
            return Err(self.too_long(offset, captured).into());
        }
        let len = head_len + captured as usize;
        let Some(packet) = rest.get(..captured as usize) else { return Err(Stop::More(len)) };
        let meta = FrameMeta {
            timestamp_ns: u64::from(self.order.u32(head, 0)) * 1_000_000_000
                + u64::from(self.order.u32(head, 4)) * self.unit,
            original_len: original,
            interface: 0,
        };
        // Its length was checked above, so that only a full burst refuses it.
        if burst.push(packet, meta).is_err() {
            return Err(Stop::BurstFull);
        }
        let mut kept = [0; HEAD];
        kept[..16].copy_from_slice(head);
        if self.layout == Layout::PcapModified
            && let Some(more) = data.get(16..24)
        {
            kept[16..24].copy_from_slice(more);
        }
        records.push_packet(kept, captured, original, &[]);
        self.packets += 1;
        Ok(len)
    }

    #[cold]
    fn too_long(&self, offset: u64, len: u32) -> ReadError {
        ReadError::PacketTooLong { packet: self.packets + 1, offset, len }
    }

    /// What the capture was cut in, if `data` is all that is left.
    pub(crate) fn cut(&self, data: &[u8], offset: u64, needed: usize) -> ReadError {
        ReadError::Cut {
            part: Part::Packet(self.packets + 1),
            offset,
            needed: needed as u64,
            found: data.len() as u64,
        }
    }
}
