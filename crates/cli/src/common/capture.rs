//! Captures as input.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use paceline::capture::{CaptureReader, ReadError};
use paceline::{Burst, FrameMeta};

use super::failure::CommandError;
use super::files::Taken;
use super::packets::processed;

static TRAFFIC: &[u8] = include_bytes!("../../../../examples/traffic.pcap");

/// The reason why a capture cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaptureError {
    #[error("{name}")]
    Open { name: String, source: io::Error },
    #[error("{name}")]
    Read { name: String, source: Box<ReadError>, processed: u64 },
}

impl CommandError for CaptureError {
    fn hint(&self) -> Option<String> {
        let Self::Read { name, source, processed: packets } = self else { return None };
        match **source {
            ReadError::Compressed(program @ ("gzip" | "zstd" | "xz" | "bzip2" | "lz4")) => {
                Some(format!("say `{program} -dc {name} | paceline ... --in -`"))
            }
            ReadError::Foreign("an ELF file") => {
                Some(format!("objects are not given with --in: `paceline run {name} --in CAPTURE`"))
            }
            ReadError::PacketLinkType { .. } => {
                let done = processed(*packets).map(|text| format!("; {text}")).unwrap_or_default();
                Some(format!("all packets must be of one link type{done}"))
            }
            _ => processed(*packets),
        }
    }
}

/// Reads a capture's header: [`CaptureReader::new`] or [`CaptureReader::for_filters`].
pub(crate) type ReadHeader = fn(Counted) -> Result<CaptureReader<'static>, ReadError>;

/// A capture, with its header read.
pub(crate) struct Capture {
    /// For messages.
    pub(crate) name: String,
    pub(crate) reader: CaptureReader<'static>,
    /// Its length in bytes, where it is known.
    pub(crate) size: Option<u64>,
    /// Bytes read so far.
    pub(crate) position: Arc<AtomicU64>,
    /// The file that no output may replace.
    pub(crate) file: Option<Taken>,
}

impl Capture {
    /// Opens a capture; `read` reads its header.
    pub(crate) fn open(path: Option<&Path>, read: ReadHeader) -> Result<Self, CaptureError> {
        match path {
            None => {
                let size = Some(TRAFFIC.len() as u64);
                Self::read("built-in capture".to_owned(), Box::new(TRAFFIC), size, None, read)
            }
            Some(path) if path == Path::new("-") => {
                let name = "standard input".to_owned();
                let file = io::stdin().as_fd().try_clone_to_owned().map(File::from);
                let file = file.map_err(|source| CaptureError::Open { name: name.clone(), source })?;
                Self::file(name, file, read)
            }
            Some(path) => {
                let name = path.display().to_string();
                let file =
                    File::open(path).map_err(|source| CaptureError::Open { name: name.clone(), source })?;
                Self::file(name, file, read)
            }
        }
    }

    fn file(name: String, file: File, read: ReadHeader) -> Result<Self, CaptureError> {
        let metadata = file.metadata().ok();
        let size = metadata.as_ref().filter(|m| m.is_file()).map(std::fs::Metadata::len);
        let taken = metadata.and_then(|m| Taken::of(&m, &format!("the capture {name}")));
        Self::read(name, Box::new(file), size, taken, read)
    }

    fn read(
        name: String,
        source: Box<dyn Read + Send>,
        size: Option<u64>,
        file: Option<Taken>,
        read: ReadHeader,
    ) -> Result<Self, CaptureError> {
        let position = Arc::new(AtomicU64::new(0));
        let reader = read(Counted { source, position: position.clone() }).map_err(|source| {
            CaptureError::Read { name: name.clone(), source: Box::new(source), processed: 0 }
        })?;
        Ok(Self { name, reader, size, position, file })
    }
}

/// A packet of a capture, in memory.
#[derive(Clone, Debug)]
pub(crate) struct CapturedPacket {
    pub(crate) bytes: Vec<u8>,
    pub(crate) meta: FrameMeta,
}

impl Capture {
    /// Reads up to so many packets.
    pub(crate) fn read_packets(&mut self, most: usize) -> Result<Vec<CapturedPacket>, CaptureError> {
        let (mut burst, mut packets) = (Burst::default(), Vec::new());
        while packets.len() < most {
            let processed = packets.len() as u64;
            let failed =
                |source| CaptureError::Read { name: self.name.clone(), source: Box::new(source), processed };
            if self.reader.fill(&mut burst).map_err(failed)? == 0 {
                break;
            }
            let read = burst
                .iter()
                .map(|frame| CapturedPacket { bytes: frame.packet().to_vec(), meta: *frame.meta() });
            packets.extend(read.take(most - packets.len()));
        }
        Ok(packets)
    }
}

/// Counts the bytes that are read, for the progress bar.
pub(crate) struct Counted {
    source: Box<dyn Read + Send>,
    position: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.source.read(buffer)?;
        self.position.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}
