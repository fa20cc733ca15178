//! Reading of captures in either format.

use std::io::Read;

use paceline_frame::Burst;

use crate::batch::{Batch, Sink};
use crate::byte_order::ByteOrder;
use crate::framing::{Found, Framing, Rest, Step};
use crate::heads::Heads;
use crate::input::Input;
use crate::lost::{Damage, Lost};
use crate::pcap::{self, PcapHeader};
use crate::pcapng;
use crate::preamble::Preamble;
use crate::records::{Layout, Records};
use crate::{LinkType, Part, ReadError};

/// Reason why a decoder stopped.
pub(crate) enum Stop {
    /// The burst is full, or the next packets cannot be in the same burst.
    BurstFull,
    /// The next record requires at least this many bytes.
    More(usize),
    /// The next record is invalid. Boxed, so that the common case moves few bytes.
    Failed(Box<ReadError>),
}

impl From<ReadError> for Stop {
    fn from(error: ReadError) -> Self {
        Self::Failed(Box::new(error))
    }
}

/// Result of decoding buffered bytes.
struct Drained {
    /// Bytes of the decoded records.
    used: usize,
    stop: Stop,
}

pub(crate) enum Decoder {
    Pcap(pcap::Decoder),
    Pcapng(pcapng::Decoder),
}

impl Decoder {
    /// Decodes all complete records at the start of `data`, until the burst is full.
    fn drain(&mut self, bytes: Bytes<'_>, packets: &mut impl Sink, records: &mut Records) -> Drained {
        // The format is matched once per call, not per record.
        match self {
            Self::Pcap(decoder) => {
                take_all(bytes, |data, offset| decoder.take(data, offset, packets, records))
            }
            Self::Pcapng(decoder) => {
                take_all(bytes, |data, offset| decoder.take(data, offset, packets, records))
            }
        }
    }

    pub(crate) fn framing(&self) -> Framing {
        match self {
            Self::Pcap(decoder) => Framing::Pcap(decoder.shape),
            Self::Pcapng(decoder) => Framing::Pcapng(decoder.order()),
        }
    }

    fn cut(&self, data: &[u8], offset: u64, needed: usize) -> ReadError {
        match self {
            Self::Pcap(decoder) => decoder.cut(data, offset, needed),
            Self::Pcapng(decoder) => decoder.cut(data, offset, needed),
        }
    }
}

/// Bytes to be decoded.
#[derive(Clone, Copy)]
struct Bytes<'a> {
    data: &'a [u8],
    /// Offset of the first one in the capture.
    offset: u64,
    /// Records from this offset on are left.
    until: u64,
}

/// Decodes records in sequence; `take` returns the length of the record it decoded.
fn take_all(bytes: Bytes<'_>, mut take: impl FnMut(&[u8], u64) -> Result<usize, Stop>) -> Drained {
    let Bytes { data, offset, until } = bytes;
    let mut used = 0;
    loop {
        let rest = data.get(used..).unwrap_or_default();
        if offset + used as u64 >= until {
            return Drained { used, stop: Stop::BurstFull };
        }
        match take(rest, offset + used as u64) {
            Ok(len) => used += len,
            Err(stop) => return Drained { used, stop },
        }
    }
}

/// The start of a capture, which a [`CaptureWriter`](crate::CaptureWriter) needs to write one of the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// The file header of a pcap capture.
    Pcap(PcapHeader),
    /// The first Section Header Block of a pcapng capture, in its own byte order.
    Pcapng(Box<[u8]>),
}

/// Common properties of a capture's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Type of their link-layer header.
    pub link_type: LinkType,
    /// Maximum captured length in bytes, as determined by libpcap: its maximum for the link type if the capture contains 0 or more
    /// than 2^31 - 1.
    pub snaplen: u32,
    /// Byte order of the capturing machine, which some link-layer headers use as well.
    pub order: ByteOrder,
}

impl Link {
    /// The link of a capture with this snapshot length in its header.
    pub(crate) fn new(link_type: LinkType, snaplen: u32, order: ByteOrder) -> Self {
        let said = (1..=i32::MAX.cast_unsigned()).contains(&snaplen);
        Self { link_type, snaplen: if said { snaplen } else { link_type.max_snaplen() }, order }
    }
}

