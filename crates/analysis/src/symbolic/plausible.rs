//! What is left free is filled in as it is on real networks.

use crate::solver::{Term, Terms};
use paceline_spec::MapSpec;

use crate::symbolic::maps::initial_value;
use crate::symbolic::source::{RoutePart, Source, Sources};

/// Lengths that packets have if they can: each is tried before the longer ones.
const LENGTHS: [u64; 10] = [14, 34, 42, 54, 60, 74, 100, 128, 256, 600];

/// Types that packets have if they can: IPv4, ARP, IPv6, VLAN.
const ETHERTYPES: [u64; 4] = [0x0800, 0x0806, 0x86dd, 0x8100];

/// Times below this one are told in test files to a nanosecond: 52 days.
const LATEST: u64 = 1 << 52;

/// Bytes of an IPv4 packet without a tag, by offset.
const IPV4: [(u32, u64); 13] = [
    (14, 0x45),
    (22, 64),
    (26, 192),
    (27, 0),
    (28, 2),
    (29, 1),
    (30, 192),
    (31, 0),
    (32, 2),
    (33, 2),
    (15, 0),
    (20, 0),
    (21, 0),
];

/// What bytes are that conditions are about, but that are no part of usual headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bytes {
    /// Zero, as far as they can be.
    Zero,
    /// Different from each other and from zero, as far as they can be: keys of elements with them.
    Different,
}

/// Conditions that make a packet plausible, the most important ones first. They are about variables that conditions are about; all others
/// are free.
pub(crate) fn wishes(
    terms: &mut Terms,
    sources: &Sources,
    maps: &[MapSpec],
    vars: &[(Source, Term)],
    (keys, bytes): (&[Term], Bytes),
) -> Vec<Term> {
    let mut wishes = Vec::new();
    let known = |source: Source| vars.iter().find(|(other, _)| *other == source).map(|(_, term)| *term);
    if let Some(length) = known(Source::Length) {
        lengths(terms, length, &mut wishes);
    }
    for &(source, term) in vars {
        match source {
            // Maps have as few elements as possible.
            Source::Present { .. } => wishes.push(terms.not(term)),
            Source::Time(..) => {
                let end = terms.constant(64, LATEST);
                wishes.push(terms.ult(term, end));
            }
            _ => {}
        }
    }
    headers(terms, &known, &mut wishes);
    wishes.extend(total_length(terms, sources, &known));
    if bytes == Bytes::Different {
        different(terms, vars, &mut wishes);
    }
    for &(source, term) in vars {
        if let Some(value) = usual(maps, source) {
            let value = terms.constant(terms.width(term), value);
            wishes.push(terms.eq(term, value));
        }
        if matches!(source, Source::Context(_)) {
            // Interfaces that exist have numbers from 1.
            let one = terms.constant(64, 1);
            wishes.push(terms.eq(term, one));
        }
    }
    for &key in keys {
        if terms.value(key).is_none() {
            let zero = terms.constant(8, 0);
            wishes.push(terms.eq(key, zero));
        }
    }
    wishes
}

/// A byte for a place: others near it have other ones.
const fn other_byte(place: u32) -> u8 {
    const PRIME: u32 = 223;
    (place * 53 % PRIME) as u8 | 3
}

/// Makes free bytes of a packet that say nothing about its form differ from each other.
pub(crate) fn vary(packet: &mut [u8], is_free: impl Fn(usize) -> bool) {
    for (offset, role) in roles(packet).into_iter().enumerate() {
        if role == Role::Content && is_free(offset) {
            packet[offset] = other_byte(offset as u32);
        }
    }
    set_checksums(packet, is_free);
}

/// Bytes of packets and values are others, or at least not zero.
fn different(terms: &mut Terms, vars: &[(Source, Term)], wishes: &mut Vec<Term>) {
    for &(source, term) in vars {
        let place = match source {
            Source::Packet(offset) => offset,
            Source::Value { map, element, byte } => 97 + map as u32 * 29 + element as u32 * 13 + byte,
            _ => continue,
        };
        let (value, zero) = (u64::from(other_byte(place)), terms.constant(8, 0));
        let value = terms.constant(8, value);
        wishes.push(terms.eq(term, value));
        let is_zero = terms.eq(term, zero);
        wishes.push(terms.not(is_zero));
    }
}

