//! Rivals that read the same captures into the same bursts.

use std::error::Error;
#[cfg(feature = "rivals")]
use std::fs::File;
use std::path::Path;

use paceline_frame::{Burst, FrameMeta};

use super::work::Rival;
use super::workload::Format;

type Outcome = Result<u64, Box<dyn Error>>;

pub(super) fn of(format: Format) -> Vec<Rival> {
    let mut rivals: Vec<Rival> = Vec::new();
    #[cfg(feature = "rivals")]
    match format {
        Format::Pcap | Format::PcapBigEndian => {
            rivals.push((concat!("pcap-parser ", env!("VERSION_PCAP_PARSER")), parser_pcap));
            rivals.push((concat!("pcap-file ", env!("VERSION_PCAP_FILE")), file_pcap));
        }
        Format::Pcapng => {
            rivals.push((concat!("pcap-parser ", env!("VERSION_PCAP_PARSER")), parser_pcapng));
            rivals.push((concat!("pcap-file ", env!("VERSION_PCAP_FILE")), file_pcapng));
        }
    }
    #[cfg(feature = "libpcap")]
    rivals.push(("libpcap's pcap_next_ex", libpcap));
    #[cfg(not(feature = "rivals"))]
    let _ = format;
    rivals
}

/// Receiver of packets: a burst that is cleared when it is full, and a count.
struct Bursts {
    burst: Burst,
    packets: u64,
}

impl Bursts {
    fn new() -> Self {
        Self { burst: Burst::default(), packets: 0 }
    }

    fn push(&mut self, packet: &[u8], timestamp_ns: u64, original_len: u32) -> Result<(), Box<dyn Error>> {
        if self.burst.is_full() {
            self.burst.clear();
        }
        self.burst.push(packet, FrameMeta { timestamp_ns, original_len, interface: 0 })?;
        self.packets += 1;
        Ok(())
    }
}

/// Size of a rival's read buffer in bytes, which is ours.
#[cfg(feature = "rivals")]
const WINDOW: usize = 256 * 1024;

#[cfg(feature = "rivals")]
fn parser_pcap(file: &Path) -> Outcome {
    let reader = pcap_parser::LegacyPcapReader::new(WINDOW, File::open(file)?).map_err(|e| e.to_string())?;
    parser(reader)
}

#[cfg(feature = "rivals")]
fn parser_pcapng(file: &Path) -> Outcome {
    let reader = pcap_parser::PcapNGReader::new(WINDOW, File::open(file)?).map_err(|e| e.to_string())?;
    parser(reader)
}

#[cfg(feature = "rivals")]
fn parser(mut reader: impl pcap_parser::traits::PcapReaderIterator) -> Outcome {
    use pcap_parser::{Block, PcapBlockOwned, PcapError};
    let mut bursts = Bursts::new();
    loop {
        match reader.next() {
            Ok((used, block)) => {
                match block {
                    PcapBlockOwned::Legacy(packet) => {
                        let stamp =
                            u64::from(packet.ts_sec) * 1_000_000_000 + u64::from(packet.ts_usec) * 1_000;
                        bursts.push(packet.data, stamp, packet.origlen)?;
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        let stamp = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                        let bytes = packet.data.get(..packet.caplen as usize).unwrap_or_default();
                        bursts.push(bytes, stamp * 1_000, packet.origlen)?;
                    }
                    _ => {}
                }
                reader.consume_noshift(used);
            }
            Err(PcapError::Eof) => return Ok(bursts.packets),
            Err(PcapError::Incomplete(_)) => reader.refill().map_err(|e| e.to_string())?,
            Err(error) => return Err(error.to_string().into()),
        }
    }
}

#[cfg(feature = "rivals")]
fn file_pcap(file: &Path) -> Outcome {
    let mut reader = pcap_file::pcap::PcapReader::with_capacity(File::open(file)?, WINDOW)?;
    let mut bursts = Bursts::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet?;
        bursts.push(packet.data(), packet.timestamp().as_nanos() as u64, packet.orig_len())?;
    }
    Ok(bursts.packets)
}

#[cfg(feature = "rivals")]
fn file_pcapng(file: &Path) -> Outcome {
    let mut reader = pcap_file::pcapng::PcapNgReader::with_capacity(File::open(file)?, WINDOW)?;
    let mut bursts = Bursts::new();
    while let Some(block) = reader.next_block() {
        if let (pcap_file::pcapng::Block::EnhancedPacket(packet), _) = block? {
            bursts.push(&packet.data, packet.timestamp.as_nanos() as u64, packet.original_len)?;
        }
    }
    Ok(bursts.packets)
}

#[cfg(feature = "libpcap")]
fn libpcap(file: &Path) -> Outcome {
    let mut capture = pcap::Capture::from_file_with_precision(file, pcap::Precision::Nano)?;
    let mut bursts = Bursts::new();
    loop {
        match capture.next_packet() {
            Ok(packet) => {
                let stamp = packet.header.ts;
                let nanoseconds = stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_usec as u64;
                bursts.push(packet.data, nanoseconds, packet.header.len)?;
            }
            Err(pcap::Error::NoMorePackets) => return Ok(bursts.packets),
            Err(error) => return Err(error.into()),
        }
    }
}
