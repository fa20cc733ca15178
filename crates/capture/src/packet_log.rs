//! Writing of packets without a source capture to pcapng.

use std::io::{self, Write};

const SECTION: u32 = 0x0a0d_0d0a;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
const INTERFACE: u32 = 1;
const ENHANCED_PACKET: u32 = 6;
const ETHERNET: u16 = 1;
const OPTION_COMMENT: u16 = 1;
const OPTION_INTERFACE_NAME: u16 = 2;
const OPTION_RESOLUTION: u16 = 9;
const OPTION_END: u16 = 0;

/// Writes Ethernet packets of several sources to pcapng: little-endian, with time stamps in nanoseconds and comments. Each source
/// is an interface of the capture.
pub struct PacketLog<W: Write> {
    out: W,
    sources: Vec<String>,
}

impl<W: Write> std::fmt::Debug for PacketLog<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PacketLog").finish_non_exhaustive()
    }
}

impl<W: Write> PacketLog<W> {
    /// Starts a capture.
    ///
    /// # Errors
    /// The I/O error of the output.
    pub fn new(mut out: W) -> io::Result<Self> {
        let mut body = BYTE_ORDER.to_le_bytes().to_vec();
        body.extend([1, 0, 0, 0]);
        // The section's length is unspecified.
        body.extend([0xff; 8]);
        write_block(&mut out, SECTION, &body)?;
        Ok(Self { out, sources: Vec::new() })
    }

    /// Writes a packet of a source. A new source becomes an interface with this name.
    ///
    /// # Errors
    /// The I/O error of the output.
    pub fn push(&mut self, source: &str, time_ns: u64, packet: &[u8], comment: &str) -> io::Result<()> {
        let interface = match self.sources.iter().position(|known| known == source) {
            Some(known) => known,
            None => self.add(source)?,
        };
        let len = packet.len() as u32;
        let words = [interface as u32, (time_ns >> 32) as u32, time_ns as u32, len, len];
        let mut body: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        body.extend_from_slice(packet);
        pad(&mut body);
        if !comment.is_empty() {
            put_option(&mut body, OPTION_COMMENT, comment.as_bytes());
            put_option(&mut body, OPTION_END, &[]);
        }
        write_block(&mut self.out, ENHANCED_PACKET, &body)
    }

    fn add(&mut self, source: &str) -> io::Result<usize> {
        let mut body = ETHERNET.to_le_bytes().to_vec();
        // Two reserved bytes, and a snapshot length of 0: no limit.
        body.extend([0; 6]);
        put_option(&mut body, OPTION_INTERFACE_NAME, source.as_bytes());
        put_option(&mut body, OPTION_RESOLUTION, &[9]);
        put_option(&mut body, OPTION_END, &[]);
        write_block(&mut self.out, INTERFACE, &body)?;
        self.sources.push(source.to_owned());
        Ok(self.sources.len() - 1)
    }

    /// Flushes the output.
    ///
    /// # Errors
    /// The I/O error of the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// An option; values longer than the length field allows are truncated.
fn put_option(body: &mut Vec<u8>, code: u16, value: &[u8]) {
    let value = value.get(..usize::from(u16::MAX)).unwrap_or(value);
    body.extend(code.to_le_bytes());
    body.extend((value.len() as u16).to_le_bytes());
    body.extend_from_slice(value);
    pad(body);
}

fn write_block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let len = (body.len() as u32 + 12).to_le_bytes();
    out.write_all(&[&kind.to_le_bytes()[..], &len, body, &len].concat())
}

#[cfg(test)]
mod tests {
    use paceline_frame::Burst;

    use super::*;
    use crate::reader::CaptureReader;

    #[test]
    fn what_is_written_can_be_read() {
        let mut bytes = Vec::new();
        let mut log = PacketLog::new(&mut bytes).unwrap();
        log.push("events", 1_700_000_000_123_456_789, &[1; 61], "one").unwrap();
        log.push("others", 7, &[2; 14], "").unwrap();
        log.push("events", 8, &[], "three").unwrap();
        let mut reader = CaptureReader::new(&bytes[..]).unwrap();
        let mut burst = Burst::default();
        assert_eq!(reader.fill(&mut burst).unwrap(), 3);
        let found: Vec<_> = burst
            .iter()
            .map(|frame| (frame.packet().to_vec(), frame.meta().timestamp_ns, frame.meta().interface))
            .collect();
        let first = (vec![1; 61], 1_700_000_000_123_456_789, 0);
        assert_eq!(found, [first, (vec![2; 14], 7, 1), (Vec::new(), 8, 0)]);
    }
}
