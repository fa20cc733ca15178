//! Reading of captures in either format.

use std::io::Read;

use paceline_frame::Burst;
use paceline_suggest::format_of;

use crate::byte_order::ByteOrder;
use crate::decoder::{Bytes, Decoder, Drained};
use crate::error::{Part, ReadError};
use crate::framing::{Found, Rest};
use crate::heads::Heads;
use crate::input::Input;
use crate::link::{Link, ReadFor};
use crate::link_type::LinkType;
use crate::lost::{Damage, Lost};
use crate::pcap::{self, PcapHeader};
use crate::pcapng;
use crate::records::{Layout, Records};
use crate::sink::{Sink, Step, Stop};
use crate::window::{Division, Places, Window};

/// The start of a capture, which a [`CaptureWriter`](crate::CaptureWriter) needs to write one of the same form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// The file header of a pcap capture.
    Pcap(PcapHeader),
    /// The first Section Header Block of a pcapng capture, in its own byte order.
    Pcapng(Box<[u8]>),
}

/// Reads a pcap or pcapng capture into bursts, in memory independent of the capture's length.
///
/// Packets have their captured length; [`FrameMeta::original_len`](paceline_frame::FrameMeta::original_len) is the wire length. All
/// pcap versions from 2.0 on are supported. A frame check sequence, if captured, is part of the packet.
///
/// Interfaces are numbered from 0 across all sections. [`FrameMeta::timestamp_ns`](paceline_frame::FrameMeta::timestamp_ns) is
/// rounded down to nanoseconds and clamped to 64 bits, from 1970 to 2554; the writer writes the time stamp as read.
pub struct CaptureReader<'a> {
    pub(crate) input: Input<'a>,
    pub(crate) header: Header,
    pub(crate) link: Link,
    pub(crate) decoder: Decoder,
    pub(crate) records: Records,
    /// Records from this offset on are left.
    pub(crate) until: u64,
    /// Bytes that gave no packets, if damage does not end the reading.
    pub(crate) lost: Option<Vec<Lost>>,
    pub(crate) done: bool,
}

impl std::fmt::Debug for CaptureReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CaptureReader").finish_non_exhaustive()
    }
}

impl<'a> CaptureReader<'a> {
    /// Opens a capture and reads its header.
    ///
    /// # Errors
    /// [`ReadError`] if the header is missing, if it is of an unknown format or version, or if a pcap capture's link type is not
    /// Ethernet.
    pub fn new(source: impl Read + Send + 'a) -> Result<Self, ReadError> {
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
    pub fn for_filters(source: impl Read + Send + 'a) -> Result<Self, ReadError> {
        Self::open(source, ReadFor::Filters)
    }

    fn open(source: impl Read + Send + 'a, read_for: ReadFor) -> Result<Self, ReadError> {
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
        mut input: Input<'a>,
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

    fn pcapng(mut input: Input<'a>, read_for: ReadFor) -> Result<Self, ReadError> {
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
            if !self.go_on(stop)? {
                return Ok(0);
            }
        }
    }

    /// Reads on after a stop without packets; false at the end.
    fn go_on(&mut self, stop: Stop) -> Result<bool, ReadError> {
        match stop {
            Stop::BurstFull => return Ok(false),
            Stop::Failed(error) => self.skip(*error)?,
            Stop::More(needed) => {
                if self.input.require(needed)? {
                    return Ok(true);
                }
                let left = self.input.available();
                if left.is_empty() {
                    return Ok(false);
                }
                self.skip(self.decoder.cut(left, self.input.offset(), needed))?;
            }
        }
        Ok(true)
    }
}

/// Reading for several threads.
impl CaptureReader<'_> {
    /// Fills a window with the next packets, and divides them into groups; returns their number, 0 at the end. Without packets,
    /// [`records`](Self::records) are the blocks after the last one.
    ///
    /// Blocks on the source only as long as it has found none.
    ///
    /// # Errors
    /// [`ReadError`], after all packets before the error were delivered. Later calls return 0.
    ///
    /// # Panics
    /// If a group has a number that is too high.
    pub fn fill_window(
        &mut self,
        window: &mut Window,
        division: &mut Division<impl FnMut(&[u8]) -> usize>,
    ) -> Result<usize, ReadError> {
        window.groups.resize_with(division.groups, Vec::new);
        window.groups.iter_mut().for_each(Vec::clear);
        window.order.clear();
        window.records = None;
        self.records.restart();
        if self.done || division.most == 0 {
            return Ok(0);
        }
        let filled = if division.keep_records {
            self.fill_places::<true>(window, division)
        } else {
            self.fill_places::<false>(window, division)
        };
        self.done = !matches!(filled, Ok(1..));
        filled
    }

    fn fill_places<const KEEPS_RECORDS: bool>(
        &mut self,
        window: &mut Window,
        division: &mut Division<impl FnMut(&[u8]) -> usize>,
    ) -> Result<usize, ReadError> {
        let Division { group_of, most, .. } = division;
        loop {
            let offset = self.input.offset();
            let (groups, order) = (&mut window.groups[..], &mut window.order);
            let group_of = &mut *group_of;
            let mut places =
                Places::<_, KEEPS_RECORDS> { groups, order, group_of, count: 0, most: *most, offset };
            let bytes = Bytes { data: self.input.available(), offset, until: self.until };
            let Drained { used, stop } = self.decoder.drain(bytes, &mut places, &mut self.records);
            let filled = places.count;
            if filled == 0 {
                self.input.consume(used);
                if self.go_on(stop)? {
                    continue;
                }
                return Ok(0);
            }
            window.offset = offset;
            window.filled = self.input.hand_over(used, &mut window.bytes);
            window.decoder = Some(self.decoder.of_packets());
            window.records = KEEPS_RECORDS.then(|| self.records.take());
            return Ok(filled);
        }
    }
}

/// Reading of parts of a capture, and beyond damage.
impl<'a> CaptureReader<'a> {
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

fn cut_header(input: &Input<'_>, needed: usize) -> ReadError {
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
    match COMPRESSED.iter().find(|(magic, _)| start.starts_with(magic)) {
        Some((_, program)) => ReadError::Compressed(program),
        None => match format_of(start) {
            Some(format) => ReadError::Foreign(format),
            None => ReadError::Unknown(start.iter().take(8).copied().collect()),
        },
    }
}
