//! Captures for the measurements.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Measured formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Pcap,
    PcapBigEndian,
    Pcapng,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Pcap => "pcap",
            Self::PcapBigEndian => "big-endian pcap",
            Self::Pcapng => "pcapng",
        }
    }

    fn bytes(self, fields: &[u32]) -> Vec<u8> {
        let bytes =
            |field: &u32| if self == Self::PcapBigEndian { field.to_be_bytes() } else { field.to_le_bytes() };
        fields.iter().flat_map(bytes).collect()
    }

    fn header(self) -> Vec<u8> {
        match self {
            Self::Pcap => self.bytes(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 262_144, 1]),
            Self::PcapBigEndian => self.bytes(&[0xa1b2_c3d4, 0x0002_0004, 0, 0, 262_144, 1]),
            Self::Pcapng => {
                let section = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 1, u32::MAX, u32::MAX, 28];
                self.bytes(&[&section[..], &[1, 20, 1, 262_144, 20]].concat())
            }
        }
    }

    /// A record: the fields before the packet, and those after it.
    fn record(self, number: u32, len: usize) -> (Vec<u8>, Vec<u8>) {
        let captured = len as u32;
        if self != Self::Pcapng {
            return (self.bytes(&[number / 1_000_000, number % 1_000_000, captured, captured]), Vec::new());
        }
        let padded = len.next_multiple_of(4);
        let block = padded as u32 + 32;
        let after = [vec![0; padded - len], self.bytes(&[block])].concat();
        (self.bytes(&[6, block, 0, 0, number, captured, captured]), after)
    }
}

/// Writes a capture of UDP packets of one length.
pub(crate) fn write(file: &Path, format: Format, packets: u32, len: usize) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(file)?);
    out.write_all(&format.header())?;
    let mut packet = vec![0; len];
    packet[..14].copy_from_slice(&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0]);
    packet[14] = 0x45;
    packet[23] = 17;
    for number in 0..packets {
        packet[30..34].copy_from_slice(&number.to_be_bytes());
        let (before, after) = format.record(number, len);
        out.write_all(&before)?;
        out.write_all(&packet)?;
        out.write_all(&after)?;
    }
    out.flush()
}
