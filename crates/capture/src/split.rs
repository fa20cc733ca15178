//! Parts of a capture that are read each on its own.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use crate::error::ReadError;
use crate::framing::{Found, Rest};
use crate::heads::Heads;
use crate::preamble::Preamble;
use crate::reader::CaptureReader;

/// Bytes that are read for a boundary at first.
const LOOKAHEAD: usize = 1 << 18;
/// Most bytes that are read for a boundary. If none is found, the records before are read, from the last boundary on.
const FARTHEST: usize = 16 << 20;

/// Bytes at any offset.
pub trait ReadAt {
    /// Reads some bytes from an offset on; 0 at the end.
    ///
    /// # Errors
    /// The bytes cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }
}

impl<T: ReadAt + ?Sized> ReadAt for Arc<T> {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(offset, buffer)
    }
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, buffer, offset)
    }
}

impl ReadAt for [u8] {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..));
        rest.unwrap_or_default().read(buffer)
    }
}

/// The bytes of a source from an offset on, in order.
#[derive(Clone, Copy, Debug)]
pub struct ReadFrom<S> {
    source: S,
    offset: u64,
}

impl<S> ReadFrom<S> {
    /// The bytes of `source` from `offset` on.
    pub fn new(source: S, offset: u64) -> Self {
        Self { source, offset }
    }
}

impl<S: ReadAt> Read for ReadFrom<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read_at(self.offset, buffer)?;
        self.offset += read as u64;
        Ok(read)
    }
}

/// A part of a capture: the records that begin from `start` on, before `end`. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    /// Descriptions that the records need.
    pub preamble: Preamble,
    /// Offset of the first record.
    pub start: u64,
    /// Offset after the last record.
    pub end: u64,
    /// Whether it is the last one, which no other follows.
    pub is_last: bool,
    /// Whether all records before its end were read for the cut ([`SplitOptions::walk`]), so that the parts behind it have the descriptions
    /// that are in it.
    pub is_walked: bool,
}

impl Split {
    /// A reader of the packets for filters, which goes on after damage. `source` gives the bytes of the capture from `start` on.
    ///
    /// # Errors
    /// [`ReadError`] if the preamble cannot be read.
    pub fn reader<'a>(&self, source: impl Read + Send + 'a) -> Result<CaptureReader<'a>, ReadError> {
        let mut reader = CaptureReader::resume(source, &self.preamble, self.start)?;
        if !self.is_last {
            reader.set_end(self.end);
        }
        Ok(reader.recovering())
    }

    /// Whether the parts behind this one can be read as they are, after its last packet was read. They cannot if a record reaches past its
    /// end, as bytes of a packet or damaged ones may look like records, or, in pcapng, if sections or interfaces are described in it. Then
    /// read on ([`CaptureReader::set_end`]), or cut with [`SplitOptions::walk`].
    #[must_use]
    pub fn leads_on(&self, reader: &CaptureReader<'_>) -> bool {
        let is_described = self.is_walked || reader.redescribed().is_none();
        self.is_last || is_described && reader.position() == self.end
    }
}

/// How a capture is cut.
#[derive(Clone, Copy, Debug)]
pub struct SplitOptions {
    /// Number of parts; there are fewer if a record is longer than a part.
    pub parts: usize,
    /// Read all records before a boundary, so that it is certain, and interfaces described between packets are known.
    pub walk: bool,
}

