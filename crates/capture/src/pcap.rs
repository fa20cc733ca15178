//! The pcap format: a header of 24 bytes, followed by records.
//!
//! Layout: draft-ietf-opsawg-pcap, and libpcap's `savefile.c` and `sf-pcap.c` for deviations in existing files.

use paceline_frame::{FrameMeta, MAX_PACKET};

use crate::byte_order::ByteOrder;
use crate::error::{Part, ReadError};
use crate::link::{Link, ReadFor};
use crate::link_type::LinkType;
use crate::records::{HEAD, Layout, Records, written_snaplen};
use crate::sink::{Place, Sink, Step, Stop};

/// Length of the file header in bytes.
pub(crate) const FILE_HEADER: usize = 24;

/// A longer packet on the wire is unlikely, in bytes.
const MOST_ON_WIRE: u32 = 1 << 24;

const MAGIC_MICROSECONDS: u32 = 0xa1b2_c3d4;
const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const MAGIC_MODIFIED: u32 = 0xa1b2_cd34;

/// Unit of the fraction of a second in a pcap time stamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Microseconds.
    Micro,
    /// Nanoseconds.
    Nano,
}

impl Resolution {
    /// Nanoseconds per unit.
    pub(crate) const fn nanoseconds(self) -> u64 {
        match self {
            Self::Micro => 1_000,
            Self::Nano => 1,
        }
    }
}

/// File header of a pcap capture for writing: as read, except for the version, which is 2.4.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PcapHeader {
    pub(crate) bytes: [u8; FILE_HEADER],
    pub(crate) order: ByteOrder,
    pub(crate) layout: Layout,
    pub(crate) resolution: Resolution,
}

/// Order of the captured length and the wire length in a record header. It was swapped in version 2.3, but some programs wrote that
/// version with the old order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lengths {
    CapturedFirst,
    CapturedLast,
    /// Unknown: the shorter one is the captured length.
    Either,
}

impl Lengths {
    fn of_version(version: (u16, u16)) -> Option<Self> {
        match version {
            (2, 4) => Some(Self::CapturedFirst),
            (2, 3) => Some(Self::Either),
            // Version 543.0 is that of DG/UX.
            (2, 0..=2) | (543, 0) => Some(Self::CapturedLast),
            _ => None,
        }
    }
}

impl PcapHeader {
    /// A little-endian header of version 2.4 for Ethernet, without a limit of packet lengths.
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

    /// This header for packets of another link.
    #[must_use]
    pub fn of_link(mut self, link: Link) -> Self {
        self.bytes[16..20].copy_from_slice(&self.order.bytes(link.snaplen));
        self.bytes[20..24].copy_from_slice(&self.order.bytes(link.link_type.0));
        self
    }

    /// Resolution of the time stamps.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        self.resolution
    }

    /// Whether records have no more than the usual fields, so that [`CaptureWriter::push`](crate::CaptureWriter::push) makes them.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.layout == Layout::Pcap
    }

    /// Decodes `magic`, the first four bytes, if it is that of a pcap file.
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

    /// Decodes a header with a known magic number: returns the header to write, the link, and a decoder of records.
    pub(crate) fn decode(
        mut bytes: [u8; FILE_HEADER],
        (order, layout, resolution): (ByteOrder, Layout, Resolution),
        read_for: ReadFor,
    ) -> Result<(Self, Link, Decoder), ReadError> {
        let (major, minor) = (order.u16(&bytes, 4), order.u16(&bytes, 6));
        let Some(lengths) = Lengths::of_version((major, minor)) else {
            return Err(ReadError::Version { format: "pcap", major, minor, offset: 0 });
        };
        // The upper six bits give the length of a frame check sequence at the end of each packet.
        let link_type = LinkType(order.u32(&bytes, 20) & 0x03ff_ffff);
        let snaplen = order.u32(&bytes, 16);
        let mut link = Link::new(link_type, snaplen, order);
        if layout == Layout::PcapModified && link_type == LinkType::ETHERNET {
            // Captures without Ethernet headers had one added, which the snapshot length does not include.
            link.snaplen = link.snaplen.saturating_add(14).min(i32::MAX.cast_unsigned());
        }
        bytes[4..6].copy_from_slice(&order.bytes16(2));
        bytes[6..8].copy_from_slice(&order.bytes16(4));
        if read_for == ReadFor::Programs {
            bytes[16..20].copy_from_slice(&order.bytes(written_snaplen(snaplen)));
        }
        let header = Self { bytes, order, layout, resolution };
        let longest = if read_for == ReadFor::Filters { link.snaplen } else { u32::MAX };
        let shape = Shape { order, layout, lengths, unit: resolution.nanoseconds() };
        let decoder = Decoder { shape, longest, packets: 0 };
        Ok((header, link, decoder))
    }
}

