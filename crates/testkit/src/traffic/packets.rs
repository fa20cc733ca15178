//! All packets of the capture.

use super::trace::{Packet, Trace};
use super::{conversations, link, network, odd};

/// All packets of the capture. The packets that are shorter than an Ethernet header, which the kernel's test run refuses,
/// are the last [`SHORT`] ones.
#[must_use]
pub fn packets() -> Vec<Packet> {
    let mut trace = Trace::new();
    link::neighbors(&mut trace);
    conversations::tcp_conversations(&mut trace);
    conversations::udp_conversations(&mut trace);
    network::control_messages(&mut trace);
    network::fragments(&mut trace);
    network::ipv4_options(&mut trace);
    network::ipv6_extensions(&mut trace);
    network::protocols(&mut trace);
    link::tags(&mut trace);
    link::other_protocols(&mut trace);
    odd::wrong_headers(&mut trace);
    odd::wrong_checksums(&mut trace);
    odd::cut_headers(&mut trace);
    odd::truncated_by_capture(&mut trace);
    odd::shorter_than_ethernet(&mut trace);
    trace.packets
}

/// Packets at the end of the capture that are shorter than an Ethernet header.
pub const SHORT: usize = 2;
