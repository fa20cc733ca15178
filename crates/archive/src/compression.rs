//! Compressed captures: one stream, in which a boundary is found only after all before it is decompressed.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::sync::{Arc, Mutex, PoisonError};

use flate2::bufread::MultiGzDecoder;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

/// Size of reads of compressed bytes.
const BUFFER: usize = 1 << 18;
/// The largest window of a zstd frame in bytes, as of `zstd -d` without `--long`: each worker has one.
const MAX_WINDOW: u64 = 1 << 27;
/// A last block without bytes, and room for a checksum: it makes a decoder give the bytes of a window that it keeps.
const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];

/// A stream of a capture's bytes, without compression.
pub(crate) type Stream = Box<dyn Read + Send>;

/// A format of compression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952, of any number of members.
    Gzip,
    /// RFC 8878, of any number of frames.
    Zstd,
}

impl Compression {
    /// The compression of a file that starts with these bytes. A skippable frame may be the first one of zstd.
    pub(crate) fn of(start: [u8; 4]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd] | [0x50..=0x5f, 0x2a, 0x4d, 0x18] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// Name of the program that decompresses it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        }
    }
}

/// Decompresses a stream. Damage is an error of the kind `InvalidData`; others are those of the stream.
pub(crate) fn decompressed(source: impl Read + Send + 'static, compression: Compression) -> Stream {
    let failure = Arc::default();
    let source = BufReader::with_capacity(BUFFER, Noted { source, failure: Arc::clone(&failure) });
    match compression {
        Compression::Gzip => Box::new(Told { source: MultiGzDecoder::new(source), failure }),
        Compression::Zstd => Box::new(Told { source: Frames::new(source), failure }),
    }
}

/// The last error of a stream, which a decoder may wrap in one of its own.
type LastError = Arc<Mutex<Option<io::Error>>>;

/// Notes the errors of a stream.
struct Noted<R> {
    source: R,
    failure: LastError,
}

impl<R: Read> Read for Noted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer).map_err(|error| {
            let kind = error.kind();
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            kind.into()
        })
    }
}

/// Tells damage and errors of the stream apart.
struct Told<D> {
    source: D,
    failure: LastError,
}

impl<D: Read> Read for Told<D> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.source.read(buffer).map_err(|error| {
            let failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
            failure.unwrap_or_else(|| io::Error::new(ErrorKind::InvalidData, error))
        })
    }
}

/// The frames of a zstd stream, one after the other.
struct Frames<R> {
    source: R,
    decoder: FrameDecoder,
    is_in_frame: bool,
    /// Damage behind the bytes that are there.
    damage: Option<io::Error>,
}

impl<R: BufRead> Frames<R> {
    fn new(source: R) -> Self {
        let mut decoder = FrameDecoder::new();
        decoder.set_max_window_size(MAX_WINDOW);
        Self { source, decoder, is_in_frame: false, damage: None }
    }

    /// Begins the next frame; false at the end.
    fn begin(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.reset(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    io::copy(&mut self.source.by_ref().take(length.into()), &mut io::sink())?;
                }
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        Ok(false)
    }

    /// Ends a frame, whose checksum must be right.
    fn end(&mut self) -> io::Result<()> {
        self.is_in_frame = false;
        match (self.decoder.get_checksum_from_data(), self.decoder.get_calculated_checksum()) {
            (Some(told), Some(found)) if told != found => Err(io::Error::other("wrong checksum")),
            _ => Ok(()),
        }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.is_in_frame {
                if self.decoder.can_collect() > 0 {
                    return self.decoder.read(buffer);
                }
                if let Some(damage) = self.damage.take() {
                    return Err(damage);
                }
                if !self.decoder.is_finished() {
                    let strategy = BlockDecodingStrategy::UptoBytes(buffer.len());
                    if let Err(error) = self.decoder.decode_blocks(&mut self.source, strategy) {
                        self.damage = Some(io::Error::other(error));
                        // Without it the bytes before the damage would be lost.
                        let _ = self.decoder.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All);
                    }
                    continue;
                }
                self.end()?;
            }
            self.is_in_frame = self.begin()?;
            if !self.is_in_frame {
                return Ok(0);
            }
        }
    }
}