/// The form of a capture's records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    order: ByteOrder,
    layout: Layout,
    lengths: Lengths,
    /// Nanoseconds per unit of a fraction.
    unit: u64,
}

impl Shape {
    /// No records of this form.
    pub(crate) fn records(self) -> Records {
        Records::new(self.layout, self.order)
    }

    /// Length of a record header in bytes.
    pub(crate) fn head(self) -> usize {
        self.layout.pcap_head()
    }

    /// The captured length and the wire length.
    #[inline]
    fn lengths(self, head: &[u8; 16]) -> (u32, u32) {
        let (first, last) = (self.order.u32(head, 8), self.order.u32(head, 12));
        match self.lengths {
            Lengths::CapturedFirst => (first, last),
            Lengths::CapturedLast => (last, first),
            Lengths::Either => (first.min(last), first.max(last)),
        }
    }

    /// Length of the record at the start of `data`, as its header says.
    #[inline]
    pub(crate) fn step(self, data: &[u8]) -> Step {
        let Some(head) = data.first_chunk::<16>().filter(|_| data.len() >= self.head()) else {
            return Step::More(self.head());
        };
        match self.lengths(head).0 as usize {
            captured if captured > MAX_PACKET => Step::Bad,
            captured => Step::Record(self.head() + captured),
        }
    }

    /// The seconds of a header that looks like a packet's.
    pub(crate) fn likely(self, data: &[u8]) -> Result<u32, Step> {
        let head = data.first_chunk::<16>().ok_or(Step::More(16))?;
        let (captured, original) = self.lengths(head);
        let fraction = u64::from(self.order.u32(head, 4)) * self.unit;
        let is_likely =
            fraction < 1_000_000_000 && captured > 0 && (captured..=MOST_ON_WIRE).contains(&original);
        if is_likely { Ok(self.order.u32(head, 0)) } else { Err(Step::Bad) }
    }
}

/// A decoder of records.
#[derive(Clone, Copy)]
pub(crate) struct Decoder {
    pub(crate) shape: Shape,
    /// Packets are truncated to this length in bytes.
    longest: u32,
    /// Number of packets read so far.
    pub(crate) packets: u64,
}

impl Decoder {
    /// Decodes one packet and returns the length of its record.
    #[inline]
    pub(crate) fn take<S: Sink>(
        &mut self,
        data: &[u8],
        offset: u64,
        packets: &mut S,
        records: &mut Records,
    ) -> Result<usize, Stop> {
        let Shape { order, layout, unit, .. } = self.shape;
        let head_len = layout.pcap_head();
        let (Some(head), Some(rest)) = (data.first_chunk::<16>(), data.get(head_len..)) else {
            return Err(Stop::More(head_len));
        };
        let (captured, original) = self.shape.lengths(head);
        if captured as usize > MAX_PACKET {
            return Err(self.too_long(offset, captured).into());
        }
        let len = head_len + captured as usize;
        let Some(packet) = rest.get(..captured as usize) else { return Err(Stop::More(len)) };
        let captured = captured.min(self.longest);
        let packet = packet.get(..captured as usize).unwrap_or(packet);
        let meta = FrameMeta {
            timestamp_ns: u64::from(order.u32(head, 0)) * 1_000_000_000
                + u64::from(order.u32(head, 4)) * unit,
            original_len: original,
            interface: 0,
        };
        if !packets.push(packet, meta, Place { record: offset, head: head_len }) {
            return Err(Stop::BurstFull);
        }
        self.packets += 1;
        if !S::KEEPS_RECORDS {
            return Ok(len);
        }
        let mut kept = [0; HEAD];
        kept[..16].copy_from_slice(head);
        if layout == Layout::PcapModified
            && let Some(more) = data.get(16..24)
        {
            kept[16..24].copy_from_slice(more);
        }
        records.push_packet(kept, captured, original, &[]);
        Ok(len)
    }

    #[cold]
    fn too_long(&self, offset: u64, len: u32) -> ReadError {
        ReadError::PacketTooLong { packet: self.packets + 1, offset, len }
    }

    /// The error for a truncated record, if `data` is the rest of the capture.
    pub(crate) fn cut(&self, data: &[u8], offset: u64, needed: usize) -> ReadError {
        ReadError::Cut {
            part: Part::Packet(self.packets + 1),
            offset,
            needed: needed as u64,
            found: data.len() as u64,
        }
    }
}
