//! Captures: pcap and pcapng files to bursts and back.
//!
//! A [`CaptureReader`] and a [`CaptureWriter`] work on any stream, one packet or one burst at a time; [`replay()`](crate::replay())
//! connects them with a program between. Times are nanoseconds since 1970.

pub use paceline_capture::{
    AnnotatedWriter, ByteOrder, CaptureReader, CaptureWriter, Damage, Header, Heads, Link, LinkType, Lost,
    Notes, PacketLog, Part, PcapHeader, Preamble, ReadAt, ReadError, ReadFrom, Records, Resolution, Split,
    SplitOptions, WriteError, splits,
};