impl Default for Link {
    /// Ethernet frames without a snapshot limit, in native byte order.
    fn default() -> Self {
        Self::new(LinkType::ETHERNET, 0, ByteOrder::NATIVE)
    }
}

/// The consumer of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFor {
    /// XDP programs, which process Ethernet only and can make packets longer.
    Programs,
    /// Filters, which see packets as libpcap's do.
    Filters,
}

/// Reads a pcap or pcapng capture into bursts, in memory independent of the capture's length.
///
/// Packets have their captured length; [`FrameMeta::original_len`](paceline_frame::FrameMeta::original_len) is the wire length. All
/// pcap versions from 2.0 on are supported. A frame check sequence, if captured, is part of the packet.
///
/// Interfaces are numbered from 0 across all sections. [`FrameMeta::timestamp_ns`](paceline_frame::FrameMeta::timestamp_ns) is
/// rounded down to nanoseconds and clamped to 64 bits, from 1970 to 2554; the writer writes the time stamp as read.
pub struct CaptureReader<R> {
    input: Input<R>,
    header: Header,
    pub(crate) link: Link,
    pub(crate) decoder: Decoder,
    records: Records,
    /// Records from this offset on are left.
    until: u64,
    /// Bytes that gave no packets, if damage does not end the reading.
    lost: Option<Vec<Lost>>,
    done: bool,
}

impl<R: Read> CaptureReader<R> {
    /// Opens a capture and reads its header.
    ///
    /// # Errors
    /// [`ReadError`] if the header is missing, if it is of an unknown format or version, or if a pcap capture's link type is not
    /// Ethernet.
    pub fn new(source: R) -> Result<Self, ReadError> {
        let reader = Self::open(source, ReadFor::Programs)?;
        match reader.link.link_type {
            LinkType::ETHERNET => Ok(reader),
            other => Err(ReadError::LinkType(other)),
        }
    }

    /// Opens a capture whose packets are for filters, by libpcap's rules: of any link type, but all packets of the same one, in
    /// pcapng that of the first interface; in pcap truncated to the snapshot length of the header.
    ///
    /// # Errors
    /// [`ReadError`] if the header is missing, or of an unknown format or version.
    pub fn for_filters(source: R) -> Result<Self, ReadError> {
        Self::open(source, ReadFor::Filters)
    }

    fn open(source: R, read_for: ReadFor) -> Result<Self, ReadError> {
        let mut input = Input::new(source);
        if !input.require(4)? && input.available().is_empty() {
            return Err(ReadError::Empty);
        }
        let magic = input.available().first_chunk::<4>().copied();
        if let Some(format) = magic.and_then(PcapHeader::recognize) {
            Self::pcap(input, format, read_for)
        } else if magic.map(u32::from_be_bytes) == Some(pcapng::SECTION_HEADER) {
            Self::pcapng(input, read_for)
        } else {
            input.require(8)?;
            Err(unknown(input.available()))
        }
    }

    fn pcap(
        mut input: Input<R>,
        format: (ByteOrder, Layout, pcap::Resolution),
        read_for: ReadFor,
    ) -> Result<Self, ReadError> {
        input.require(pcap::FILE_HEADER)?;
        let Some(&bytes) = input.available().first_chunk() else {
            return Err(cut_header(&input, pcap::FILE_HEADER));
        };
        let (header, link, decoder) = PcapHeader::decode(bytes, format, read_for)?;
        input.consume(pcap::FILE_HEADER);
        Ok(Self {
            input,
            link,
            decoder: Decoder::Pcap(decoder),
            records: Records::new(header.layout, header.order),
            header: Header::Pcap(header),
            until: u64::MAX,
            lost: None,
            done: false,
        })
    }

    fn pcapng(mut input: Input<R>, read_for: ReadFor) -> Result<Self, ReadError> {
        let mut decoder = pcapng::Decoder::new(read_for);
        let header = loop {
            let needed = match decoder.section(input.available(), 0) {
                Ok(block) => break Box::<[u8]>::from(block),
                Err(Stop::Failed(error)) => return Err(*error),
                Err(Stop::More(needed)) => needed,
                Err(Stop::BurstFull) => return Err(cut_header(&input, 0)),
            };
            if !input.require(needed)? {
                return Err(cut_header(&input, needed));
            }
        };
        input.consume(header.len());
        let mut link = Link::default();
        if read_for == ReadFor::Filters {
            link = pcapng::first_interface(&mut input, decoder.order())?.unwrap_or(link);
            decoder.link_type = link.link_type;
        }
        Ok(Self {
            input,
            link,
            records: Records::new(Layout::Pcapng, decoder.order()),
            decoder: Decoder::Pcapng(decoder),
            header: Header::Pcapng(pcapng::unsized_section(header)),
            until: u64::MAX,
            lost: None,
            done: false,
        })
    }

