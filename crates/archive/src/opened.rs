//! Captures whose header is read, and their parts.

use paceline::capture::{CaptureReader, Header, Link, LinkType, SplitOptions, splits};
use paceline::filter::PacketFilter;

use crate::error::Error;
use crate::source::{Part, Source};

/// A capture whose header is read, with the filter for its packets.
#[derive(Clone)]
pub struct Opened {
    /// The capture.
    pub source: Source,
    /// Its header.
    pub header: Header,
    /// Properties of its packets.
    pub link: Link,
    /// The filter; without one all packets match.
    pub filter: Option<PacketFilter>,
}

impl std::fmt::Debug for Opened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opened").finish_non_exhaustive()
    }
}

impl Opened {
    /// Reads the header of a capture.
    ///
    /// # Errors
    /// [`Error::Read`] if this is no capture.
    pub fn open(source: Source, filter: Option<PacketFilter>) -> Result<Self, Error> {
        let stream = source.stream(&Part::WHOLE)?;
        let reader = CaptureReader::for_filters(stream).map_err(|error| Error::read(&source.name, error))?;
        let (header, link) = (reader.header().clone(), reader.link());
        Ok(Self { source, header, link, filter })
    }

    /// Cuts the capture into about so many parts. A compressed capture is one part: a boundary in it is known only when all before it
    /// is decompressed.
    ///
    /// With `walk`, the records before a boundary are read, so that it is certain ([`SplitOptions::walk`]).
    ///
    /// # Errors
    /// [`Error::Read`]
    pub fn parts(&self, parts: usize, walk: bool) -> Result<Vec<Part>, Error> {
        if self.source.compression.is_some() {
            return Ok(vec![Part::WHOLE]);
        }
        let found = splits(&self.source.bytes()?, self.source.len, SplitOptions { parts, walk });
        let found = found.map_err(|error| Error::read(&self.source.name, error))?;
        Ok(found.into_iter().map(|split| Part { split: Some(split), is_alone: false }).collect())
    }

    /// Checks that programs can run on the packets.
    ///
    /// # Errors
    /// [`Error::LinkType`]
    pub fn check_for_programs(&self) -> Result<(), Error> {
        let (name, link_type) = (self.source.name.clone(), self.link.link_type);
        if link_type == LinkType::ETHERNET { Ok(()) } else { Err(Error::LinkType { name, link_type }) }
    }
}
