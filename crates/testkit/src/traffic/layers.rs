//! Headers, innermost first: each function prepends one to a payload.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) const IPV4: u16 = 0x0800;
pub(super) const ARP: u16 = 0x0806;
pub(super) const VLAN: u16 = 0x8100;
pub(super) const IPV6: u16 = 0x86dd;
pub(super) const QINQ: u16 = 0x88a8;

pub(super) const ICMP: u8 = 1;
pub(super) const TCP: u8 = 6;
pub(super) const UDP: u8 = 17;
pub(super) const ICMPV6: u8 = 58;

pub(super) type Mac = [u8; 6];

pub(super) const BROADCAST: Mac = [0xff; 6];

/// One end of a conversation.
#[derive(Clone, Copy)]
pub(super) struct Host {
    pub(super) mac: Mac,
    pub(super) ip: IpAddr,
}

/// The host with this address; its MAC address ends with the given number.
pub(super) fn host(ip: &str, number: u8) -> Host {
    Host { mac: [2, 0, 0, 0, 0, number], ip: address(ip) }
}

pub(super) fn address(ip: &str) -> IpAddr {
    ip.parse().unwrap_or_else(|_| panic!("{ip} is an address"))
}

/// Bytes of an IPv4 address written in the generator.
pub(super) fn v4(ip: &str) -> [u8; 4] {
    ip.parse::<Ipv4Addr>().unwrap_or_else(|_| panic!("{ip} is an IPv4 address")).octets()
}

/// Bytes of an IPv6 address written in the generator.
pub(super) fn v6(ip: &str) -> [u8; 16] {
    ip.parse::<Ipv6Addr>().unwrap_or_else(|_| panic!("{ip} is an IPv6 address")).octets()
}

/// The group address of an IP multicast group (RFC 1112, RFC 2464).
pub(super) fn multicast_mac(group: IpAddr) -> Mac {
    match group {
        IpAddr::V4(ip) => {
            let [_, b, c, d] = ip.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(ip) => {
            let [.., a, b, c, d] = ip.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}

pub(super) fn ethernet(destination: Mac, source: Mac, protocol: u16, payload: &[u8]) -> Vec<u8> {
    [&destination[..], &source, &protocol.to_be_bytes(), payload].concat()
}

/// A frame with VLAN tags, each a protocol and a tag control word, after the addresses.
pub(super) fn tagged(frame: &[u8], tags: &[(u16, u16)]) -> Vec<u8> {
    let (addresses, rest) = frame.split_at(12);
    let tags: Vec<u8> =
        tags.iter().flat_map(|&(tpid, tci)| [tpid.to_be_bytes(), tci.to_be_bytes()].concat()).collect();
    [addresses, &tags, rest].concat()
}

/// Sum of 16-bit words in ones' complement (RFC 1071), not yet inverted.
fn sum(bytes: &[u8]) -> u32 {
    let total: u32 = bytes
        .chunks(2)
        .map(|word| u32::from(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)])))
        .sum();
    (total & 0xffff) + (total >> 16)
}

pub(super) fn checksum(parts: &[&[u8]]) -> [u8; 2] {
    // All parts but the last must have even length.
    let mut total: u32 = parts.iter().map(|part| sum(part)).sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    (!(total as u16)).to_be_bytes()
}

/// Checksum with the pseudo header of IPv4 or IPv6.
fn transport_checksum(source: IpAddr, destination: IpAddr, protocol: u8, segment: &[u8]) -> [u8; 2] {
    let len = (segment.len() as u32).to_be_bytes();
    let tail = [&len[..], &[0, 0, 0, protocol]].concat();
    match (source, destination) {
        (IpAddr::V4(s), IpAddr::V4(d)) => checksum(&[&s.octets(), &d.octets(), &tail, segment]),
        (IpAddr::V6(s), IpAddr::V6(d)) => checksum(&[&s.octets(), &d.octets(), &tail, segment]),
        _ => panic!("both addresses are of one version"),
    }
}

/// Fields of an IPv4 header that differ between packets.
#[derive(Clone)]
pub(super) struct Ipv4 {
    pub(super) tos: u8,
    pub(super) id: u16,
    /// Flags and fragment offset, as in the header.
    pub(super) fragment: u16,
    pub(super) ttl: u8,
    pub(super) options: Vec<u8>,
}

pub(super) const DONT_FRAGMENT: u16 = 0x4000;
pub(super) const MORE_FRAGMENTS: u16 = 0x2000;

impl Default for Ipv4 {
    fn default() -> Self {
        Self { tos: 0, id: 0x1d2c, fragment: DONT_FRAGMENT, ttl: 64, options: Vec::new() }
    }
}

impl Ipv4 {
    pub(super) fn around(
        &self,
        source: IpAddr,
        destination: IpAddr,
        protocol: u8,
        payload: &[u8],
    ) -> Vec<u8> {
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (source, destination) else {
            panic!("both addresses are of version 4");
        };
        assert_eq!(self.options.len() % 4, 0);
        let len = 20 + self.options.len();
        let mut header = vec![0x40 | (len / 4) as u8, self.tos];
        header.extend(((len + payload.len()) as u16).to_be_bytes());
        header.extend(self.id.to_be_bytes());
        header.extend(self.fragment.to_be_bytes());
        header.extend([self.ttl, protocol, 0, 0]);
        header.extend(source.octets());
        header.extend(destination.octets());
        header.extend(&self.options);
        let sum = checksum(&[&header]);
        header[10..12].copy_from_slice(&sum);
        [&header[..], payload].concat()
    }
}