/// A packet is as short as possible, of the usual lengths.
fn lengths(terms: &mut Terms, length: Term, wishes: &mut Vec<Term>) {
    let least = terms.constant(16, 14);
    wishes.push(terms.ule(least, length));
    for most in LENGTHS {
        let most = terms.constant(16, most);
        wishes.push(terms.ule(length, most));
    }
}

/// Headers of the usual protocols.
fn headers(terms: &mut Terms, known: &impl Fn(Source) -> Option<Term>, wishes: &mut Vec<Term>) {
    let mut wish = |terms: &mut Terms, term: Option<Term>, value: u64| {
        if let Some(term) = term {
            let value = terms.constant(terms.width(term), value);
            wishes.push(terms.eq(term, value));
        }
    };
    if let (Some(high), Some(low)) = (known(Source::Packet(12)), known(Source::Packet(13))) {
        let ethertype = terms.concat(high, low);
        for value in ETHERTYPES {
            wish(terms, Some(ethertype), value);
        }
    }
    for (offset, value) in IPV4 {
        wish(terms, known(Source::Packet(offset)), value);
    }
}

/// The number that something has if it can: variables their initial value, others 0; `None` if it does not matter.
fn usual(maps: &[MapSpec], source: Source) -> Option<u64> {
    match source {
        Source::Value { map, element: _, byte } => {
            let initial = maps.get(map).filter(|map| map.max_entries == 1);
            let initial = initial.and_then(|map| initial_value(map, &[0; 4]));
            let byte = initial.and_then(|bytes| bytes.get(byte as usize)).copied();
            Some(byte.unwrap_or(0).into())
        }
        Source::Route(part) => Some(usual_route(part)),
        // These follow from others.
        Source::Product(..) | Source::Fixed { .. } => None,
        Source::Random(_) | Source::Length => None,
        _ => Some(0),
    }
}

/// The same for a part of a network: Ethernet, with local hardware addresses that differ in each byte, and no gateway.
pub(crate) const fn usual_route(part: RoutePart) -> u64 {
    const LOCAL: u64 = 2;
    match part {
        RoutePart::Interface => 2,
        RoutePart::Mtu => 1500,
        RoutePart::Metric => 100,
        RoutePart::SourceMac(0) | RoutePart::DestinationMac(0) => LOCAL,
        RoutePart::SourceMac(byte) => 0xa0 + byte as u64,
        RoutePart::DestinationMac(byte) => 0xb0 + byte as u64,
        RoutePart::Outcome | RoutePart::HasGateway | RoutePart::GatewayIsV6 | RoutePart::Gateway(_) => 0,
    }
}

/// The total length of an IPv4 packet without a tag is that of the packet without its Ethernet header.
fn total_length(
    terms: &mut Terms,
    sources: &Sources,
    known: &impl Fn(Source) -> Option<Term>,
) -> Option<Term> {
    const ETHERNET: u64 = 14;
    let (high, low) = (known(Source::Packet(16))?, known(Source::Packet(17))?);
    let length = sources.known(Source::Length)?;
    let total = terms.concat(high, low);
    let header = terms.constant(16, ETHERNET);
    let rest = terms.sub(length, header);
    Some(terms.eq(total, rest))
}

/// What a byte of a packet is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It tells what the packet is: types, versions, lengths.
    Structure,
    /// It is a part of a checksum.
    Checksum,
    /// Anything else: addresses, ports, payload.
    Content,
}

/// The roles of a packet's bytes.
#[must_use]
pub fn roles(packet: &[u8]) -> Vec<Role> {
    let mut packet = packet.to_vec();
    let mut filler = Filler::new(&mut packet, |_| false);
    filler.ethernet();
    filler.roles
}

