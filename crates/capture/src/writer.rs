//! Writing of captures in either format.

use std::io::{self, Write};

use paceline_frame::{Burst, FrameMeta, FrameRef};

use crate::byte_order::ByteOrder;
use crate::error::WriteError;
use crate::pcap::PcapHeader;
use crate::pcap::Resolution;
use crate::pcapng::{self, ALTERED_BY_EDITING, Options};
use crate::reader::Header;
use crate::records::{Layout, PacketRecord, Records};

/// Size of the output buffer in bytes.
const GATHER: usize = 256 * 1024;

/// Writes a capture in the format of the packets' source capture.
///
/// The output receives whole records only, at the latest after a burst that was not full. Dropping the writer flushes it, but only
/// [`finish`](Self::finish) reports errors of that.
pub struct CaptureWriter<'a> {
    /// `None` after a write error.
    out: Option<Box<dyn Write + Send + 'a>>,
    buffer: Vec<u8>,
    /// Number of bytes written to the output.
    written: u64,
    layout: Layout,
    order: ByteOrder,
    resolution: Resolution,
    /// Number of the reader's fill that was written last.
    last_fill: u64,
    packets: u64,
    keeps_wire_length: bool,
}

impl std::fmt::Debug for CaptureWriter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureWriter").finish_non_exhaustive()
    }
}

impl<'a> CaptureWriter<'a> {
    /// Starts a capture with this header.
    ///
    /// # Errors
    /// [`WriteError`] if the header cannot be written.
    pub fn new(out: impl Write + Send + 'a, header: &Header) -> Result<Self, WriteError> {
        let mut writer = Self {
            out: Some(Box::new(out)),
            buffer: Vec::with_capacity(GATHER + GATHER / 4),
            written: 0,
            layout: Layout::Pcapng,
            order: ByteOrder::Little,
            resolution: Resolution::Nano,
            last_fill: 0,
            packets: 0,
            keeps_wire_length: false,
        };
        match header {
            Header::Pcap(header) => writer.start_pcap(header),
            Header::Pcapng(section) => writer.buffer.extend_from_slice(section),
        }
        // Report an unwritable output before the first packet.
        writer.flush()?;
        Ok(writer)
    }

    fn start_pcap(&mut self, header: &PcapHeader) {
        (self.layout, self.order, self.resolution) = (header.layout, header.order, header.resolution);
        self.buffer.extend_from_slice(&header.bytes);
    }

    /// Lets packets that became shorter keep their length on the wire: they are cut, as packets of a socket whose filter keeps their start.
    pub fn keep_wire_length(&mut self) {
        self.keeps_wire_length = true;
    }

    /// Number of packets written so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// Writes the packets of a burst that `select` accepts, and the blocks between them. `records` is that of the reader which
    /// filled the burst.
    ///
    /// For a packet whose length changed, the new length is recorded, and the wire length changes by the same amount, unless
    /// [`keep_wire_length`](Self::keep_wire_length) says that it is cut.
    ///
    /// # Errors
    /// [`WriteError`]; later writes fail as well.
    pub fn write(
        &mut self,
        burst: &Burst,
        records: &Records,
        mut select: impl FnMut(FrameRef<'_>) -> bool,
    ) -> Result<(), WriteError> {
        let packets = burst.iter().map(|frame| select(frame).then(|| frame.into_packet()));
        self.write_selected(packets, burst.is_full(), records)
    }

    /// As [`write`](Self::write), for packets that are in no burst, in the order of the reader's; `None` are left out. `more` says that
    /// others follow at once, so that the output need not be flushed.
    ///
    /// # Errors
    /// [`WriteError`]; later writes fail as well.
    pub fn write_selected<'p>(
        &mut self,
        packets: impl Iterator<Item = Option<&'p [u8]>>,
        more: bool,
        records: &Records,
    ) -> Result<(), WriteError> {
        if records.layout != self.layout {
            return Err(WriteError::Layout { from: records.layout.name(), to: self.layout.name() });
        }
        self.order = records.order;
        let mut blocks = self.blocks_to_write(records);
        let mut given = 0;
        for (index, (packet, record)) in packets.zip(&records.packets).enumerate() {
            given = index + 1;
            while let Some((_, block)) = blocks.next_if(|&(after, _)| after <= index) {
                self.buffer.extend_from_slice(block);
            }
            if let Some(packet) = packet {
                self.put(packet, record, records.options(record));
                self.hand_on_when_full()?;
            }
        }
        // Packets that are not given are behind the end of what is written, and so are blocks behind them.
        while let Some((_, block)) = blocks.next_if(|&(after, _)| after <= given) {
            self.buffer.extend_from_slice(block);
        }
        // A short burst means that the source has no more data for now, so the output is flushed for a reader at the end of a pipe.
        // For files, this happens once per window of the reader.
        if more { self.hand_on_when_full() } else { self.flush() }
    }

    /// Writes a packet without a source capture, with a time stamp in the header's resolution.
    ///
    /// # Errors
    /// [`WriteError`]; [`WriteError::Layout`] if this is not a plain pcap capture.
    pub fn push(&mut self, packet: &[u8], meta: &FrameMeta) -> Result<(), WriteError> {
        if self.layout != Layout::Pcap {
            return Err(WriteError::Layout { from: Layout::Pcap.name(), to: self.layout.name() });
        }
        let seconds = u32::try_from(meta.timestamp_ns / 1_000_000_000)
            .map_err(|_| WriteError::Timestamp(meta.timestamp_ns))?;
        let fraction = meta.timestamp_ns % 1_000_000_000 / self.resolution.nanoseconds();
        for field in [seconds, fraction as u32, packet.len() as u32, meta.original_len] {
            self.buffer.extend_from_slice(&self.order.bytes(field));
        }
        self.buffer.extend_from_slice(packet);
        self.packets += 1;
        self.hand_on_when_full()
    }

