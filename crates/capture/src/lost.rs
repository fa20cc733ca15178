//! Losses of a reader that goes on after damage.

use crate::error::ReadError;
use crate::link_type::LinkType;

/// Reason why bytes of a capture give no packet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// The capture ends within a record.
    #[error("cut: {found} of {needed} bytes of a record are there")]
    Cut {
        /// Length of the record in bytes, as far as known.
        needed: u64,
        /// Bytes of it that are there.
        found: u64,
    },
    /// A captured length that no packet has, or that exceeds its block.
    #[error("a record claims {len} captured bytes")]
    CapturedLength {
        /// Captured length.
        len: u32,
    },
    /// A length of a block that is none, or two that differ.
    #[error("a block has length {first} at its start{}", second.map_or(String::new(), |len| format!(" and {len} at its end")))]
    BlockLength {
        /// Length at the start.
        first: u32,
        /// Length at the end, if it is another one.
        second: Option<u32>,
    },
    /// A packet of an interface that is not described.
    #[error("a packet belongs to interface {interface}, which is not described")]
    Interface {
        /// Number of the interface in its section.
        interface: u32,
    },
    /// A packet of another link type than the first interface's.
    #[error("a packet has link type {link_type}")]
    LinkType {
        /// Link type of its interface.
        link_type: LinkType,
    },
    /// A section or interface that cannot be read.
    #[error("the description of a section or an interface is malformed")]
    Description,
    /// The compressed bytes are damaged; what follows is unknown.
    #[error("the compressed bytes are damaged or cut")]
    Compression,
}

impl Damage {
    /// The damage that an error reports; `None` if reading itself failed.
    pub(crate) fn of(error: &ReadError) -> Option<Self> {
        Some(match *error {
            ReadError::Cut { needed, found, .. } => Self::Cut { needed, found },
            ReadError::PacketTooLong { len, .. } | ReadError::PacketExceedsBlock { len, .. } => {
                Self::CapturedLength { len }
            }
            ReadError::BlockLength { len, .. } => Self::BlockLength { first: len, second: None },
            ReadError::BlockLengths { first, second, .. } => {
                Self::BlockLength { first, second: Some(second) }
            }
            ReadError::NoInterface { interface, .. } => Self::Interface { interface },
            ReadError::PacketLinkType { link_type, .. } => Self::LinkType { link_type },
            ReadError::ByteOrderMagic { .. }
            | ReadError::Option { .. }
            | ReadError::Interfaces { .. }
            | ReadError::Blocks { .. }
            | ReadError::Version { .. } => Self::Description,
            _ => return None,
        })
    }
}

/// Bytes of a capture that give no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Offset of the first byte.
    pub from: u64,
    /// Offset after the last byte.
    pub to: u64,
    /// Reason.
    pub damage: Damage,
}