/// Sets the checksums of a packet whose bytes are free.
pub fn set_checksums(packet: &mut [u8], is_free: impl Fn(usize) -> bool) {
    let roles = roles(packet);
    let is_sum = |byte: usize| roles.get(byte) == Some(&Role::Checksum);
    Filler::new(packet, |byte| is_sum(byte) && is_free(byte)).ethernet();
}

/// Fills bytes that are free: addresses, lengths, checksums.
pub(crate) fn fill(packet: &mut [u8], is_free: impl Fn(usize) -> bool) {
    Filler::new(packet, is_free).ethernet();
}

struct Filler<'p, F> {
    packet: &'p mut [u8],
    is_free: F,
    roles: Vec<Role>,
}

impl<'p, F: Fn(usize) -> bool> Filler<'p, F> {
    fn new(packet: &'p mut [u8], is_free: F) -> Self {
        let roles = vec![Role::Content; packet.len()];
        Self { packet, is_free, roles }
    }

    /// Sets bytes of a role if all of them are in the packet and free.
    fn set_as(&mut self, role: Role, offset: usize, bytes: &[u8]) -> bool {
        let range = offset..offset + bytes.len();
        self.roles.iter_mut().take(range.end).skip(offset).for_each(|place| *place = role);
        let is_free = range.clone().all(&self.is_free);
        let Some(place) = self.packet.get_mut(range).filter(|_| is_free) else { return false };
        place.copy_from_slice(bytes);
        true
    }

    /// Sets bytes that tell what the packet is.
    fn set(&mut self, offset: usize, bytes: &[u8]) -> bool {
        self.set_as(Role::Structure, offset, bytes)
    }

    /// Notes bytes that tell what the packet is.
    fn note(&mut self, offset: usize, len: usize) {
        self.roles.iter_mut().skip(offset).take(len).for_each(|place| *place = Role::Structure);
    }

    /// Sets addresses and other contents.
    fn content(&mut self, offset: usize, bytes: &[u8]) -> bool {
        self.set_as(Role::Content, offset, bytes)
    }

    fn at(&self, offset: usize) -> u8 {
        self.packet.get(offset).copied().unwrap_or(0)
    }

    fn word(&self, offset: usize) -> u16 {
        u16::from_be_bytes([self.at(offset), self.at(offset + 1)])
    }

    /// Bytes from an offset to the packet's end.
    fn left(&self, offset: usize) -> usize {
        self.packet.len().saturating_sub(offset)
    }

    fn ethernet(&mut self) {
        const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
        // The first byte says that an address is of one machine.
        self.set(0, &[2]);
        self.content(1, &[0, 0, 0, 0, 2]);
        self.set(6, &[2]);
        self.content(7, &[0, 0, 0, 0, 1]);
        let mut place = 12;
        while TAGS.contains(&self.word(place)) && place < 28 {
            place += 4;
        }
        let next = place + 2;
        if self.left(next) >= 20 {
            self.set(place, &[8, 0]);
        }
        self.note(place, 2);
        match self.word(place) {
            0x0800 if self.left(next) >= 20 => self.ipv4(next),
            0x86dd if self.left(next) >= 40 => self.ipv6(next),
            _ => {}
        }
    }

    fn ipv4(&mut self, at: usize) {
        const UDP: u8 = 17;
        self.set(at, &[0x45]);
        let total = (self.left(at) as u16).to_be_bytes();
        self.set(at + 2, &total);
        self.note(at + 6, 2);
        self.note(at + 9, 1);
        self.content(at + 8, &[64]);
        if self.left(at) >= 28 {
            self.set(at + 9, &[UDP]);
        }
        self.content(at + 12, &[192, 0, 2, 1]);
        self.content(at + 16, &[192, 0, 2, 2]);
        let header = usize::from(self.at(at) & 0xf) * 4;
        if self.set_as(Role::Checksum, at + 10, &[0, 0]) && self.left(at) >= header {
            let sum = !fold(self.sum(at, header));
            self.set_as(Role::Checksum, at + 10, &sum.to_be_bytes());
        }
        if self.word(at + 6) & 0x1fff == 0 && header >= 20 {
            let pseudo = self.sum(at + 12, 8);
            self.transport(at + header, self.at(at + 9), pseudo);
        }
    }

