//! Distribution of packets over CPUs: all packets of a flow on one, as network cards spread them.

use std::hash::{DefaultHasher, Hash, Hasher};

const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
/// TCP, UDP, SCTP and UDP-Lite begin with their ports.
const WITH_PORTS: [u8; 4] = [6, 17, 132, 136];

/// The CPU of an Ethernet packet among so many, at least one: by its addresses, protocol and ports; the first for what has none.
pub(crate) fn cpu_of(packet: &[u8], cpus: usize) -> usize {
    // Without keys, so that runs can be repeated.
    let mut hasher = DefaultHasher::new();
    match flow(packet) {
        Some(flow) if cpus > 1 => {
            flow.hash(&mut hasher);
            (hasher.finish() % cpus as u64) as usize
        }
        _ => 0,
    }
}

/// The fields that identify a flow.
#[derive(Hash)]
struct Flow<'a> {
    addresses: &'a [u8],
    protocol: u8,
    /// Ports, which fragments do not have.
    ports: Option<&'a [u8]>,
}

fn flow(packet: &[u8]) -> Option<Flow<'_>> {
    let ip = packet.get(14..)?;
    let (addresses, protocol, header, is_fragment) = match packet.get(12..14)?.try_into().ok()? {
        IPV4 => {
            let offset = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x3fff;
            (ip.get(12..20)?, *ip.get(9)?, usize::from(*ip.first()? & 15) * 4, offset != 0)
        }
        IPV6 => (ip.get(8..40)?, *ip.get(6)?, 40, false),
        _ => return None,
    };
    let has_ports = WITH_PORTS.contains(&protocol) && !is_fragment;
    Some(Flow { addresses, protocol, ports: ip.get(header..header + 4).filter(|_| has_ports) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(port: u16, more_fragments: bool) -> Vec<u8> {
        let mut packet = vec![0; 54];
        packet[12..14].copy_from_slice(&IPV4);
        packet[14] = 0x45;
        packet[20] = if more_fragments { 0x20 } else { 0 };
        packet[23] = 17;
        packet[34..36].copy_from_slice(&port.to_be_bytes());
        packet
    }

    #[test]
    fn flows_are_spread_and_stay_together() {
        let cpus: std::collections::HashSet<usize> =
            (0..100).map(|port| cpu_of(&packet(port, false), 4)).collect();
        assert_eq!(cpus.len(), 4);
        assert_eq!(cpu_of(&packet(7, false), 4), cpu_of(&packet(7, false), 4));
        assert_eq!(cpu_of(&packet(7, true), 64), cpu_of(&packet(8, true), 64), "fragments go by addresses");
        assert_eq!(cpu_of(&[0; 60], 4), 0);
        assert_eq!(cpu_of(&packet(7, false), 1), 0);
    }
}
