//! Link type, snapshot length and byte order of a capture's packets.

use crate::byte_order::ByteOrder;
use crate::link_type::LinkType;

/// Common properties of a capture's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Type of their link-layer header.
    pub link_type: LinkType,
    /// Maximum captured length in bytes, as determined by libpcap: its maximum for the link type if the capture contains 0 or more
    /// than 2^31 - 1.
    pub snaplen: u32,
    /// Byte order of the capturing machine, which some link-layer headers use as well.
    pub order: ByteOrder,
}

impl Link {
    /// The link of a capture with this snapshot length in its header.
    pub(crate) fn new(link_type: LinkType, snaplen: u32, order: ByteOrder) -> Self {
        let said = (1..=i32::MAX.cast_unsigned()).contains(&snaplen);
        Self { link_type, snaplen: if said { snaplen } else { link_type.max_snaplen() }, order }
    }
}

impl Default for Link {
    /// Ethernet frames without a snapshot limit, in native byte order.
    fn default() -> Self {
        Self::new(LinkType::ETHERNET, 0, ByteOrder::NATIVE)
    }
}

/// The consumer of the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFor {
    /// XDP programs, which process Ethernet only and can make packets longer.
    Programs,
    /// Filters, which see packets as libpcap's do.
    Filters,
}
