//! Reading from the middle of a capture.

use std::io::Read;

use paceline_frame::Burst;

use crate::decoder::Decoder;
use crate::error::ReadError;
use crate::framing::Framing;
use crate::input::Input;
use crate::pcapng;
use crate::preamble::Preamble;
use crate::reader::CaptureReader;

impl<'a> CaptureReader<'a> {
    /// Reads the records of a capture from the middle: `source` gives the bytes from the offset `at` on, a boundary of records, to the
    /// end of the capture. Packets are for filters, as with [`for_filters`](Self::for_filters).
    ///
    /// # Errors
    /// [`ReadError`] if the preamble cannot be read.
    pub fn resume(source: impl Read + Send + 'a, preamble: &Preamble, at: u64) -> Result<Self, ReadError> {
        let CaptureReader { header, link, decoder, records, .. } = preamble.open()?;
        let (input, until, lost) = (Input::at(source, at), u64::MAX, None);
        Ok(Self { input, header, link, decoder, records, until, lost, done: false })
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
