//! Protocol layers of packets in case files: headers with computed lengths, types and checksums.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::error::DataError;

/// A layer or a run of plain bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Layer {
    Bytes(Vec<u8>),
    Ethernet { dst: [u8; 6], src: [u8; 6], next: Option<u16> },
    Tag { protocol: u16, id: u16, next: Option<u16> },
    Ipv4 { src: Ipv4Addr, dst: Ipv4Addr, ttl: u8, proto: Option<u8> },
    Ipv6 { src: Ipv6Addr, dst: Ipv6Addr, ttl: u8, proto: Option<u8> },
    Tcp { src: u16, dst: u16 },
    Udp { src: u16, dst: u16 },
    Icmp,
    Icmpv6,
}

pub(super) const VLAN: u16 = 0x8100;
pub(super) const QINQ: u16 = 0x88a8;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMP: u8 = 1;
const ICMPV6: u8 = 58;

impl Layer {
    /// EtherType by which the layer below announces this one; 0 if there is none.
    fn ethertype(&self) -> u16 {
        match self {
            Self::Tag { protocol, .. } => *protocol,
            Self::Ipv4 { .. } => IPV4,
            Self::Ipv6 { .. } => IPV6,
            _ => 0,
        }
    }

    /// IP protocol number by which an IP header announces this layer; 255 (reserved) if there is none.
    fn protocol(&self) -> u8 {
        match self {
            Self::Tcp { .. } => TCP,
            Self::Udp { .. } => UDP,
            Self::Icmp => ICMP,
            Self::Icmpv6 => ICMPV6,
            Self::Ipv4 { .. } => 4,
            Self::Ipv6 { .. } => 41,
            _ => 255,
        }
    }
}

/// The bytes of a packet, built from the last layer to the first, because each header needs the length of its payload.
pub(super) fn build(layers: &[Layer]) -> Result<Vec<u8>, DataError> {
    let mut packet = Vec::new();
    for (index, layer) in layers.iter().enumerate().rev() {
        let next = layers.get(index + 1);
        let below = layers.get(..index).unwrap_or_default();
        let mut bytes = header(layer, next, below, &packet)?;
        bytes.append(&mut packet);
        packet = bytes;
    }
    Ok(packet)
}

fn header(
    layer: &Layer,
    next: Option<&Layer>,
    below: &[Layer],
    payload: &[u8],
) -> Result<Vec<u8>, DataError> {
    let ethertype = |given: Option<u16>| given.unwrap_or_else(|| next.map_or(0, Layer::ethertype));
    let protocol = |given: Option<u8>| given.unwrap_or_else(|| next.map_or(255, Layer::protocol));
    Ok(match layer {
        Layer::Bytes(bytes) => bytes.clone(),
        Layer::Ethernet { dst, src, next } => [&dst[..], &src[..], &ethertype(*next).to_be_bytes()].concat(),
        Layer::Tag { id, next, .. } => [id.to_be_bytes(), ethertype(*next).to_be_bytes()].concat(),
        Layer::Ipv4 { src, dst, ttl, proto } => ipv4(*src, *dst, *ttl, protocol(*proto), payload.len()),
        Layer::Ipv6 { src, dst, ttl, proto } => ipv6(*src, *dst, *ttl, protocol(*proto), payload.len()),
        Layer::Tcp { src, dst } => {
            let mut header = [src.to_be_bytes(), dst.to_be_bytes()].concat();
            // Sequence 1, no acknowledgment, 5 words, SYN, window 1024, no checksum yet, not urgent.
            header.extend([0, 0, 0, 1, 0, 0, 0, 0, 0x50, 0x02, 0x04, 0x00, 0, 0, 0, 0]);
            checksummed(header, 16, "tcp", TCP, below, payload)?
        }
        Layer::Udp { src, dst } => {
            let len = (8 + payload.len()) as u16;
            let header = [src.to_be_bytes(), dst.to_be_bytes(), len.to_be_bytes(), [0, 0]].concat();
            let mut header = checksummed(header, 6, "udp", UDP, below, payload)?;
            // RFC 768: a computed checksum of zero is transmitted as all ones, because zero means no checksum.
            if header[6..8] == [0, 0] {
                header[6..8].fill(0xff);
            }
            header
        }
        Layer::Icmp => {
            // Echo request, code 0, identifier 1, sequence 1.
            let mut header = vec![8, 0, 0, 0, 0, 1, 0, 1];
            let sum = checksum(&[&header, payload]);
            header[2..4].copy_from_slice(&sum.to_be_bytes());
            header
        }
        Layer::Icmpv6 => checksummed(vec![128, 0, 0, 0, 0, 1, 0, 1], 2, "icmpv6", ICMPV6, below, payload)?,
    })
}

fn ipv4(src: Ipv4Addr, dst: Ipv4Addr, ttl: u8, protocol: u8, payload: usize) -> Vec<u8> {
    let len = ((20 + payload) as u16).to_be_bytes();
    let mut header = vec![0x45, 0, len[0], len[1], 0, 0, 0, 0, ttl, protocol, 0, 0];
    header.extend(src.octets());
    header.extend(dst.octets());
    let sum = checksum(&[&header]).to_be_bytes();
    header[10..12].copy_from_slice(&sum);
    header
}

fn ipv6(src: Ipv6Addr, dst: Ipv6Addr, hops: u8, next: u8, payload: usize) -> Vec<u8> {
    let len = (payload as u16).to_be_bytes();
    let mut header = vec![0x60, 0, 0, 0, len[0], len[1], next, hops];
    header.extend(src.octets());
    header.extend(dst.octets());
    header
}

/// Puts the checksum over pseudo header, header and payload at `at`.
fn checksummed(
    mut header: Vec<u8>,
    at: usize,
    name: &'static str,
    protocol: u8,
    below: &[Layer],
    payload: &[u8],
) -> Result<Vec<u8>, DataError> {
    let len = ((header.len() + payload.len()) as u32).to_be_bytes();
    let pseudo = below
        .iter()
        .rev()
        .find_map(|layer| match layer {
            Layer::Ipv4 { src, dst, .. } => Some([&src.octets()[..], &dst.octets()[..]].concat()),
            Layer::Ipv6 { src, dst, .. } => Some([&src.octets()[..], &dst.octets()[..]].concat()),
            _ => None,
        })
        .ok_or(DataError::NoNetworkLayer(name))?;
    let sum = checksum(&[&pseudo, &len, &[0, protocol], &header, payload]);
    header[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    Ok(header)
}

/// The Internet checksum (RFC 1071) over parts of which all but the last have even length.
fn checksum(parts: &[&[u8]]) -> u16 {
    let mut sum = 0u64;
    for part in parts {
        for pair in part.chunks(2) {
            sum += u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]));
        }
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use super::checksum;

    #[test]
    fn checksums_as_rfc_1071_does() {
        // The example of section 3.
        let sum = checksum(&[&[0x00, 0x01, 0xf2, 0x03], &[0xf4, 0xf5, 0xf6, 0xf7]]);
        assert_eq!(!sum, 0xddf2);
    }
}