    fn ipv6(&mut self, at: usize) {
        const UDP: u8 = 17;
        const ADDRESS: [u8; 16] = [0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
        self.set(at, &[0x60]);
        let payload = (self.left(at + 40) as u16).to_be_bytes();
        self.set(at + 4, &payload);
        self.note(at + 6, 1);
        if self.left(at) >= 48 {
            self.set(at + 6, &[UDP]);
        }
        self.content(at + 7, &[64]);
        self.content(at + 8, &ADDRESS);
        let mut destination = ADDRESS;
        destination[15] = 2;
        self.content(at + 24, &destination);
        let pseudo = self.sum(at + 8, 32);
        self.transport(at + 40, self.at(at + 6), pseudo);
    }

    fn transport(&mut self, at: usize, protocol: u8, pseudo: u32) {
        let len = self.left(at);
        let pseudo = pseudo + u32::from(protocol) + len as u32;
        match protocol {
            6 if len >= 20 => {
                self.content(at, &49152_u16.to_be_bytes());
                self.content(at + 2, &80_u16.to_be_bytes());
                self.set(at + 12, &[0x50]);
                self.content(at + 13, &[2]);
                self.content(at + 14, &[0xff, 0xff]);
                self.checksum(at, at + 16, pseudo);
            }
            17 if len >= 8 => {
                self.content(at, &49152_u16.to_be_bytes());
                self.content(at + 2, &9_u16.to_be_bytes());
                self.set(at + 4, &(len as u16).to_be_bytes());
                self.checksum(at, at + 6, pseudo);
            }
            1 if len >= 8 => self.checksum(at, at + 2, 0),
            58 if len >= 8 => self.checksum(at, at + 2, pseudo),
            _ => {}
        }
    }

    /// Sets the checksum at an offset, over all bytes from `start` on.
    fn checksum(&mut self, start: usize, at: usize, pseudo: u32) {
        if self.set_as(Role::Checksum, at, &[0, 0]) {
            let sum = !fold(pseudo + self.sum(start, self.left(start)));
            let sum = if sum == 0 { 0xffff } else { sum };
            self.set_as(Role::Checksum, at, &sum.to_be_bytes());
        }
    }

    fn sum(&self, start: usize, len: usize) -> u32 {
        let bytes = self.packet.get(start..start + len).unwrap_or_default();
        bytes
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])))
            .sum()
    }
}

fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_bytes_become_a_packet() {
        let mut packet = vec![0; 42];
        fill(&mut packet, |_| true);
        assert_eq!(packet[12..15], [8, 0, 0x45]);
        assert_eq!(packet[16..18], [0, 28]);
        let header =
            packet[14..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
        assert_eq!(fold(header), 0xffff);
    }

    #[test]
    fn roles_are_those_of_the_layers() {
        let mut packet = vec![0; 42];
        fill(&mut packet, |_| true);
        let roles = roles(&packet);
        let of = |role: Role| (0..42).filter(|byte| roles[*byte] == role).collect::<Vec<_>>();
        assert_eq!(of(Role::Checksum), [24, 25, 40, 41]);
        assert_eq!(of(Role::Structure), [0, 6, 12, 13, 14, 16, 17, 20, 21, 23, 38, 39]);
        packet[30] = 77;
        let changed = packet.clone();
        set_checksums(&mut packet, |byte| byte < 40);
        assert_ne!(packet[24..26], changed[24..26]);
        assert_eq!(packet[40..], changed[40..]);
    }

    #[test]
    fn bytes_that_are_not_free_stay() {
        let mut packet = vec![0; 60];
        packet[23] = 6;
        fill(&mut packet, |byte| byte != 23 && byte != 47);
        assert_eq!((packet[23], packet[46], packet[47]), (6, 0x50, 0));
    }
}
