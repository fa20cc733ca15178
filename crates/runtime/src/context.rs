//! Numbers in contexts that are computed from the packet.

use paceline_frame::Frame;
use paceline_isa::{Size, eval};
use paceline_spec::context::Rule;

/// Length of an Ethernet header, and offset of its type.
pub const ETHERNET_LEN: usize = 14;
const ETHERNET_TYPE: usize = 12;

/// Least value of an Ethernet type; below it is a length (`ETH_P_802_3_MIN`).
const LEAST_TYPE: u16 = 0x600;

/// Protocols of frames with a length instead of a type (`ETH_P_802_3`, `ETH_P_802_2`).
const RAW_802_3: u16 = 1;
const LLC: u16 = 4;

/// Index of the loopback interface (`LOOPBACK_IFINDEX`).
const LOOPBACK: u32 = 1;

/// The number that a rule computes.
#[inline]
pub fn number(frame: &Frame, rule: Rule) -> u32 {
    match rule {
        Rule::PacketLen => frame.len() as u32,
        Rule::PacketType => packet_type(frame.packet()),
        Rule::Protocol => u32::from(protocol(frame.packet()).to_be()),
        Rule::RxQueue => u32::from(frame.rx_queue()),
        Rule::Ifindex => frame.ingress_ifindex().max(LOOPBACK),
    }
}

/// `size` bytes at `offset` of a number in memory.
#[inline]
pub fn part(number: u32, offset: u64, size: Size) -> u64 {
    let shift = if cfg!(target_endian = "big") { 4 - size.bytes() as u64 - offset } else { offset };
    eval::zero_extend(size, u64::from(number) >> (shift * 8))
}

/// `skb->pkt_type`, by the destination address; a unicast address is taken for the host's.
pub fn packet_type(packet: &[u8]) -> u32 {
    const HOST: u32 = 0;
    const BROADCAST: u32 = 1;
    const MULTICAST: u32 = 2;
    match packet.get(..6) {
        Some([0xff, 0xff, 0xff, 0xff, 0xff, 0xff]) => BROADCAST,
        Some([first, ..]) if first & 1 != 0 => MULTICAST,
        _ => HOST,
    }
}

/// The protocol that `eth_type_trans` in `net/ethernet/eth.c` finds, in host order. VLAN tags stay in the packet, so
/// that of a tagged one is its tag's. 0 for packets shorter than a header.
pub fn protocol(packet: &[u8]) -> u16 {
    let Some(&[high, low]) = packet.get(ETHERNET_TYPE..ETHERNET_LEN) else { return 0 };
    match u16::from_be_bytes([high, low]) {
        ethertype if ethertype >= LEAST_TYPE => ethertype,
        _ if packet.get(ETHERNET_LEN..).is_some_and(|rest| rest.starts_with(&[0xff, 0xff])) => RAW_802_3,
        _ => LLC,
    }
}
