//! Captures as bytes at any offset.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};

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
    place: Place,
    pub(crate) len: u64,
    pub(crate) compression: Option<Compression>,
}

impl std::fmt::Debug for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Source").finish_non_exhaustive()
    }
}

/// Where the bytes are.
#[derive(Clone)]
enum Place {
    Bytes(Arc<dyn Bytes>),
    /// A file that is open while it is read, so that any number of captures can be scanned.
    File(Arc<ClosedFile>),
}

/// A file that readers share while there are any.
struct ClosedFile {
    path: PathBuf,
    /// As it was first.
    first: Metadata,
    open: Mutex<Weak<File>>,
}

impl ClosedFile {
    /// The open file, which is the one that it was first.
    fn open(&self) -> io::Result<Arc<File>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = open.upgrade() {
            return Ok(file);
        }
        let file = File::open(&self.path)?;
        if !is_same(&self.first, &file.metadata()?) {
            return Err(io::Error::other(
                "it was written to, or another file has its place, since the scan began",
            ));
        }
        let file = Arc::new(file);
        *open = Arc::downgrade(&file);
        Ok(file)
    }
}

/// Whether a file has the bytes that it had before; it may have more. An inode alone is none's for ever: file systems give those of deleted
/// files to new ones.
fn is_same(before: &Metadata, now: &Metadata) -> bool {
    let file = |metadata: &Metadata| (metadata.dev(), metadata.ino(), metadata.created().ok());
    let state = |metadata: &Metadata| (metadata.len(), metadata.mtime(), metadata.mtime_nsec());
    file(before) == file(now) && (state(before) == state(now) || now.len() > before.len())
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
    /// A file, which is open only while it is read.
    ///
    /// # Errors
    /// [`Error::Open`], also for what has no bytes at an offset, as a pipe.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let name = path.as_ref().display().to_string();
        let open = || {
            let path = std::path::absolute(&path)?;
            let file = Arc::new(File::open(&path)?);
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                return Err(io::Error::other("it is no file, in which bytes can be read anywhere"));
            }
            let (len, open) = (metadata.len(), Mutex::new(Arc::downgrade(&file)));
            let closed = ClosedFile { path, first: metadata, open };
            Ok((file, Place::File(Arc::new(closed)), len))
        };
        match open() {
            Ok((file, place, len)) => Self::at(name, &*file, place, len),
            Err(source) => Err(Error::Open { name, source }),
        }
    }

    /// A source of `len` bytes.
    ///
    /// # Errors
    /// [`Error::Open`] if the first bytes cannot be read.
    pub fn new(name: impl Into<String>, bytes: Arc<dyn Bytes>, len: u64) -> Result<Self, Error> {
        let place = Place::Bytes(Arc::clone(&bytes));
        Self::at(name.into(), &*bytes, place, len)
    }

    fn at(name: String, bytes: &dyn Bytes, place: Place, len: u64) -> Result<Self, Error> {
        let mut start = [0; 4];
        let read = ReadFrom::new(bytes, 0).read_exact(&mut start);
        match read {
            Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Err(Error::Open { name, source: error })
            }
            _ => Ok(Self { name, place, len, compression: Compression::of(start) }),
        }
    }

    /// The bytes, of a file that is open as long as they are used.
    pub(crate) fn bytes(&self) -> Result<Arc<dyn Bytes>, Error> {
        match &self.place {
            Place::Bytes(bytes) => Ok(Arc::clone(bytes)),
            Place::File(file) => match file.open() {
                Ok(file) => Ok(file),
                Err(source) => Err(Error::Open { name: self.name.clone(), source }),
            },
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
    ///
    /// # Errors
    /// [`Error::Open`] if the file cannot be opened again.
    pub(crate) fn stream(&self, part: &Part) -> Result<Stream, Error> {
        let offset = part.split.as_ref().map_or(0, |split| split.start);
        let raw = ReadFrom::new(self.bytes()?, offset);
        Ok(match self.compression {
            None => Box::new(raw),
            Some(compression) => decompressed(raw, compression),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::*;

    #[test]
    fn a_file_that_was_changed_or_replaced_is_not_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.pcap");
        let read = |source: &Source| source.bytes().map(drop).map_err(|error| paceline::with_causes(&error));
        let opened = || {
            fs::write(&path, [1; 100]).expect("a file");
            Source::open(&path).expect("a source")
        };
        // One that grows is still the same, up to where it was.
        let source = opened();
        fs::write(&path, [1; 200]).expect("a longer file");
        assert_eq!(read(&source), Ok(()));
        // Changed where it is, at another time.
        let source = opened();
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        file.set_modified(SystemTime::now() + Duration::from_secs(1)).expect("a time");
        let changed = read(&source).expect_err("changed");
        assert!(changed.contains("a.pcap: it was written to, or another file has its place"), "{changed}");
        // Deleted, and another one made at once, which often gets the same inode.
        let source = opened();
        fs::remove_file(&path).expect("deleted");
        let deleted = read(&source).expect_err("deleted");
        assert!(deleted.contains("No such file"), "{deleted}");
        fs::write(&path, [2; 100]).expect("another file");
        let file = fs::OpenOptions::new().write(true).open(&path).expect("the file");
        // The clock of files may not have gone on.
        file.set_modified(SystemTime::now() + Duration::from_secs(2)).expect("a time");
        assert!(read(&source).is_err());
    }
}
