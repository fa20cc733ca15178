//! The shipped capture: varied synthetic traffic, with the same bytes on every run.
//!
//! `cargo run -p paceline-testkit --bin paceline-testkit -- traffic examples` writes it. Addresses are those reserved for
//! documentation (RFC 5737, RFC 3849) and locally administered MAC addresses; the services are those of the example
//! programs: the balancer's 192.0.2.10 and 192.0.2.53, the firewall's blocked 203.0.113.66 and 198.51.100.7, the reflector's
//! 02:00:00:00:00:01.

mod conversations;
mod layers;
mod link;
mod network;
mod odd;
mod packets;
mod pcapng;
mod trace;

use paceline_capture::{CaptureWriter, Header, PcapHeader, Resolution, WriteError};
use paceline_frame::FrameMeta;

/// The capture in the pcap format: little-endian, microseconds.
///
/// # Errors
/// Never: a vector accepts all bytes.
pub fn pcap() -> Result<Vec<u8>, WriteError> {
    let mut out = Vec::new();
    let mut writer = CaptureWriter::new(&mut out, &Header::Pcap(PcapHeader::new(Resolution::Micro)))?;
    for packet in packets() {
        let meta =
            FrameMeta { timestamp_ns: packet.stamp * 1_000, original_len: packet.original, interface: 0 };
        writer.push(&packet.bytes, &meta)?;
    }
    writer.flush()?;
    drop(writer);
    Ok(out)
}

pub use packets::{SHORT, packets};
pub use pcapng::pcapng;
pub use trace::Packet;
