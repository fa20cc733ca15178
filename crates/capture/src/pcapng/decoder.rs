//! Decoding of blocks and their packets.

use paceline_frame::{FrameMeta, MAX_PACKET};

use super::block::{MAX_BLOCK, MIN_BLOCK, min_len, order_of};
use super::brief::brief;
use super::interface::Interface;
use super::kind::{
    CUSTOM_NOT_COPIED, ENHANCED_HEAD, ENHANCED_PACKET, INTERFACE_DESCRIPTION, PACKET, SECTION_HEADER,
    SIMPLE_HEAD, SIMPLE_PACKET,
};
use crate::byte_order::ByteOrder;
use crate::error::{Part, ReadError};
use crate::link::ReadFor;
use crate::link_type::LinkType;
use crate::records::{HEAD, Records, written_snaplen};
use crate::sink::{Place, Sink, Stop};

/// Maximum number of bytes of blocks and options that are stored with a burst.
const MAX_KEPT: usize = 4 * MAX_BLOCK;
/// Maximum number of interfaces in a section.
const MAX_INTERFACES: usize = 1 << 16;

/// A packet as described by a block.
struct Packet<'a> {
    offset: u64,
    head: [u8; HEAD],
    interface: u32,
    /// Time stamp in the interface's units; 0 for Simple Packet Blocks, which have none.
    stamp: u64,
    has_options: bool,
    captured: u32,
    original: u32,
    /// Packet, padding and options, without the block's second length.
    body: &'a [u8],
}

/// A decoder of sections and their blocks.
#[derive(Clone)]
pub(crate) struct Decoder {
    read_for: ReadFor,
    order: ByteOrder,
    interfaces: Vec<Interface>,
    /// Number of interfaces in earlier sections, for a consecutive numbering over the capture.
    pub(crate) interfaces_before: u32,
    /// The section header and interface descriptions of the section so far, without options that no packet depends on.
    pub(crate) descriptions: Vec<u8>,
    /// Offset of the first section or interface that was described.
    pub(crate) redescribed: Option<u64>,
    /// The required link type.
    pub(crate) link_type: LinkType,
    /// Number of packets read so far.
    pub(crate) packets: u64,
}

impl Decoder {
    pub(crate) fn new(read_for: ReadFor) -> Self {
        Self {
            read_for,
            order: ByteOrder::Little,
            interfaces: Vec::new(),
            interfaces_before: 0,
            descriptions: Vec::new(),
            redescribed: None,
            link_type: LinkType::ETHERNET,
            packets: 0,
        }
    }

    /// A decoder of the section's packets.
    pub(crate) fn of_packets(&self) -> Self {
        Self { interfaces: self.interfaces.clone(), descriptions: Vec::new(), ..*self }
    }

    pub(crate) fn order(&self) -> ByteOrder {
        self.order
    }

