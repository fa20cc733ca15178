//! Generated packets: Ethernet, IP, UDP or TCP, with correct checksums.

use super::spec::{Protocol, Traffic};

/// Different packets that are made if the flows are fewer: so many lengths a range has.
const LENGTHS: u32 = 64;

/// The packets that a generator repeats. Addresses are of the networks for benchmarks: 198.18.0.0/15 (RFC 2544) and
/// 2001:2::/48 (RFC 5180).
pub(super) fn packets(traffic: &Traffic) -> Vec<Vec<u8>> {
    let is_range = traffic.sizes.start() != traffic.sizes.end();
    let protocols = traffic.protocols.len().max(1) as u32;
    let count = traffic.flows.max(if is_range { LENGTHS } else { protocols });
    (0..count).map(|number| packet(traffic, number)).collect()
}

fn packet(traffic: &Traffic, number: u32) -> Vec<u8> {
    let flow = number % traffic.flows;
    let protocol = traffic.protocols[number as usize % traffic.protocols.len()];
    let mut packet = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    let len = length(traffic, number);
    let transport = len - 14 - if traffic.ipv6 { 40 } else { 20 };
    let sum = if traffic.ipv6 {
        ipv6(&mut packet, protocol, flow, transport)
    } else {
        ipv4(&mut packet, protocol, flow, transport)
    };
    let start = packet.len();
    packet.resize(len, 0);
    fill(&mut packet[start..], protocol, flow, sum);
    packet
}

/// Lengths spread over the range by a multiplicative hash.
fn length(traffic: &Traffic, number: u32) -> usize {
    let (least, most) = (*traffic.sizes.start(), *traffic.sizes.end());
    let hash = u64::from(number.wrapping_mul(0x9e37_79b1));
    least + ((hash * (most - least + 1) as u64) >> 32) as usize
}

fn number_of(protocol: Protocol) -> u8 {
    match protocol {
        Protocol::Udp => 17,
        Protocol::Tcp => 6,
    }
}

/// Appends the header; returns the sum of the pseudo header.
fn ipv4(packet: &mut Vec<u8>, protocol: Protocol, flow: u32, transport: usize) -> u32 {
    let protocol = number_of(protocol);
    let source = 0xc612_0000 + (flow & 0xffff);
    let destination = 0xc613_0001_u32;
    packet.extend_from_slice(&[8, 0]);
    let start = packet.len();
    packet.extend_from_slice(&[0x45, 0]);
    packet.extend_from_slice(&(transport as u16 + 20).to_be_bytes());
    packet.extend_from_slice(&[0, 0, 0x40, 0, 64, protocol, 0, 0]);
    packet.extend_from_slice(&source.to_be_bytes());
    packet.extend_from_slice(&destination.to_be_bytes());
    let checksum = folded(sum(&packet[start..]));
    packet[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
    sum(&packet[start + 12..]) + u32::from(protocol) + transport as u32
}

/// Appends the header; returns the sum of the pseudo header.
fn ipv6(packet: &mut Vec<u8>, protocol: Protocol, flow: u32, transport: usize) -> u32 {
    let protocol = number_of(protocol);
    let address = |last: u32| ((0x2001_0002_u128 << 96) | u128::from(last)).to_be_bytes();
    packet.extend_from_slice(&[0x86, 0xdd, 0x60, 0, 0, 0]);
    packet.extend_from_slice(&(transport as u16).to_be_bytes());
    packet.extend_from_slice(&[protocol, 64]);
    let start = packet.len();
    packet.extend_from_slice(&address(0x1_0000 + (flow & 0xffff)));
    packet.extend_from_slice(&address(1));
    sum(&packet[start..]) + u32::from(protocol) + transport as u32
}

/// Writes the transport header and its checksum; the payload is zero.
fn fill(transport: &mut [u8], protocol: Protocol, flow: u32, pseudo: u32) {
    let len = transport.len() as u16;
    let source = 1024 + (flow >> 16) as u16;
    transport[..2].copy_from_slice(&source.to_be_bytes());
    transport[2..4].copy_from_slice(&80_u16.to_be_bytes());
    let checksum = match protocol {
        Protocol::Udp => {
            transport[4..6].copy_from_slice(&len.to_be_bytes());
            6
        }
        Protocol::Tcp => {
            // A header of 20 bytes, ACK, a window.
            transport[12..16].copy_from_slice(&[0x50, 0x10, 0xff, 0xff]);
            16
        }
    };
    let sum = folded(pseudo + sum(transport));
    // A sum of zero means that UDP has no checksum.
    let sum = if sum == 0 { 0xffff } else { sum };
    transport[checksum..checksum + 2].copy_from_slice(&sum.to_be_bytes());
}

/// The sum of the 16-bit words (RFC 1071).
fn sum(bytes: &[u8]) -> u32 {
    let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
    bytes.chunks(2).map(word).sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_right_and_flows_differ() {
        for ipv6 in [false, true] {
            let traffic = Traffic {
                sizes: 80..=1514,
                flows: 100,
                protocols: vec![Protocol::Udp, Protocol::Tcp],
                ipv6,
                ..Traffic::default()
            };
            let packets = packets(&traffic);
            let header = if ipv6 { 54 } else { 34 };
            let mut sources = std::collections::BTreeSet::new();
            for packet in &packets {
                assert!(traffic.sizes.contains(&packet.len()));
                let addresses = if ipv6 { &packet[22..54] } else { &packet[26..34] };
                let protocol = packet[if ipv6 { 20 } else { 23 }];
                let transport = &packet[header..];
                let pseudo = sum(addresses) + u32::from(protocol) + transport.len() as u32;
                assert_eq!(folded(pseudo + sum(transport)), 0, "transport");
                assert!(ipv6 || folded(sum(&packet[14..34])) == 0, "header");
                sources.insert(addresses.to_vec());
            }
            assert_eq!((packets.len(), sources.len()), (100, 100));
            let lengths: std::collections::BTreeSet<_> = packets.iter().map(Vec::len).collect();
            assert!(lengths.len() > 50, "{lengths:?}");
        }
    }
}
