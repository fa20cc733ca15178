//! What can go wrong when a capture is read or written.

use std::fmt;
use std::io;

use paceline_frame::MAX_PACKET;

use crate::LinkType;

/// Part of a capture, to say where it was cut. Packets are numbered from 1, as tcpdump and Wireshark do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The header at the start of the file.
    FileHeader,
    /// A packet, with its record header.
    Packet(u64),
    /// A pcapng block that holds no packet.
    Block {
        /// Block type.
        kind: u32,
        /// Packets before it.
        after: u64,
    },
    /// So little that it is not clear what it was.
    Rest {
        /// Packets before it.
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

/// A capture cannot be read, or not to its end. `offset` is that of the record's first byte in the capture.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system failed to read.
    #[error("cannot read after byte {offset}: {source}")]
    Io {
        /// Bytes read before.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// There is not one byte.
    #[error("the capture is empty: not even a file header")]
    Empty,
    /// It is compressed, with the program named.
    #[error("compressed with {0}: decompress it first")]
    Compressed(&'static str),
    /// It is a file of another known kind.
    #[error("not a pcap or pcapng capture but {0}")]
    Foreign(&'static str),
    /// It starts with no known magic number.
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
        /// Where the header is.
        offset: u64,
    },
    /// All packets of a pcap file have a link type other than Ethernet.
    #[error("link type {0} is not supported, only {ethernet}", ethernet = LinkType::ETHERNET)]
    LinkType(LinkType),
    /// A packet belongs to an interface with another link type than the reader takes: Ethernet, or that of the
    /// capture's first interface.
    #[error(
        "packet {packet} at byte {offset}: link type {link_type} of interface {interface} is not supported, only {wanted}"
    )]
    PacketLinkType {
        /// Number of the packet.
        packet: u64,
        /// Where its block is.
        offset: u64,
        /// Number of the interface in its section.
        interface: u32,
        /// Its link type.
        link_type: LinkType,
        /// What the reader takes.
        wanted: LinkType,
    },
    /// The capture ends inside a record.
    #[error("cut in the middle of {part} at byte {offset}: {found} of {needed} bytes are there")]
    Cut {
        /// What was cut.
        part: Part,
        /// Where it starts.
        offset: u64,
        /// Length it should have, as far as it can be told.
        needed: u64,
        /// Length it has.
        found: u64,
    },
    /// A packet claims to be longer than any can be.
    #[error("packet {packet} at byte {offset} claims {len} captured bytes, more than {limit}", limit = MAX_PACKET)]
    PacketTooLong {
        /// Number of the packet.
        packet: u64,
        /// Where its record is.
        offset: u64,
        /// Claimed length.
        len: u32,
    },
    /// A packet claims more bytes than its block has.
    #[error("packet {packet} at byte {offset} claims {len} captured bytes, its block has room for {room}")]
    PacketExceedsBlock {
        /// Number of the packet.
        packet: u64,
        /// Where its block is.
        offset: u64,
        /// Claimed length.
        len: u32,
        /// Bytes the block has.
        room: u64,
    },
    /// A packet belongs to an interface that was not described before.
    #[error("packet {packet} at byte {offset} belongs to interface {interface}, of {described} described")]
    NoInterface {
        /// Number of the packet.
        packet: u64,
        /// Where its block is.
        offset: u64,
        /// Number of the interface.
        interface: u32,
        /// Interfaces described in the section up to here.
        described: usize,
    },
    /// A pcapng block's length is impossible.
    #[error("block of type {kind:#x} at byte {offset} cannot have length {len}: {rule}")]
    BlockLength {
        /// Block type.
        kind: u32,
        /// Where it is.
        offset: u64,
        /// Claimed length.
        len: u32,
        /// Rule that is broken.
        rule: &'static str,
    },
    /// A pcapng block's two lengths differ.
    #[error(
        "block of type {kind:#x} at byte {offset} has length {first} at its start and {second} at its end"
    )]
    BlockLengths {
        /// Block type.
        kind: u32,
        /// Where it is.
        offset: u64,
        /// Length at the start.
        first: u32,
        /// Length at the end.
        second: u32,
    },
    /// A section's byte-order magic is neither of the two.
    #[error("section header at byte {offset} has byte-order magic {magic:#010x}")]
    ByteOrderMagic {
        /// Where it is.
        offset: u64,
        /// What it has, read as big-endian.
        magic: u32,
    },
    /// An option of an interface is malformed.
    #[error("interface description at byte {offset}: option {code} {cause}")]
    Option {
        /// Where the block is.
        offset: u64,
        /// Option code.
        code: u16,
        /// What is wrong.
        cause: &'static str,
    },
    /// A section describes more interfaces than are kept.
    #[error("more than {limit} interfaces in one section at byte {offset}")]
    Interfaces {
        /// Where the first too many is.
        offset: u64,
        /// How many are kept.
        limit: usize,
    },
    /// Too many bytes of blocks without a packet between.
    #[error("more than {limit} bytes of blocks without a packet between, at byte {offset}")]
    Blocks {
        /// Where the first too many is.
        offset: u64,
        /// How many bytes are kept.
        limit: usize,
    },
}

/// Bytes in hexadecimal.
struct Hex<'a>(&'a [u8]);

impl fmt::Display for Hex<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, byte) in self.0.iter().enumerate() {
            write!(f, "{}{byte:02x}", if i == 0 { "" } else { " " })?;
        }
        Ok(())
    }
}

/// A capture cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WriteError {
    /// Whoever reads the output has gone; a command ends quietly.
    #[error("the reader of the output has closed it")]
    BrokenPipe,
    /// The operating system failed to write.
    #[error("cannot write after byte {offset}: {source}")]
    Io {
        /// Bytes written before.
        offset: u64,
        /// The cause.
        source: io::Error,
    },
    /// Writing failed before, and half a record may be in the output.
    #[error("nothing can be written after an error")]
    Failed,
    /// The packets come from a capture of another layout than the header that the writer was made with.
    #[error("packets of a {from} capture cannot go into a {to} capture")]
    Layout {
        /// Layout of the packets' records.
        from: &'static str,
        /// Layout of the output.
        to: &'static str,
    },
    /// A pcap time stamp has 32 bits of seconds.
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
