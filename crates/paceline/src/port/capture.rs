//! Captures as ports.

use std::fmt;
use std::io::{self, Read, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use paceline_capture::{CaptureReader, CaptureWriter, Header, PcapHeader, ReadError, Resolution, WriteError};
use paceline_frame::{Burst, FrameMeta};
use paceline_port::{Group, Port, PortError};

/// Receives the packets of a capture, and writes sent packets to another one, in the pcap format with nanoseconds. Without an
/// output, sent packets are counted only.
///
/// [`replay`](crate::replay()) is the way to change a capture and keep all else that it holds.
pub struct CapturePort {
    reader: Option<CaptureReader<Box<dyn Read + Send>>>,
    writer: Option<CaptureWriter<Box<dyn Write + Send>>>,
    is_done: bool,
}

impl CapturePort {
    /// A port of an input, an output, both or none.
    ///
    /// # Errors
    /// [`PortError::Io`] if the output's header cannot be written.
    pub fn new(
        input: Option<CaptureReader<Box<dyn Read + Send>>>,
        output: Option<Box<dyn Write + Send>>,
    ) -> Result<Self, PortError> {
        let header = Header::Pcap(PcapHeader::new(Resolution::Nano));
        let writer = output.map(|output| CaptureWriter::new(output, &header)).transpose();
        let is_done = input.is_none();
        Ok(Self { reader: input, writer: writer.map_err(written)?, is_done })
    }
}

impl Port for CapturePort {
    fn receive(&mut self, burst: &mut Burst) -> Result<usize, PortError> {
        let Some(reader) = self.reader.as_mut().filter(|_| !self.is_done && !burst.is_full()) else {
            return Ok(0);
        };
        let added = if burst.is_empty() { reader.fill(burst).map_err(read)? } else { add(reader, burst)? };
        self.is_done = added == 0;
        Ok(added)
    }

    fn send(&mut self, group: Group<'_>) -> Result<usize, PortError> {
        let Some(writer) = &mut self.writer else { return Ok(group.len()) };
        for frame in group.iter() {
            let len = frame.len() as u32;
            let timestamp_ns = match frame.meta().timestamp_ns {
                0 => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64),
                time => time,
            };
            let original_len = frame.meta().original_len.max(len);
            writer
                .push(frame.packet(), &FrameMeta { timestamp_ns, original_len, ..*frame.meta() })
                .map_err(written)?;
        }
        Ok(group.len())
    }

    fn is_done(&self) -> bool {
        self.is_done
    }

    fn stop(&mut self) {
        self.is_done = true;
    }
}

/// Adds packets to a burst that has some: a reader clears the burst that it fills.
fn add(reader: &mut CaptureReader<Box<dyn Read + Send>>, burst: &mut Burst) -> Result<usize, PortError> {
    let mut next = Burst::default();
    let room = burst.room();
    next.limited(room, |next| reader.fill(next)).map_err(read)?;
    for frame in next.iter() {
        // A packet that fits into one burst fits into another.
        let _ = burst.push(frame.packet(), *frame.meta());
    }
    Ok(next.len())
}

fn read(error: ReadError) -> PortError {
    io::Error::new(io::ErrorKind::InvalidData, error).into()
}

fn written(error: WriteError) -> PortError {
    io::Error::other(error).into()
}

impl fmt::Debug for CapturePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CapturePort")
            .field("reads", &self.reader.is_some())
            .field("writes", &self.writer.is_some())
            .finish_non_exhaustive()
    }
}
