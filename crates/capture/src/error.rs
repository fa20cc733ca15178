//! Errors of reading and writing captures.

use std::fmt;
use std::io;

use paceline_frame::MAX_PACKET;

use crate::link_type::LinkType;

/// Part of a capture, for the position of a truncation. Packets are numbered from 1, as in tcpdump and Wireshark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The header at the start of the file.
    FileHeader,
    /// A packet, with its record header.
    Packet(u64),
    /// A pcapng block without a packet.
    Block {
        /// Block type.
        kind: u32,
        /// Number of packets before it.
        after: u64,
    },
    /// Too few bytes to determine the part.
    Rest {
        /// Number of packets before it.
        after: u64,
    },
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FileHeader => write!(f, "the file header"),
            Self::Packet(number) => write!(f, "packet {number}"),
            Self::Block { kind, after } => write!(f, "a block of type {kind:#x} after packet {after}"),
            Self::Rest { after } => write!(f, "the record after packet {after}"),
        }
    }
}

/// Errors of reading a capture. `offset` is the position of the record's first byte in the capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system failed to read.
    #[error("cannot read after byte {offset}")]
    Io {
        /// Number of bytes read before.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// The capture is empty.
    #[error("the capture is empty: not even a file header")]
    Empty,
    /// The capture is compressed with this program.
    #[error("compressed with {0}: decompress it first")]
    Compressed(&'static str),
    /// A file of another known format.
    #[error("not a pcap or pcapng capture but {0}")]
    Foreign(&'static str),
    /// An unknown magic number.
    #[error("not a pcap or pcapng capture: it starts with {}", Hex(.0))]
    Unknown(Vec<u8>),
    /// The format's version is unknown.
    #[error("{format} version {major}.{minor} at byte {offset} is not known")]
    Version {
        /// `pcap` or `pcapng`.
        format: &'static str,
        /// Major number.
        major: u16,
        /// Minor number.
        minor: u16,
        /// Offset of the header.
        offset: u64,
    },
    /// A pcap file whose link type is not Ethernet.
    #[error("link type {0} is not supported, only {ethernet}", ethernet = LinkType::ETHERNET)]
    LinkType(LinkType),
    /// A packet of an interface whose link type differs from the reader's: Ethernet, or that of the capture's first interface.
    #[error(
        "packet {packet} at byte {offset}: link type {link_type} of interface {interface} is not supported, only {wanted}"
    )]
    PacketLinkType {
        /// Number of the packet.
        packet: u64,
        /// Offset of its block.
        offset: u64,
        /// Number of the interface in its section.
        interface: u32,
        /// Its link type.
        link_type: LinkType,
        /// The reader's link type.
        wanted: LinkType,
    },
    /// The capture ends within a record.
    #[error("cut in the middle of {part} at byte {offset}: {found} of {needed} bytes are there")]
    Cut {
        /// The truncated part.
        part: Part,
        /// Its offset.
        offset: u64,
        /// Its full length in bytes, as far as known.
        needed: u64,
        /// Its available length in bytes.
        found: u64,
    },
    /// A captured length that exceeds the maximum packet length.
    #[error("packet {packet} at byte {offset} claims {len} captured bytes, more than {limit}", limit = MAX_PACKET)]
    PacketTooLong {
        /// Number of the packet.
        packet: u64,
        /// Offset of its record.
        offset: u64,
        /// Captured length according to the record.
        len: u32,
    },
    /// A captured length that exceeds the packet's block.
    #[error("packet {packet} at byte {offset} claims {len} captured bytes, its block has room for {room}")]
    PacketExceedsBlock {
        /// Number of the packet.
        packet: u64,
        /// Offset of its block.
        offset: u64,
        /// Captured length according to the block.
        len: u32,
        /// Available bytes in the block.
        room: u64,
    },
    /// A packet of an interface without a preceding description.
    #[error("packet {packet} at byte {offset} belongs to interface {interface}, of {described} described")]
    NoInterface {
        /// Number of the packet.
        packet: u64,
        /// Offset of its block.
        offset: u64,
        /// Number of the interface.
        interface: u32,
        /// Number of interfaces described in the section so far.
        described: usize,
    },
    /// An invalid length of a pcapng block.
    #[error("block of type {kind:#x} at byte {offset} cannot have length {len}: {rule}")]
    BlockLength {
        /// Block type.
        kind: u32,
        /// Offset of the block.
        offset: u64,
        /// Length according to the block.
        len: u32,
        /// The violated rule.
        rule: &'static str,
    },
    /// The two lengths of a pcapng block differ.
    #[error(
        "block of type {kind:#x} at byte {offset} has length {first} at its start and {second} at its end"
    )]
    BlockLengths {
        /// Block type.
        kind: u32,
        /// Offset of the block.
        offset: u64,
        /// Length at the start.
        first: u32,
        /// Length at the end.
        second: u32,
    },
    /// An invalid byte-order magic of a section.
    #[error("section header at byte {offset} has byte-order magic {magic:#010x}")]
    ByteOrderMagic {
        /// Offset of the section header.
        offset: u64,
        /// The magic, read as big-endian.
        magic: u32,
    },
    /// A malformed option of an interface.
    #[error("interface description at byte {offset}: option {code} {cause}")]
    Option {
        /// Offset of the block.
        offset: u64,
        /// Option code.
        code: u16,
        /// The error.
        cause: &'static str,
    },
    /// A section with more interfaces than the maximum.
    #[error("more than {limit} interfaces in one section at byte {offset}")]
    Interfaces {
        /// Offset of the first interface that exceeds it.
        offset: u64,
        /// The maximum.
        limit: usize,
    },
    /// Too many bytes of blocks between packets.
    #[error("more than {limit} bytes of blocks without a packet between, at byte {offset}")]
    Blocks {
        /// Offset of the first block that exceeds the maximum.
        offset: u64,
        /// The maximum in bytes.
        limit: usize,
    },
}

/// Prints bytes in hexadecimal.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// Errors of writing a capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The reader of the output has closed it; a command exits silently.
    #[error("the reader of the output has closed it")]
    BrokenPipe,
    /// The operating system failed to write.
    #[error("cannot write after byte {offset}")]
    Io {
        /// Number of bytes written before.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// An earlier write failed, and the output may end within a record.
    #[error("nothing can be written after an error")]
    Failed,
    /// The layout of the packets' capture differs from that of the writer's header.
    #[error("packets of a {from} capture cannot go into a {to} capture")]
    Layout {
        /// Layout of the packets' records.
        from: &'static str,
        /// Layout of the output.
        to: &'static str,
    },
    /// The time stamp exceeds pcap's 32-bit seconds.
    #[error("time stamp {0} ns is past the year 2106, the end of pcap's seconds")]
    Timestamp(u64),
}

impl WriteError {
    pub(crate) fn io(source: io::Error, offset: u64) -> Self {
        if source.kind() == io::ErrorKind::BrokenPipe {
            Self::BrokenPipe
        } else {
            Self::Io { offset, source }
        }
    }
}