    /// Starts a section with the header block at the start of `data`; returns the block.
    pub(crate) fn section<'a>(&mut self, data: &'a [u8], offset: u64) -> Result<&'a [u8], Stop> {
        let order = section_order(data, offset)?;
        let block = block(data, SECTION_HEADER, order, offset)?;
        let head = head::<16>(block)?;
        let (major, minor) = (order.u16(head, 12), order.u16(head, 14));
        // Version 1.2 was written by mistake instead of 1.0, and the draft requires readers to accept it.
        if !matches!((major, minor), (1, 0 | 2)) {
            return Err(ReadError::Version { format: "pcapng", major, minor, offset }.into());
        }
        self.order = order;
        self.interfaces_before = self.interfaces_before.saturating_add(self.interfaces.len() as u32);
        self.interfaces.clear();
        self.descriptions.clear();
        self.describe(block, SECTION_HEADER, offset);
        Ok(block)
    }

    fn describe(&mut self, block: &[u8], kind: u32, offset: u64) {
        self.descriptions.extend(brief(block, kind, self.order));
        self.redescribed.get_or_insert(offset);
    }

    /// Decodes one block and returns its length.
    #[inline]
    pub(crate) fn take<S: Sink>(
        &mut self,
        data: &[u8],
        offset: u64,
        packets: &mut S,
        records: &mut Records,
    ) -> Result<usize, Stop> {
        let kind = self.order.u32(head::<MIN_BLOCK>(data)?, 0);
        if kind == SECTION_HEADER {
            return self.take_section(data, offset, packets.count() > 0, records);
        }
        let block = block(data, kind, self.order, offset)?;
        match kind {
            ENHANCED_PACKET | PACKET => self.enhanced_packet(block, offset, packets, records)?,
            SIMPLE_PACKET => self.simple_packet(block, offset, packets, records)?,
            INTERFACE_DESCRIPTION => self.interface_description(block, offset, records)?,
            _ if S::KEEPS_RECORDS => other(kind, block, offset, records)?,
            _ => {}
        }
        Ok(block.len())
    }

    /// Starts a new section. Its byte order and interfaces may differ, so it starts a new burst.
    #[cold]
    fn take_section(
        &mut self,
        data: &[u8],
        offset: u64,
        has_packets: bool,
        records: &mut Records,
    ) -> Result<usize, Stop> {
        if has_packets {
            return Err(Stop::BurstFull);
        }
        let block = self.section(data, offset)?;
        room_for(block, offset, records)?;
        records.order = self.order;
        records.push_block(&unsized_section(Box::from(block)));
        Ok(block.len())
    }

    #[cold]
    fn interface_description(
        &mut self,
        block: &[u8],
        offset: u64,
        records: &mut Records,
    ) -> Result<(), Stop> {
        room_for(block, offset, records)?;
        if self.interfaces.len() >= MAX_INTERFACES {
            return Err(ReadError::Interfaces { offset, limit: MAX_INTERFACES }.into());
        }
        let options = block.get(16..block.len() - 4).unwrap_or_default();
        let interface = Interface::decode(head(block)?, options, self.order, offset)?;
        self.describe(block, INTERFACE_DESCRIPTION, offset);
        let mut block = Box::<[u8]>::from(block);
        if let Some(snaplen) = block.get_mut(12..16) {
            snaplen.copy_from_slice(&self.order.bytes(self.written_snaplen(interface.snaplen)));
        }
        records.push_block(&block);
        self.interfaces.push(interface);
        Ok(())
    }

    /// The snapshot length to write instead of the one read.
    fn written_snaplen(&self, read: u32) -> u32 {
        if self.read_for == ReadFor::Programs { written_snaplen(read) } else { read }
    }

    #[inline(always)]
    fn enhanced_packet<S: Sink>(
        &mut self,
        block: &[u8],
        offset: u64,
        packets: &mut S,
        records: &mut Records,
    ) -> Result<(), Stop> {
        let order = self.order;
        let head = head::<ENHANCED_HEAD>(block)?;
        let interface = match order.u32(head, 0) {
            PACKET => u32::from(order.u16(head, 8)),
            _ => order.u32(head, 8),
        };
        let packet = Packet {
            offset,
            head: *head,
            interface,
            stamp: u64::from(order.u32(head, 12)) << 32 | u64::from(order.u32(head, 16)),
            has_options: true,
            captured: order.u32(head, 20),
            original: order.u32(head, 24),
            body: block.get(ENHANCED_HEAD..block.len() - 4).unwrap_or_default(),
        };
        self.deliver(&packet, packets, records)
    }

    #[inline(never)]
    fn simple_packet<S: Sink>(
        &mut self,
        block: &[u8],
        offset: u64,
        packets: &mut S,
        records: &mut Records,
    ) -> Result<(), Stop> {
        let head = head::<SIMPLE_HEAD>(block)?;
        let original = self.order.u32(head, 8);
        let snaplen = self.interfaces.first().map_or(0, |interface| interface.snaplen);
        let cut_to = |snaplen| if snaplen == 0 { original } else { original.min(snaplen) };
        let captured = cut_to(snaplen);
        let mut kept = [0; HEAD];
        if captured == cut_to(self.written_snaplen(snaplen)) {
            kept[..SIMPLE_HEAD].copy_from_slice(head);
        } else {
            // The rewritten block needs an explicit captured length. The packet belongs to interface 0 and gets time stamp 0, which
            // an Enhanced Packet Block has to contain.
            kept[..4].copy_from_slice(&self.order.bytes(ENHANCED_PACKET));
        }
        let body = block.get(SIMPLE_HEAD..block.len() - 4).unwrap_or_default();
        let packet = Packet {
            offset,
            head: kept,
            interface: 0,
            stamp: 0,
            has_options: false,
            captured,
            original,
            body,
        };
        self.deliver(&packet, packets, records)
    }

    #[inline(always)]
    fn deliver<S: Sink>(
        &mut self,
        packet: &Packet<'_>,
        packets: &mut S,
        records: &mut Records,
    ) -> Result<(), Stop> {
        let &Packet { head, captured, original, .. } = packet;
        let interface = self.interface_of(packet)?;
        let body = packet.body;
        let Some(bytes) = body.get(..captured as usize).filter(|bytes| bytes.len() <= MAX_PACKET) else {
            return Err(self.bad_length(packet, body.len()).into());
        };
        let meta = FrameMeta {
            timestamp_ns: interface.clock.nanoseconds(packet.stamp),
            original_len: original,
            interface: self.interfaces_before.saturating_add(packet.interface),
        };
        let options = if packet.has_options {
            body.get(bytes.len().next_multiple_of(4)..).unwrap_or_default()
        } else {
            &[]
        };
        if !options.is_empty() {
            room_for(options, packet.offset, records)?;
        }
        let head_len = if packet.has_options { ENHANCED_HEAD } else { SIMPLE_HEAD };
        if !packets.push(bytes, meta, Place { record: packet.offset, head: head_len }) {
            return Err(Stop::BurstFull);
        }
        if S::KEEPS_RECORDS {
            records.push_packet(head, captured, original, options);
        }
        self.packets += 1;
        Ok(())
    }

    #[inline]
    fn interface_of(&self, packet: &Packet<'_>) -> Result<&Interface, Stop> {
        match self.interfaces.get(packet.interface as usize) {
            Some(interface) if interface.link_type == self.link_type => Ok(interface),
            found => Err(self.bad_interface(packet, found).into()),
        }
    }

    #[cold]
    fn bad_interface(&self, packet: &Packet<'_>, found: Option<&Interface>) -> ReadError {
        let (number, offset, interface) = (self.packets + 1, packet.offset, packet.interface);
        match found {
            Some(&Interface { link_type, .. }) => ReadError::PacketLinkType {
                packet: number,
                offset,
                interface,
                link_type,
                wanted: self.link_type,
            },
            None => {
                ReadError::NoInterface { packet: number, offset, interface, described: self.interfaces.len() }
            }
        }
    }

    #[cold]
    fn bad_length(&self, packet: &Packet<'_>, room: usize) -> ReadError {
        let (number, offset, len) = (self.packets + 1, packet.offset, packet.captured);
        if len as usize > MAX_PACKET {
            ReadError::PacketTooLong { packet: number, offset, len }
        } else {
            ReadError::PacketExceedsBlock { packet: number, offset, len, room: room as u64 }
        }
    }

    /// The error for a truncated block, if `data` is the rest of the capture.
    pub(crate) fn cut(&self, data: &[u8], offset: u64, needed: usize) -> ReadError {
        let part = match data.first_chunk::<4>().map(|kind| self.order.u32(kind, 0)) {
            Some(ENHANCED_PACKET | PACKET | SIMPLE_PACKET) => Part::Packet(self.packets + 1),
            Some(kind) => Part::Block { kind, after: self.packets },
            None => Part::Rest { after: self.packets },
        };
        ReadError::Cut { part, offset, needed: needed as u64, found: data.len() as u64 }
    }
}

