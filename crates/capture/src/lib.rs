//! Captures in the pcap and pcapng formats, read to bursts and written from them.
//!
//! A [`CaptureReader`] fills bursts from a byte stream, a [`CaptureWriter`] puts frames of those bursts back into
//! one. Between the two travel [`Records`]: what the capture holds beside the packets' bytes, as it was found.
//! Packets that nobody changed therefore come out byte for byte, in the format, byte order and time resolution
//! of the input.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use paceline_frame::{Burst, Verdict};
//! use paceline_capture::{CaptureReader, CaptureWriter};
//! # use paceline_capture::{Header, PcapHeader, Resolution};
//! # let (mut input, mut output) = (Vec::new(), Vec::new());
//! # let mut made = CaptureWriter::new(&mut input, &Header::Pcap(PcapHeader::new(Resolution::Nano)))?;
//! # made.push(&[7; 60], &Default::default())?;
//! # drop(made);
//!
//! let mut reader = CaptureReader::new(&input[..])?;
//! let mut passed = CaptureWriter::new(&mut output, reader.header())?;
//! let mut burst = Burst::default();
//! while reader.fill(&mut burst)? > 0 {
//!     for mut frame in burst.iter_mut() {
//!         frame.set_verdict(Verdict::Pass); // a program would do this
//!     }
//!     passed.write(&burst, reader.records(), |frame| frame.verdict() == Verdict::Pass)?;
//! }
//! passed.finish(reader.records())?; // blocks after the last packet, then everything buffered
//! # assert_eq!(output, input);
//! # Ok(())
//! # }
//! ```
//!
//! # What does not come out as it went in
//!
//! - A snapshot length below 65,535 becomes 262,144, in pcap headers and interface descriptions: a program can make
//!   packets longer, and libpcap cuts or refuses what is longer than the snapshot length. Captures that are read for
//!   filters ([`CaptureReader::for_filters`]) keep theirs.
//! - The header of a pcap version before 2.4 becomes one of 2.4, and records have the order of lengths of that version.
//! - The length of a pcapng section becomes unknown, since packets may be missing.
//! - `epb_hash` options, and custom options and blocks that are not to be copied by who edits a capture, are left out.
//! - A Simple Packet Block whose packet was cut, or has changed its length, becomes an Enhanced Packet Block with time
//!   stamp 0, the earliest of its interface.
//! - Padding after packets becomes zero.
//!
//! Statistics blocks stay as they were: they tell what was captured.
#![forbid(unsafe_code)]

mod byte_order;
mod error;
mod input;
mod link_type;
mod packet_log;
mod pcap;
mod pcapng;
mod pseudo_header;
mod reader;
mod records;
mod writer;

pub use byte_order::ByteOrder;
pub use error::{Part, ReadError, WriteError};
pub use link_type::LinkType;
pub use packet_log::PacketLog;
pub use pcap::{PcapHeader, Resolution};
pub use reader::{CaptureReader, Header, Link};
pub use records::Records;
pub use writer::CaptureWriter;