/// Cuts a capture of `len` bytes into parts at boundaries of records, which are found from the middle of the capture: places with four
/// records in a row. The reader of a part proves the boundary at its end, by coming to it ([`Split::leads_on`]): where all parts lead on,
/// their packets and losses are together those of one pass, whatever packets contain and however the capture is damaged.
///
/// # Errors
/// [`ReadError`] if this is no capture, or it cannot be read.
pub fn splits<S: ReadAt + Sync>(
    source: &S,
    len: u64,
    options: SplitOptions,
) -> Result<Vec<Split>, ReadError> {
    let (preamble, first) = Preamble::read(ReadFrom::new(source, 0))?;
    let mut cutter =
        Cutter { source, len, walk: options.walk, preamble, first: None, at: first, found: Vec::new() };
    cutter.first = cutter.first_second(first)?;
    let parts = options.parts.max(1) as u64;
    let body = len.saturating_sub(first);
    for part in 1..parts {
        let near =
            first + u64::try_from(u128::from(body) * u128::from(part) / u128::from(parts)).unwrap_or(body);
        cutter.cut(near)?;
    }
    cutter.push(len);
    let mut found = cutter.found;
    if let Some(last) = found.last_mut() {
        last.is_last = true;
    }
    Ok(found)
}

struct Cutter<'a, S> {
    source: &'a S,
    len: u64,
    walk: bool,
    preamble: Preamble,
    /// Second of the first record, if it is known.
    first: Option<u32>,
    /// The last boundary.
    at: u64,
    found: Vec<Split>,
}

impl<S: ReadAt + Sync> Cutter<'_, S> {
    /// Cuts at the boundary after an offset.
    fn cut(&mut self, near: u64) -> Result<(), ReadError> {
        if near <= self.at {
            return Ok(());
        }
        let found = if self.walk { None } else { self.search(near)? };
        match found {
            Some(end) => self.push(end),
            None => self.walk(near)?,
        }
        Ok(())
    }

    fn push(&mut self, end: u64) {
        // A capture without records is one part.
        if end > self.at || self.found.is_empty() && end == self.len {
            let (preamble, start) = (self.preamble.clone(), self.at);
            let is_walked = self.walk;
            self.found.push(Split { preamble, start, end, is_last: false, is_walked });
            self.at = end;
        }
    }

    /// The second of the record at an offset.
    fn first_second(&self, at: u64) -> Result<Option<u32>, ReadError> {
        let mut data = Vec::new();
        self.read(at, &mut data, 64)?;
        Ok(self.preamble.framing()?.second(&data))
    }

    /// The first place after an offset that looks like a boundary, if one is near.
    fn search(&self, near: u64) -> Result<Option<u64>, ReadError> {
        let framing = self.preamble.framing()?;
        let (mut data, mut from, mut needed) = (Vec::new(), 0, LOOKAHEAD);
        loop {
            let is_all = self.read(near, &mut data, needed)?;
            match framing.find_since(Rest { data: &data, is_all }, from, self.first) {
                Found::At(at) => return Ok(Some(near + at as u64)),
                Found::Nowhere => return Ok(Some(self.len)),
                Found::More { needed: more, .. } if more > FARTHEST => return Ok(None),
                Found::More { from: at, needed: more } => {
                    (from, needed) = (at, more.max(2 * data.len()).min(FARTHEST));
                }
            }
        }
    }

    /// Reads up to `needed` bytes from an offset on; whether the capture ends with them.
    fn read(&self, near: u64, data: &mut Vec<u8>, needed: usize) -> Result<bool, ReadError> {
        let offset = near + data.len() as u64;
        let left = self.len.saturating_sub(offset);
        let more = (needed.saturating_sub(data.len()) as u64).min(left);
        let mut source = ReadFrom::new(self.source, offset).take(more);
        let read = source.read_to_end(data).map_err(|source| ReadError::Io { offset, source })?;
        // A file may be shorter than it was.
        Ok((read as u64) < more || near + data.len() as u64 >= self.len)
    }

    /// Cuts at the boundary after an offset that a reader comes to.
    fn walk(&mut self, near: u64) -> Result<(), ReadError> {
        let source = ReadFrom::new(self.source, self.at);
        let mut reader = CaptureReader::resume(source, &self.preamble, self.at)?.recovering();
        reader.set_end(near);
        let mut heads = Heads::new(0);
        while reader.fill_heads(&mut heads)? > 0 {}
        let preamble = reader.preamble(&self.preamble);
        self.push(reader.position().min(self.len));
        self.preamble = preamble;
        Ok(())
    }
}
