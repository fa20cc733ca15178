//! The descriptions that records need to be read from the middle of a capture.

use crate::link_type::LinkType;

/// Descriptions of records by the beginning of a capture or section. Plain data, which can be sent to where the records
/// are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preamble {
    /// File header of a pcap capture; section header and interface descriptions of pcapng.
    pub bytes: Vec<u8>,
    /// Number of interfaces in earlier sections.
    pub interfaces_before: u32,
    /// Link type of the packets, that of the capture's first interface.
    pub link_type: LinkType,
}
