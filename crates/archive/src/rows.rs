//! Packets in columns.

use paceline::{FrameRef, Verdict};

/// The columns with bytes that are collected.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wanted {
    /// Packets as they were captured.
    pub input: bool,
    /// Packets as the program left them, or as they were captured without one.
    pub data: bool,
}

/// Bytes of packets, one after the other.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    /// All of them.
    pub bytes: Vec<u8>,
    /// End of each one.
    pub ends: Vec<usize>,
}

impl Texts {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    fn truncate(&mut self, len: usize) {
        self.ends.truncate(len);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    /// The bytes of a packet.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn get(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }
}

/// Packets of a capture that match, in columns of equal length; those that are not wanted are empty.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Index of the capture.
    pub capture: usize,
    /// Packets that were read for these, also those that do not match.
    pub read: u64,
    /// Offset of each record in the capture, of the decompressed bytes.
    pub offsets: Vec<u64>,
    /// Nanoseconds since 1970.
    pub times: Vec<u64>,
    /// Index of the interface in the capture.
    pub interfaces: Vec<u32>,
    /// Length on the wire in bytes.
    pub original: Vec<u32>,
    /// Captured length in bytes.
    pub captured: Vec<u32>,
    /// Length as the program left it; empty without a program.
    pub lengths: Vec<u32>,
    /// Verdicts of the program; empty without one.
    pub verdicts: Vec<Verdict>,
    /// Return values of the program; empty without one.
    pub codes: Vec<u32>,
    /// Packets as they were captured.
    pub input: Texts,
    /// Packets as the program left them.
    pub data: Texts,
}

impl Rows {
    /// Rows of a capture.
    #[must_use]
    pub fn of(capture: usize) -> Self {
        Self { capture, ..Self::default() }
    }

    /// Number of packets.
    #[must_use]
    pub fn len(&self) -> usize {
        self.offsets.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Number of bytes of packets.
    pub(crate) fn bytes(&self) -> usize {
        self.input.bytes.len() + self.data.bytes.len()
    }

    /// Adds the columns that are known before the program runs.
    pub(crate) fn push(&mut self, frame: FrameRef<'_>, packet: &[u8], offset: u64, wanted: Wanted) {
        let meta = frame.meta();
        self.offsets.push(offset);
        self.times.push(meta.timestamp_ns);
        self.interfaces.push(meta.interface);
        self.original.push(meta.original_len);
        self.captured.push(packet.len() as u32);
        if wanted.input {
            self.input.push(packet);
        }
    }

    /// Leaves the first packets.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.offsets.truncate(len);
        self.times.truncate(len);
        for column in
            [&mut self.interfaces, &mut self.original, &mut self.captured, &mut self.lengths, &mut self.codes]
        {
            column.truncate(len);
        }
        self.verdicts.truncate(len);
        self.input.truncate(len);
        self.data.truncate(len);
    }

    /// Adds the outcome of a packet.
    pub(crate) fn push_outcome(&mut self, frame: FrameRef<'_>, wanted: Wanted) {
        self.lengths.push(frame.len() as u32);
        self.verdicts.push(frame.verdict());
        self.codes.push(frame.code());
        if wanted.data {
            self.data.push(frame.packet());
        }
    }
}
