//! Decoders of both formats, over bytes in memory.

use paceline_frame::{Burst, FrameMeta};

use crate::error::ReadError;
use crate::framing::Framing;
use crate::pcap;
use crate::pcapng;
use crate::records::{Layout, Records};
use crate::sink::{Place, Sink, Stop};

/// Result of decoding buffered bytes.
pub(crate) struct Drained {
    /// Bytes of the decoded records.
    pub(crate) used: usize,
    pub(crate) stop: Stop,
}

#[derive(Clone)]
pub(crate) enum Decoder {
    Pcap(pcap::Decoder),
    Pcapng(pcapng::Decoder),
}

impl Decoder {
    /// Decodes all complete records at the start of `data`, until the burst is full.
    pub(crate) fn drain(
        &mut self,
        bytes: Bytes<'_>,
        packets: &mut impl Sink,
        records: &mut Records,
    ) -> Drained {
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

    /// Adds the packets of the records at these places to a burst, until it is full; returns their number.
    pub(crate) fn take_each(
        &mut self,
        data: &[u8],
        offset: u64,
        places: &[u32],
        burst: &mut Burst,
    ) -> Result<usize, ReadError> {
        let mut unused = self.records();
        let places = places
            .iter()
            .map(|&place| (data.get(place as usize..).unwrap_or_default(), offset + u64::from(place)));
        let before = burst.len();
        let packets = &mut Frames(burst);
        let stop = match self {
            Self::Pcap(decoder) => places
                .map(|(data, offset)| decoder.take(data, offset, packets, &mut unused))
                .find_map(Result::err),
            Self::Pcapng(decoder) => places
                .map(|(data, offset)| decoder.take(data, offset, packets, &mut unused))
                .find_map(Result::err),
        };
        match stop {
            None | Some(Stop::BurstFull) => Ok(burst.len() - before),
            Some(Stop::Failed(error)) => Err(*error),
            Some(Stop::More(needed)) => Err(self.cut(data, offset, needed)),
        }
    }

    /// A decoder of the packets between the last section header and the next one.
    pub(crate) fn of_packets(&self) -> Self {
        match self {
            Self::Pcap(decoder) => Self::Pcap(*decoder),
            Self::Pcapng(decoder) => Self::Pcapng(decoder.of_packets()),
        }
    }

    /// No records, in the form of the capture's.
    fn records(&self) -> Records {
        match self {
            Self::Pcap(decoder) => decoder.shape.records(),
            Self::Pcapng(decoder) => Records::new(Layout::Pcapng, decoder.order()),
        }
    }

    pub(crate) fn framing(&self) -> Framing {
        match self {
            Self::Pcap(decoder) => Framing::Pcap(decoder.shape),
            Self::Pcapng(decoder) => Framing::Pcapng(decoder.order()),
        }
    }

    pub(crate) fn cut(&self, data: &[u8], offset: u64, needed: usize) -> ReadError {
        match self {
            Self::Pcap(decoder) => decoder.cut(data, offset, needed),
            Self::Pcapng(decoder) => decoder.cut(data, offset, needed),
        }
    }
}

/// A burst, whose packets are not written from the capture's records.
struct Frames<'a>(&'a mut Burst);

impl Sink for Frames<'_> {
    const KEEPS_RECORDS: bool = false;

    #[inline(always)]
    fn push(&mut self, packet: &[u8], meta: FrameMeta, place: Place) -> bool {
        Sink::push(self.0, packet, meta, place)
    }

    #[inline]
    fn count(&self) -> usize {
        self.0.len()
    }
}

/// Bytes to be decoded.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'a> {
    pub(crate) data: &'a [u8],
    /// Offset of the first one in the capture.
    pub(crate) offset: u64,
    /// Records from this offset on are left.
    pub(crate) until: u64,
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
