//! The descriptions that records need to be read from the middle of a capture.

use std::io::Read;

use paceline_frame::Burst;

use crate::decoder::Decoder;
use crate::framing::Framing;
use crate::input::Input;
use crate::pcapng;
use crate::reader::CaptureReader;
use crate::{LinkType, ReadError};

/// Descriptions of records by the beginning of a capture or section. Plain data, which can be sent to where the records
/// are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// File header of a pcap capture; section header and interface descriptions of pcapng.
    pub bytes: Vec<u8>,
    /// Number of interfaces in earlier sections.
    pub interfaces_before: u32,
    /// Link type of the packets, that of the capture's first interface.
    pub link_type: LinkType,
}

impl Preamble {
    /// Reads the preamble at the beginning of a capture, and the offset of the record after it.
    ///
    /// # Errors
    /// [`ReadError`], as of [`CaptureReader::for_filters`].
    pub fn read(source: impl Read + Send) -> Result<(Self, u64), ReadError> {
        let mut kept = Kept { source, bytes: Vec::new() };
        let reader = CaptureReader::for_filters(&mut kept)?;
        let (link_type, start) = (reader.link().link_type, reader.position());
        let is_pcap = matches!(reader.decoder, Decoder::Pcap(_));
        let order = reader.link().order;
        drop(reader);
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        if is_pcap {
            kept.bytes.truncate(start);
            return Ok((Self { bytes: kept.bytes, interfaces_before: 0, link_type }, start as u64));
        }
        let Kept { source, bytes: read } = kept;
        let mut input = Input::new(read.as_slice().chain(source));
        let end = pcapng::end_of_descriptions(&mut input, start, order)?;
        let bytes = pcapng::descriptions(input.available().get(..end).unwrap_or_default(), order);
        Ok((Self { bytes, interfaces_before: 0, link_type }, end as u64))
    }

    /// A decoder of the records after it, and what it says of the capture.
    pub(crate) fn open(&self) -> Result<CaptureReader<'_>, ReadError> {
        let mut reader = CaptureReader::for_filters(self.bytes.as_slice())?;
        while reader.fill(&mut Burst::new(1))? > 0 {}
        reader.link.link_type = self.link_type;
        if let Decoder::Pcapng(decoder) = &mut reader.decoder {
            decoder.link_type = self.link_type;
            decoder.interfaces_before = self.interfaces_before;
            decoder.redescribed = None;
        }
        Ok(reader)
    }

    pub(crate) fn framing(&self) -> Result<Framing, ReadError> {
        Ok(self.open()?.decoder.framing())
    }
}

/// Keeps what is read.
struct Kept<R> {
    source: R,
    bytes: Vec<u8>,
}

impl<R: Read> Read for Kept<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.bytes.extend_from_slice(&buffer[..read]);
        Ok(read)
    }
}