    /// The start of the capture.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Properties of the packets, as far as the start of the capture determines them.
    #[must_use]
    pub fn link(&self) -> Link {
        self.link
    }

    /// The capture's other contents for the packets of the last [`fill`](Self::fill). After a `fill` without packets, or a failed
    /// one, these are the blocks after the last packet.
    #[must_use]
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Number of packets delivered so far.
    #[must_use]
    pub fn packets(&self) -> u64 {
        match &self.decoder {
            Decoder::Pcap(decoder) => decoder.packets,
            Decoder::Pcapng(decoder) => decoder.packets,
        }
    }

    /// Clears the burst and fills it with the next packets; returns their number, 0 at the end.
    ///
    /// Blocks on the source only while the burst is empty, so that a burst from a pipe may be short.
    ///
    /// # Errors
    /// [`ReadError`], after all packets before the error were delivered. Later calls return 0.
    pub fn fill(&mut self, burst: &mut Burst) -> Result<usize, ReadError> {
        burst.clear();
        self.fill_sink(burst)
    }

    /// Adds the next packets to a batch; returns their number, 0 at the end or if it is full. [`records`](Self::records) are those of
    /// these packets.
    ///
    /// Blocks on the source only as long as it has found none.
    ///
    /// # Errors
    /// [`ReadError`], after all packets before the error were delivered. Later calls return 0.
    pub fn fill_batch(&mut self, batch: &mut Batch) -> Result<usize, ReadError> {
        if batch.is_full() {
            return Ok(0);
        }
        self.fill_sink(batch)
    }

    fn fill_sink(&mut self, packets: &mut impl Sink) -> Result<usize, ReadError> {
        self.records.restart();
        if self.done {
            return Ok(0);
        }
        let result = self.fill_some(packets);
        self.done = !matches!(result, Ok(1..));
        result
    }

    fn fill_some(&mut self, packets: &mut impl Sink) -> Result<usize, ReadError> {
        let before = packets.count();
        loop {
            let bytes =
                Bytes { data: self.input.available(), offset: self.input.offset(), until: self.until };
            let Drained { used, stop } = self.decoder.drain(bytes, packets, &mut self.records);
            self.input.consume(used);
            let filled = packets.count() - before;
            if filled > 0 {
                // The next call stops at the same record again, and reports it.
                return Ok(filled);
            }
            match stop {
                Stop::BurstFull => return Ok(0),
                Stop::Failed(error) => self.skip(*error)?,
                Stop::More(needed) => {
                    if self.input.require(needed)? {
                        continue;
                    }
                    let left = self.input.available();
                    if left.is_empty() {
                        return Ok(0);
                    }
                    self.skip(self.decoder.cut(left, self.input.offset(), needed))?;
                }
            }
        }
    }
}

/// Reading of parts of a capture, and beyond damage.
impl<R: Read> CaptureReader<R> {
    /// Reads the records of a capture from the middle: `source` gives the bytes from the offset `at` on, a boundary of records, to the
    /// end of the capture. Packets are for filters, as with [`for_filters`](Self::for_filters).
    ///
    /// # Errors
    /// [`ReadError`] if the preamble cannot be read.
    pub fn resume(source: R, preamble: &Preamble, at: u64) -> Result<Self, ReadError> {
        let CaptureReader { header, link, decoder, records, .. } = preamble.open()?;
        let (input, until, lost) = (Input::at(source, at), u64::MAX, None);
        Ok(Self { input, header, link, decoder, records, until, lost, done: false })
    }

    /// Leaves the records that begin at this offset or behind it.
    pub fn set_end(&mut self, offset: u64) {
        self.until = offset;
        self.done = false;
    }

    /// Goes on after damage, and notes what is lost. Records after it are found by their headers: four in a row that look like those
    /// of packets.
    #[must_use]
    pub fn recovering(mut self) -> Self {
        self.lost = Some(Vec::new());
        self
    }

