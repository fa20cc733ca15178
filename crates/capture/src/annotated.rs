//! Writing of pcapng captures with what became of each packet, in the options that `xdpdump` uses.

use std::io::Write;

use crate::error::WriteError;
use crate::link_type::LinkType;

/// Code of a block: section header, interface description, enhanced packet, interface statistics.
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const STATISTICS: u32 = 5;
/// A number that tells the byte order of a section.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Code of a comment, in any block.
const COMMENT: u16 = 1;
/// `shb_userappl`
const APPLICATION: u16 = 4;
/// `if_name` and `if_tsresol`
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
/// `epb_packetid`, `epb_queue`, `epb_verdict`
const PACKET_ID: u16 = 5;
const QUEUE: u16 = 6;
const VERDICT: u16 = 7;
/// Kind of a verdict: the return value of an XDP program, in 64 bits.
const XDP_VERDICT: u8 = 2;
/// `isb_ifrecv` and `isb_ifdrop`
const RECEIVED: u16 = 4;
const DROPPED: u16 = 5;
/// The largest value of an option, in bytes.
const MAX_OPTION: usize = u16::MAX as usize;

/// Notes that are written beside a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notes<'a> {
    /// A text for people. What exceeds 65,535 bytes is left out.
    pub comment: &'a str,
    /// A number that records of the same packet share (`epb_packetid`).
    pub packet_id: Option<u64>,
    /// Number of the receive queue (`epb_queue`).
    pub queue: Option<u32>,
    /// Return value of an XDP program (`epb_verdict`).
    pub verdict: Option<u64>,
}

/// Writes a pcapng capture of one section: interfaces with names, packets of nanoseconds with [`Notes`], and at the end statistics.
///
/// The output gets each block in one call, as soon as it is made; it is flushed at the end, and by [`flush`](Self::flush).
#[derive(Debug)]
pub struct AnnotatedWriter<W> {
    out: W,
    /// The block that is made.
    block: Vec<u8>,
    /// Packets of each interface.
    packets: Vec<u64>,
    written: u64,
}

impl<W: Write> AnnotatedWriter<W> {
    /// Starts a section, with the name of the application that writes it.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn new(out: W, application: &str) -> Result<Self, WriteError> {
        let mut writer = Self { out, block: Vec::new(), packets: Vec::new(), written: 0 };
        writer.begin(SECTION);
        writer.block.extend(BYTE_ORDER.to_le_bytes());
        // Version 1.0, and an unknown length.
        writer.block.extend([1, 0, 0, 0]);
        writer.block.extend(u64::MAX.to_le_bytes());
        writer.option(APPLICATION, application.as_bytes());
        writer.end()?;
        Ok(writer)
    }

    /// Adds an interface; returns its number, from 0.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn add_interface(&mut self, name: &str, link_type: LinkType) -> Result<u32, WriteError> {
        self.begin(INTERFACE);
        self.block.extend((link_type.0 as u16).to_le_bytes());
        // Reserved, and no limit of the length.
        self.block.extend([0; 6]);
        self.option(IF_NAME, name.as_bytes());
        self.option(IF_TSRESOL, &[9]);
        self.end()?;
        self.packets.push(0);
        Ok(self.packets.len() as u32 - 1)
    }

    /// Writes a packet of an interface, with its time in nanoseconds since the epoch and its length on the wire in bytes.
    ///
    /// # Errors
    /// [`WriteError`]
    ///
    /// # Panics
    /// If there is no such interface, or the packet is longer than 4 GiB.
    pub fn push(
        &mut self,
        interface: u32,
        timestamp_ns: u64,
        packet: &[u8],
        original_len: u32,
        notes: &Notes<'_>,
    ) -> Result<(), WriteError> {
        self.packets[interface as usize] += 1;
        let len = u32::try_from(packet.len()).expect("a packet of less than 4 GiB");
        self.begin(PACKET);
        for number in [interface, (timestamp_ns >> 32) as u32, timestamp_ns as u32, len, original_len] {
            self.block.extend(number.to_le_bytes());
        }
        self.block.extend(packet);
        self.pad();
        if !notes.comment.is_empty() {
            self.option(COMMENT, notes.comment.as_bytes());
        }
        if let Some(id) = notes.packet_id {
            self.option(PACKET_ID, &id.to_le_bytes());
        }
        if let Some(queue) = notes.queue {
            self.option(QUEUE, &queue.to_le_bytes());
        }
        if let Some(verdict) = notes.verdict {
            let mut value = [XDP_VERDICT, 0, 0, 0, 0, 0, 0, 0, 0];
            value[1..].copy_from_slice(&verdict.to_le_bytes());
            self.option(VERDICT, &value);
        }
        self.end()
    }

    /// Ends the section with the statistics of each interface. `dropped` packets are not in the capture; they count for the
    /// first interface.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn finish(mut self, timestamp_ns: u64, dropped: u64) -> Result<(), WriteError> {
        for (interface, packets) in (0_u32..).zip(self.packets.clone()) {
            let dropped = if interface == 0 { dropped } else { 0 };
            self.begin(STATISTICS);
            for number in [interface, (timestamp_ns >> 32) as u32, timestamp_ns as u32] {
                self.block.extend(number.to_le_bytes());
            }
            self.option(RECEIVED, &(packets + dropped).to_le_bytes());
            self.option(DROPPED, &dropped.to_le_bytes());
            self.end()?;
        }
        self.flush()
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// [`WriteError`]
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.out.flush().map_err(|source| WriteError::io(source, self.written))
    }

    fn begin(&mut self, kind: u32) {
        self.block.clear();
        self.block.extend(kind.to_le_bytes());
        // The length is known at the end.
        self.block.extend([0; 4]);
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(MAX_OPTION)];
        self.block.extend(code.to_le_bytes());
        self.block.extend((value.len() as u16).to_le_bytes());
        self.block.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.block.resize(self.block.len().next_multiple_of(4), 0);
    }

    /// Ends options and block, and writes it.
    fn end(&mut self) -> Result<(), WriteError> {
        self.block.extend([0; 4]);
        let len = (self.block.len() as u32 + 4).to_le_bytes();
        self.block[4..8].copy_from_slice(&len);
        self.block.extend(len);
        let written = self.out.write_all(&self.block);
        written.map_err(|source| WriteError::io(source, self.written))?;
        self.written += self.block.len() as u64;
        Ok(())
    }
}
