//! A sliding window over the bytes of a capture.

use std::io::{self, ErrorKind, Read};
use std::ops::Range;

use crate::error::ReadError;

/// Size of reads in bytes: large enough to make system calls rare, small enough that the data stays in the second-level cache
/// between the kernel's copy and its use.
const WINDOW: usize = 256 * 1024;
/// Size in bytes of a buffer that is handed over to other threads, for fewer hand-overs. A reader alone is faster with a smaller one.
const SHARED_WINDOW: usize = 1 << 20;

/// Buffered bytes of a capture.
pub(crate) struct Input<'a> {
    /// Called once for each window, so that readers of all sources are the same code.
    source: Box<dyn Read + Send + 'a>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset of `buffer[start]` in the capture.
    offset: u64,
    ended: bool,
}

impl<'a> Input<'a> {
    pub(crate) fn new(source: impl Read + Send + 'a) -> Self {
        Self { source: Box::new(source), buffer: vec![0; WINDOW], start: 0, end: 0, offset: 0, ended: false }
    }

    /// The bytes of a capture from an offset on.
    pub(crate) fn at(source: impl Read + Send + 'a, offset: u64) -> Self {
        Self { offset, ..Self::new(source) }
    }

    /// Whether the capture ends with the buffered bytes.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended
    }

    /// Bytes at an offset, which may be consumed: they are there until others are required.
    #[inline]
    pub(crate) fn kept(&self, offset: u64, len: usize) -> &[u8] {
        let back = self.offset.wrapping_sub(offset);
        let start = self.start.wrapping_sub(back as usize);
        self.buffer.get(start..start.wrapping_add(len)).unwrap_or_default()
    }

    /// The buffered bytes.
    #[inline]
    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Offset of the first buffered byte in the capture.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Discards the first `used` bytes, which must be buffered.
    pub(crate) fn consume(&mut self, used: usize) {
        debug_assert!(used <= self.available().len());
        self.start += used;
        self.offset += used as u64;
    }

    /// Hands over the first `used` bytes, which must be buffered, in exchange for a buffer; returns where they are.
    pub(crate) fn hand_over(&mut self, used: usize, buffer: &mut Vec<u8>) -> Range<usize> {
        let (taken, rest) = (self.start..self.start + used, self.start + used..self.end);
        buffer.resize(SHARED_WINDOW.max(rest.len()), 0);
        let left = self.buffer.get(rest).unwrap_or_default();
        buffer[..left.len()].copy_from_slice(left);
        (self.start, self.end) = (0, left.len());
        self.offset += used as u64;
        std::mem::swap(&mut self.buffer, buffer);
        taken
    }

    /// Reads until `needed` bytes are buffered; returns `false` if the capture ends before.
    pub(crate) fn require(&mut self, needed: usize) -> Result<bool, ReadError> {
        while self.available().len() < needed {
            if self.ended {
                return Ok(false);
            }
            self.make_room(needed);
            match self.source.read(&mut self.buffer[self.end..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.end += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
        Ok(true)
    }

    fn failed(&self, source: io::Error) -> ReadError {
        ReadError::Io { offset: self.offset + self.available().len() as u64, source }
    }

    /// Moves the remaining bytes to the front if the needed ones do not fit behind them. The buffer grows only as bytes arrive, so that a
    /// wrong length in a record costs no memory, and to twice the needed bytes, so that small steps through long records do not move
    /// them each time.
    fn make_room(&mut self, needed: usize) {
        if self.start + needed <= self.buffer.len() {
            return;
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.buffer.len() < 2 * needed && self.buffer.len() <= 2 * self.end {
            let len = (2 * needed).clamp(self.end + 1, self.end * 2);
            self.buffer.resize(len.max(self.buffer.len()), 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns one byte per read, with an interruption before each.
    struct Slow<'a>(&'a [u8], bool);

    impl Read for Slow<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(ErrorKind::Interrupted.into());
            }
            let len = self.0.len().min(buffer.len()).min(1);
            self.0.read(&mut buffer[..len])
        }
    }

    #[test]
    fn gathers_what_comes_in_small_pieces() {
        let mut input = Input::new(Slow(b"abcdef", false));
        assert!(input.require(4).unwrap());
        assert_eq!(input.available(), b"abcd");
        input.consume(3);
        assert_eq!((input.offset(), input.available()), (3, &b"d"[..]));
        assert!(!input.require(4).unwrap());
        assert_eq!(input.available(), b"def");
    }

    #[test]
    fn a_length_that_lies_costs_no_memory() {
        let mut input = Input::new(&b"abc"[..]);
        assert!(!input.require(1 << 40).unwrap());
        assert_eq!(input.buffer.len(), WINDOW);
    }

    #[test]
    fn the_window_grows_for_one_long_record() {
        let bytes: Vec<u8> = (0..WINDOW * 3).map(|i| (i % 251) as u8).collect();
        let mut input = Input::new(&bytes[..]);
        assert!(input.require(10).unwrap());
        input.consume(10);
        assert!(input.require(bytes.len() - 10).unwrap());
        assert_eq!(input.available(), &bytes[10..]);
        assert!(input.buffer.len() < bytes.len() + WINDOW);
    }
}