/// The first bytes of a block.
#[inline]
fn head<const N: usize>(data: &[u8]) -> Result<&[u8; N], Stop> {
    match data.first_chunk() {
        Some(head) => Ok(head),
        None => Err(Stop::More(N)),
    }
}

/// The complete block at the start of `data`.
#[inline]
fn block(data: &[u8], kind: u32, order: ByteOrder, offset: u64) -> Result<&[u8], Stop> {
    let first = order.u32(head::<MIN_BLOCK>(data)?, 4);
    let len = first as usize;
    if len < min_len(kind) || len > MAX_BLOCK || !len.is_multiple_of(4) {
        return Err(bad_block_length(kind, offset, first).into());
    }
    let Some(block) = data.get(..len) else { return Err(Stop::More(len)) };
    let second = block.last_chunk::<4>().map_or(0, |bytes| order.u32(bytes, 0));
    if second != first {
        return Err(ReadError::BlockLengths { kind, offset, first, second }.into());
    }
    Ok(block)
}

/// Byte order of the section whose header is at the start of `data`.
fn section_order(data: &[u8], offset: u64) -> Result<ByteOrder, Stop> {
    let magic = ByteOrder::Big.u32(head::<MIN_BLOCK>(data)?, 8);
    order_of(magic).ok_or_else(|| ReadError::ByteOrderMagic { offset, magic }.into())
}

#[cold]
fn bad_block_length(kind: u32, offset: u64, len: u32) -> ReadError {
    let rule = if (len as usize) < min_len(kind) {
        "too short for its type"
    } else if len as usize > MAX_BLOCK {
        "no more than 16 MiB are read"
    } else {
        "not a multiple of 4"
    };
    ReadError::BlockLength { kind, offset, len, rule }
}

#[cold]
fn other(kind: u32, block: &[u8], offset: u64, records: &mut Records) -> Result<(), Stop> {
    if kind == CUSTOM_NOT_COPIED {
        return Ok(());
    }
    room_for(block, offset, records)?;
    records.push_block(block);
    Ok(())
}

/// Bounds memory: a block that does not fit starts a new burst, or ends the capture if the burst is empty.
fn room_for(bytes: &[u8], offset: u64, records: &Records) -> Result<(), Stop> {
    if records.kept() + bytes.len() <= MAX_KEPT {
        Ok(())
    } else if records.packets.is_empty() {
        Err(ReadError::Blocks { offset, limit: MAX_KEPT }.into())
    } else {
        Err(Stop::BurstFull)
    }
}

/// A section header with an unspecified section length, since fewer packets may be written than were read.
pub(crate) fn unsized_section(mut block: Box<[u8]>) -> Box<[u8]> {
    if let Some(length) = block.get_mut(16..24) {
        length.fill(0xff);
    }
    block
}