    /// Takes what was lost since the last call.
    pub fn take_lost(&mut self) -> Vec<Lost> {
        self.lost.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Offset of the next record.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.input.offset()
    }

    /// Offset of the first section or interface that was described after the preamble of [`resume`](Self::resume). Parts behind it need
    /// another preamble: [`preamble`](Self::preamble).
    #[must_use]
    pub fn redescribed(&self) -> Option<u64> {
        match &self.decoder {
            Decoder::Pcap(_) => None,
            Decoder::Pcapng(decoder) => decoder.redescribed,
        }
    }

    /// The preamble of the records from here on, for a reader of `before`.
    #[must_use]
    pub fn preamble(&self, before: &Preamble) -> Preamble {
        match &self.decoder {
            Decoder::Pcap(_) => before.clone(),
            Decoder::Pcapng(decoder) => Preamble {
                bytes: decoder.descriptions.clone(),
                interfaces_before: decoder.interfaces_before,
                link_type: decoder.link_type,
            },
        }
    }

    /// Fills heads with the next packets; returns their number, 0 at the end. No records are kept for a writer.
    ///
    /// # Errors
    /// [`ReadError`], after all packets before the error were delivered. Later calls return 0.
    pub fn fill_heads(&mut self, heads: &mut Heads) -> Result<usize, ReadError> {
        heads.clear();
        self.fill_sink(heads)
    }

    /// The bytes of a packet of the last [`fill_heads`](Self::fill_heads), all that were captured.
    #[must_use]
    #[inline]
    pub fn packet(&self, heads: &Heads, index: usize) -> &[u8] {
        let (offset, len) = heads.bytes(index);
        self.input.kept(offset, len)
    }

    /// Skips a record that cannot be read, and with damaged boundaries all bytes up to the next record.
    #[cold]
    fn skip(&mut self, error: ReadError) -> Result<(), ReadError> {
        let damage = self.lost.as_ref().and_then(|_| Damage::of(&error));
        let Some(damage) = damage else { return Err(error) };
        let from = self.input.offset();
        match self.decoder.framing().step(self.input.available()) {
            Step::Record(len) if len <= self.input.available().len() => self.input.consume(len),
            _ => self.find_record()?,
        }
        let to = self.input.offset();
        self.lost.get_or_insert_default().push(Lost { from, to, damage });
        Ok(())
    }

    /// Consumes bytes up to the next record, at least one.
    fn find_record(&mut self) -> Result<(), ReadError> {
        let (framing, mut from) = (self.decoder.framing(), 1);
        loop {
            let rest = Rest { data: self.input.available(), is_all: self.input.has_ended() };
            let needed = match framing.find(rest, from) {
                Found::At(at) => {
                    self.input.consume(at);
                    return Ok(());
                }
                Found::Nowhere => {
                    self.input.consume(self.input.available().len());
                    return Ok(());
                }
                Found::More { from: next, needed } => {
                    let used = next.min(self.input.available().len());
                    self.input.consume(used);
                    from = next - used;
                    needed - used
                }
            };
            self.input.require(needed)?;
        }
    }
}

fn cut_header<R: Read>(input: &Input<R>, needed: usize) -> ReadError {
    let found = input.available().len() as u64;
    ReadError::Cut { part: Part::FileHeader, offset: 0, needed: needed as u64, found }
}

/// The error for a file that is no capture.
fn unknown(start: &[u8]) -> ReadError {
    const COMPRESSED: [(&[u8], &str); 6] = [
        (&[0x1f, 0x8b], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
        (b"BZh", "bzip2"),
        (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
        (b"PK\x03\x04", "zip"),
    ];
    const FOREIGN: [(&[u8], &str); 5] = [
        (b"\x7fELF", "an ELF object"),
        (b"snoop\0\0\0", "a snoop capture"),
        (b"GMBU", "a Network Monitor capture"),
        (b"RTSS", "a Network Monitor capture"),
        (b"TRSNIFF", "a Sniffer capture"),
    ];
    let find = |table: &[(&[u8], &'static str)]| {
        table.iter().find(|(magic, _)| start.starts_with(magic)).map(|&(_, name)| name)
    };
    if let Some(program) = find(&COMPRESSED) {
        ReadError::Compressed(program)
    } else if let Some(kind) = find(&FOREIGN) {
        ReadError::Foreign(kind)
    } else {
        ReadError::Unknown(start.iter().take(8).copied().collect())
    }
}
