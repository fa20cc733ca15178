//! Flows of packets, as network cards tell them apart to spread packets over queues.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::FixedState;

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// 802.1Q and 802.1ad.
const VLAN: [[u8; 2]; 2] = [[0x81, 0x00], [0x88, 0xa8]];
/// TCP, UDP, SCTP and UDP-Lite begin with their ports.
const WITH_PORTS: [u8; 4] = [6, 17, 132, 136];

/// The queue of an Ethernet packet among `queues`, at least one: that of its flow, by addresses, protocol and ports behind up to two
/// VLAN tags. Fragments go by addresses and protocol. Packets that are not IP go to queue 0. The same packet always has the same queue.
#[must_use]
pub fn queue_of(packet: &[u8], queues: usize) -> usize {
    if queues <= 1 {
        return 0;
    }
    flow_hash(packet).map_or(0, |hash| ((u128::from(hash) * queues as u128) >> 64) as usize)
}

fn flow_hash(packet: &[u8]) -> Option<u64> {
    let mut at = 12;
    while at < 20 && VLAN.iter().any(|tag| packet.get(at..at + 2) == Some(tag)) {
        at += 4;
    }
    let (protocol, ip) = (packet.get(at..at + 2)?, packet.get(at + 2..)?);
    let mut hasher = FixedState::default().build_hasher();
    if protocol == IPV4 {
        let ip =
            ip.get(..20).and_then(|header| Some((header, ip.get(usize::from(header[0] & 15) * 4..)?)))?;
        let (header, transport) = ip;
        hasher.write_u64(word(&header[12..20]));
        let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
        hasher.write_u64(ports(header[9], transport, is_fragment));
    } else if protocol == IPV6 {
        let (header, transport) = ip.split_at_checked(40)?;
        header[8..].chunks_exact(8).for_each(|part| hasher.write_u64(word(part)));
        hasher.write_u64(ports(header[6], transport, false));
    } else {
        return None;
    }
    Some(hasher.finish())
}

/// Protocol, and the ports if the packet has them.
fn ports(protocol: u8, transport: &[u8], is_fragment: bool) -> u64 {
    let has_ports = WITH_PORTS.contains(&protocol) && !is_fragment;
    let ports = transport.first_chunk().filter(|_| has_ports).map_or(0, |ports| u32::from_ne_bytes(*ports));
    u64::from(protocol) << 32 | u64::from(ports)
}

/// The first eight bytes, which there are.
fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn packet(tags: usize, port: u16, more_fragments: bool) -> Vec<u8> {
        let mut packet = vec![2; 12];
        (0..tags).for_each(|_| packet.extend([0x81, 0, 0, 7]));
        packet.extend(IPV4);
        let mut header = [0; 20];
        (header[0], header[9]) = (0x45, 17);
        header[6] = if more_fragments { 0x20 } else { 0 };
        packet.extend(header);
        packet.extend(port.to_be_bytes());
        packet.resize(80, 0);
        packet
    }

    #[test]
    fn flows_are_spread_and_stay_together() {
        for tags in 0..3 {
            let queues: HashSet<_> = (0..100).map(|port| queue_of(&packet(tags, port, false), 4)).collect();
            assert_eq!(queues.len(), 4, "{tags} tags");
        }
        let mut ipv6 = vec![0; 80];
        ipv6[12..14].copy_from_slice(&IPV6);
        let queues: HashSet<_> = (0..100)
            .map(|last| {
                ipv6[37] = last;
                queue_of(&ipv6, 4)
            })
            .collect();
        assert_eq!(queues.len(), 4);
        let mut longer = packet(0, 7, false);
        longer[40..].fill(9);
        assert_eq!(queue_of(&packet(0, 7, false), 4), queue_of(&longer, 4), "the payload is not of the flow");
        assert_eq!(
            queue_of(&packet(0, 7, true), 64),
            queue_of(&packet(0, 8, true), 64),
            "fragments go by addresses"
        );
        assert_eq!(queue_of(&[0; 60], 4), 0, "not IP");
        assert_eq!(queue_of(&packet(3, 7, false), 4), 0, "three tags");
        assert_eq!(queue_of(&packet(0, 7, false), 1), 0);
        let whole = packet(0, 7, false);
        (0..whole.len()).for_each(|len| assert!(queue_of(&whole[..len], 4) < 4));
    }
}
