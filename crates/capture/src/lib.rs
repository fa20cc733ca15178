//! Captures in the pcap and pcapng formats: reading into bursts and writing from them.
//!
//! A [`CaptureReader`] fills bursts from a byte stream, a [`CaptureWriter`] writes frames of these bursts to one. [`Records`] carry
//! everything else in the capture, unchanged. Packets that were not changed are therefore written byte for byte as they were read,
//! in the format, byte order and time resolution of the input.
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
//! # Differences between input and output
//!
//! - A snapshot length below 65,535 becomes 262,144, in pcap headers and interface descriptions: a program can make packets longer,
//!   and libpcap truncates or refuses packets above the snapshot length. Captures that are read for filters
//!   ([`CaptureReader::for_filters`]) keep theirs.
//! - The header of a pcap version before 2.4 becomes one of 2.4, and records have that version's order of lengths.
//! - The length of a pcapng section becomes unspecified, since packets may be missing.
//! - `epb_hash` options, and custom options and blocks that editing tools must not copy, are omitted.
//! - A Simple Packet Block whose packet was truncated, or whose length has changed, becomes an Enhanced Packet Block with time
//!   stamp 0, the earliest of its interface.
//! - Padding after packets becomes zero.
//!
//! Statistics blocks are unchanged: they describe the original capture.
#![forbid(unsafe_code)]

mod annotated;
mod byte_order;
mod decoder;
mod error;
mod framing;
mod heads;
mod input;
mod link;
mod link_type;
mod lost;
pub mod packet;
mod packet_log;
mod pcap;
mod pcapng;
mod preamble;
mod pseudo_header;
mod reader;
mod records;
mod resume;
mod sink;
mod split;
mod window;
mod writer;

pub use annotated::{AnnotatedWriter, Notes};
pub use byte_order::ByteOrder;
pub use error::{Part, ReadError, WriteError};
pub use heads::Heads;
pub use link::Link;
pub use link_type::LinkType;
pub use lost::{Damage, Lost};
pub use packet_log::PacketLog;
pub use pcap::{PcapHeader, Resolution};
pub use preamble::Preamble;
pub use reader::{CaptureReader, Header};
pub use records::Records;
pub use split::{ReadAt, ReadFrom, Split, SplitOptions, splits};
pub use window::{Division, GroupReader, Window};
pub use writer::CaptureWriter;
