//! Captures as bytes at any offset.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use paceline::capture::{ReadAt, ReadFrom, Split};

use crate::compression::{Compression, Stream, decompressed};
use crate::error::Error;

/// Bytes of a capture, wherever they are.
pub trait Bytes: ReadAt + Send + Sync {}

impl<T: ReadAt + Send + Sync> Bytes for T {}

/// A capture, perhaps compressed.
#[derive(Clone)]
pub struct Source {
    /// Name for messages.
    pub name: String,
    pub(crate) bytes: Arc<dyn Bytes>,
    pub(crate) len: u64,
    pub(crate) compression: Option<Compression>,
}

/// A part of a capture, which is read on its own. Plain data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The records; all of them if there is none, as in compressed captures.
    pub split: Option<Split>,
    /// Whether the parts behind it are read elsewhere, so that it cannot be read on in their place.
    pub is_alone: bool,
}

impl Part {
    /// A whole capture.
    pub const WHOLE: Self = Self { split: None, is_alone: false };
}

impl Source {
    /// Opens a file.
    ///
    /// # Errors
    /// [`Error::Open`], also for what has no bytes at an offset, as a pipe.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let name = path.as_ref().display().to_string();
        let open = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(io::Error::other("it is no file, in which bytes can be read anywhere"));
            }
            Ok((file, metadata.len()))
        };
        match open() {
            Ok((file, len)) => Self::new(name, Arc::new(file), len),
            Err(source) => Err(Error::Open { name, source }),
        }
    }

    /// A source of `len` bytes.
    ///
    /// # Errors
    /// [`Error::Open`] if the first bytes cannot be read.
    pub fn new(name: impl Into<String>, bytes: Arc<dyn Bytes>, len: u64) -> Result<Self, Error> {
        let (name, mut start) = (name.into(), [0; 4]);
        let read = ReadFrom::new(&bytes, 0).read_exact(&mut start);
        match read {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(Error::Open { name, source: error })
            }
            _ => Ok(Self { name, bytes, len, compression: Compression::of(start) }),
        }
    }

    /// Length in bytes, compressed if it is.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How it is compressed.
    #[must_use]
    pub fn compression(&self) -> Option<Compression> {
        self.compression
    }

    /// The bytes of the capture, from the beginning of a part on.
    pub(crate) fn stream(&self, part: &Part) -> Stream {
        let offset = part.split.as_ref().map_or(0, |split| split.start);
        let raw = ReadFrom::new(Arc::clone(&self.bytes), offset);
        match self.compression {
            None => Box::new(raw),
            Some(compression) => decompressed(raw, compression),
        }
    }
}