    /// Writes the blocks after the last packet and flushes the output.
    ///
    /// # Errors
    /// [`WriteError`].
    pub fn finish(mut self, records: &Records) -> Result<(), WriteError> {
        if records.layout == self.layout {
            for (_, block) in self.blocks_to_write(records) {
                self.buffer.extend_from_slice(block);
            }
        }
        self.flush()
    }

    /// Writes all buffered data to the output and flushes it.
    ///
    /// # Errors
    /// [`WriteError`]; later writes fail as well.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.hand_on()?;
        self.try_with(|out| out.flush())
    }

    /// Blocks of `records`, unless they were already written.
    fn blocks_to_write<'r>(
        &mut self,
        records: &'r Records,
    ) -> std::iter::Peekable<impl Iterator<Item = (usize, &'r [u8])> + use<'r>> {
        let known = std::mem::replace(&mut self.last_fill, records.fill) == records.fill;
        records.blocks().filter(move |_| !known).peekable()
    }

    fn put(&mut self, packet: &[u8], record: &PacketRecord, options: &[u8]) {
        // Frames are shorter than 4 GiB.
        let captured = packet.len() as u32;
        let grown = captured.wrapping_sub(record.captured) as i32;
        let grown = if self.keeps_wire_length { grown.max(0) } else { grown };
        let original = record.original.saturating_add_signed(grown);
        match self.layout {
            Layout::Pcap | Layout::PcapModified => self.put_pcap(packet, record, captured, original),
            Layout::Pcapng => self.put_pcapng(packet, record, options, captured, original),
        }
        self.packets += 1;
    }

    fn put_pcap(&mut self, packet: &[u8], record: &PacketRecord, captured: u32, original: u32) {
        let mut head = record.head;
        head[8..12].copy_from_slice(&self.order.bytes(captured));
        head[12..16].copy_from_slice(&self.order.bytes(original));
        self.buffer.extend_from_slice(&head[..self.layout.pcap_head()]);
        self.buffer.extend_from_slice(packet);
    }

    fn put_pcapng(
        &mut self,
        packet: &[u8],
        record: &PacketRecord,
        options: &[u8],
        captured: u32,
        original: u32,
    ) {
        let start = self.buffer.len();
        let mut head = record.head;
        if self.order.u32(&head, 0) == pcapng::SIMPLE_PACKET {
            if captured == record.captured {
                self.buffer.extend_from_slice(&head[..pcapng::SIMPLE_HEAD]);
                self.put_body(packet, &[], start);
                return;
            }
            // A Simple Packet Block has no captured length: it is derived from the interface's snapshot length, which no longer
            // applies. An Enhanced Packet Block with interface 0 and time stamp 0 replaces it.
            head.fill(0);
            head[0..4].copy_from_slice(&self.order.bytes(pcapng::ENHANCED_PACKET));
        }
        head[20..24].copy_from_slice(&self.order.bytes(captured));
        head[24..28].copy_from_slice(&self.order.bytes(original));
        self.buffer.extend_from_slice(&head);
        self.put_body(packet, options, start);
    }

    /// Appends packet, padding and options, and sets both lengths of the block that begins at `start`.
    fn put_body(&mut self, packet: &[u8], options: &[u8], start: usize) {
        self.buffer.extend_from_slice(packet);
        self.buffer.extend_from_slice(&[0; 3][..packet.len().next_multiple_of(4) - packet.len()]);
        if !options.is_empty() {
            self.put_options(options);
        }
        let len = self.order.bytes((self.buffer.len() - start + 4) as u32);
        self.buffer.extend_from_slice(&len);
        self.buffer[start + 4..start + 8].copy_from_slice(&len);
    }

    #[cold]
    fn put_options(&mut self, bytes: &[u8]) {
        let mut options = Options::new(bytes, self.order);
        while let Some(Ok(option)) = options.next() {
            if !ALTERED_BY_EDITING.contains(&option.code) {
                self.buffer.extend_from_slice(option.whole);
            }
        }
        // The end-of-options option, or malformed options, which are copied unchanged.
        self.buffer.extend_from_slice(options.rest());
    }

    #[inline]
    fn hand_on_when_full(&mut self) -> Result<(), WriteError> {
        if self.buffer.len() >= GATHER { self.hand_on() } else { Ok(()) }
    }

    fn hand_on(&mut self) -> Result<(), WriteError> {
        let buffer = std::mem::take(&mut self.buffer);
        self.try_with(|out| out.write_all(&buffer))?;
        self.written += buffer.len() as u64;
        self.buffer = buffer;
        self.buffer.clear();
        Ok(())
    }

    /// Performs an operation on the output. After an error the output may end within a record, and must not be written again.
    fn try_with(&mut self, action: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), WriteError> {
        let mut out = self.out.take().ok_or(WriteError::Failed)?;
        action(&mut out).map_err(|error| WriteError::io(error, self.written))?;
        self.out = Some(out);
        Ok(())
    }
}

impl Drop for CaptureWriter<'_> {
    fn drop(&mut self) {
        // Errors are reported by `finish` only.
        let _ = self.flush();
    }
}