/// An IPv6 header with a traffic class, flow label and hop limit.
pub(super) fn ipv6_with(
    class: u8,
    flow: u32,
    hops: u8,
    source: IpAddr,
    destination: IpAddr,
    next: u8,
    payload: &[u8],
) -> Vec<u8> {
    let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, destination) else {
        panic!("both addresses are of version 6");
    };
    let first = 6 << 28 | u32::from(class) << 20 | flow;
    let mut packet = first.to_be_bytes().to_vec();
    packet.extend((payload.len() as u16).to_be_bytes());
    packet.extend([next, hops]);
    packet.extend(source.octets());
    packet.extend(destination.octets());
    packet.extend(payload);
    packet
}

/// An IP packet of the addresses' version, in an Ethernet frame.
pub(super) fn ip(from: Host, to: Host, protocol: u8, payload: &[u8]) -> Vec<u8> {
    match from.ip {
        IpAddr::V4(_) => ipv4_with(&Ipv4::default(), from, to, protocol, payload),
        IpAddr::V6(_) => {
            let packet = ipv6_with(0, 0xbeef, 64, from.ip, to.ip, protocol, payload);
            ethernet(to.mac, from.mac, IPV6, &packet)
        }
    }
}

pub(super) fn ipv4_with(header: &Ipv4, from: Host, to: Host, protocol: u8, payload: &[u8]) -> Vec<u8> {
    ethernet(to.mac, from.mac, IPV4, &header.around(from.ip, to.ip, protocol, payload))
}

/// A UDP datagram with its checksum.
pub(super) fn datagram(from: Host, to: Host, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut datagram = [ports.0, ports.1, 8 + payload.len() as u16, 0].map(u16::to_be_bytes).concat();
    datagram.extend(payload);
    let sum = transport_checksum(from.ip, to.ip, UDP, &datagram);
    // 0 means that there is no checksum.
    datagram[6..8].copy_from_slice(if sum == [0, 0] { &[0xff, 0xff] } else { &sum });
    datagram
}

pub(super) fn udp(from: Host, to: Host, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    ip(from, to, UDP, &datagram(from, to, ports, payload))
}

/// Flags of a TCP header.
pub(super) mod flag {
    pub(crate) const FIN: u16 = 1;
    pub(crate) const SYN: u16 = 2;
    pub(crate) const RST: u16 = 4;
    pub(crate) const PSH: u16 = 8;
    pub(crate) const ACK: u16 = 16;
    pub(crate) const URG: u16 = 32;
    pub(crate) const ECE: u16 = 64;
    pub(crate) const CWR: u16 = 128;
    /// The former nonce sum, now accurate ECN.
    pub(crate) const AE: u16 = 256;
}

/// Fields of a TCP header that differ between segments.
#[derive(Clone, Default)]
pub(super) struct Tcp {
    pub(super) ports: (u16, u16),
    pub(super) sequence: u32,
    pub(super) acknowledgment: u32,
    pub(super) flags: u16,
    pub(super) urgent: u16,
    pub(super) options: Vec<u8>,
}

impl Tcp {
    /// The segment with its checksum.
    pub(super) fn segment(&self, from: Host, to: Host, payload: &[u8]) -> Vec<u8> {
        assert_eq!(self.options.len() % 4, 0);
        let words = (20 + self.options.len()) as u16 / 4;
        let mut segment = [self.ports.0, self.ports.1].map(u16::to_be_bytes).concat();
        segment.extend(self.sequence.to_be_bytes());
        segment.extend(self.acknowledgment.to_be_bytes());
        segment.extend([words << 12 | self.flags, 64_240, 0, self.urgent].map(u16::to_be_bytes).concat());
        segment.extend(&self.options);
        segment.extend(payload);
        let sum = transport_checksum(from.ip, to.ip, TCP, &segment);
        segment[16..18].copy_from_slice(&sum);
        segment
    }

    pub(super) fn frame(&self, from: Host, to: Host, payload: &[u8]) -> Vec<u8> {
        ip(from, to, TCP, &self.segment(from, to, payload))
    }
}

/// An ICMP or ICMPv6 message, by the version of the addresses.
pub(super) fn control(from: Host, to: Host, kind: u8, code: u8, body: &[u8]) -> Vec<u8> {
    let mut message = [&[kind, code, 0, 0], body].concat();
    let (protocol, sum) = match from.ip {
        IpAddr::V4(_) => (ICMP, checksum(&[&message])),
        IpAddr::V6(_) => (ICMPV6, transport_checksum(from.ip, to.ip, ICMPV6, &message)),
    };
    message[2..4].copy_from_slice(&sum);
    // Receivers accept neighbor discovery only with hop limit 255, which proves that no router forwarded it.
    if protocol == ICMPV6 && (133..=137).contains(&kind) {
        return ethernet(to.mac, from.mac, IPV6, &ipv6_with(0, 0, 255, from.ip, to.ip, ICMPV6, &message));
    }
    ip(from, to, protocol, &message)
}

/// Text to carry.
pub(super) fn text(len: usize) -> Vec<u8> {
    b"The quick brown fox jumps over the lazy dog. ".iter().copied().cycle().take(len).collect()
}

/// An ARP packet for IPv4.
pub(super) fn arp(operation: u16, from: Host, to: Mac, asked: &str) -> Vec<u8> {
    let IpAddr::V4(sender) = from.ip else { panic!("ARP is for IPv4") };
    let mut packet = [1, 0x0800, 0x0604, operation].map(u16::to_be_bytes).concat();
    packet.extend(from.mac);
    packet.extend(sender.octets());
    packet.extend(to);
    packet.extend(v4(asked));
    packet
}
