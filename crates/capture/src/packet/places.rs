//! Where the headers of a protocol may be in a packet, and when they are there: for those who know no packet, but conditions on one.
//!
//! Headers are looked for behind Ethernet, up to two tags and one IP header without extension headers: those in tunnels may be anywhere.

use std::ops::Range;

use crate::packet::layers::{Layer, Layers, end_field};
use crate::packet::protocol::{Extent, Field, Next, Protocol};

/// Most tags before a header.
const MOST_TAGS: usize = 2;

/// A place at which a header may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Offset of the header in bytes.
    pub start: usize,
    /// The header is there if all of them hold. Those of two places never hold together.
    pub conditions: Vec<Condition>,
}

/// A condition on a packet. Bits count from the packet's first one, the most significant one of each byte first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// Some bits are this number.
    Is {
        /// The bits.
        bits: Range<usize>,
        /// The number.
        number: u64,
    },
    /// Some bits are at least this number.
    AtLeast {
        /// The bits.
        bits: Range<usize>,
        /// The number.
        number: u64,
    },
    /// The packet goes on to an offset.
    Reaches {
        /// The offset.
        to: Offset,
        /// The length that an IP header gives.
        said: Option<Said>,
    },
}

/// An offset in bytes: a constant, and perhaps some bits of the packet in units of so many bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// The constant.
    pub base: usize,
    /// The bits, and the unit.
    pub number: Option<(Range<usize>, usize)>,
}

/// Where a packet ends as its IP header says: behind `from`, as many bytes as some bits say. Of no meaning if they are zero, if the end
/// would be before `after`, or if the packet does not reach beyond it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The bits.
    pub bits: Range<usize>,
    /// Offset from which bytes count.
    pub from: usize,
    /// Offset of the end of the IP header.
    pub after: usize,
}

/// The places at which the first header of a protocol is looked for, none for protocols that are only found in tunnels or behind them.
#[must_use]
pub fn places(protocol: &Protocol) -> Vec<Place> {
    let mut all = Vec::new();
    if let Some(first) = Protocol::named("eth") {
        Search { wanted: protocol, all: &mut all }.visit(&Found::default(), first);
    }
    all
}

impl<'a> Layers<'a> {
    /// The first header of a protocol, if it is at one of its [`places`].
    #[must_use]
    pub fn placed(&self, protocol: &Protocol) -> Option<&Layer<'a>> {
        let is_wanted = |layer: &&Layer<'_>| layer.protocol.name == protocol.name;
        let before: Vec<_> =
            self.headers().iter().take_while(|layer| !is_wanted(layer)).map(|layer| layer.protocol).collect();
        let found = self.headers().iter().find(is_wanted)?;
        let is_near = (0..before.len()).all(|index| carries(&before[..index], before[index]));
        let has_place = !matches!(found.protocol.extent, Extent::Computed(_));
        (is_near && has_place).then_some(found)
    }
}

/// Whether headers are looked for behind a header that comes after others.
fn carries(before: &[&Protocol], protocol: &Protocol) -> bool {
    let count = |names: &[&str]| before.iter().filter(|protocol| names.contains(&protocol.name)).count();
    match protocol.name {
        "eth" => before.is_empty(),
        "vlan" | "qinq" => count(&["vlan", "qinq"]) < MOST_TAGS,
        "ipv4" | "ipv6" => count(&["ipv4", "ipv6"]) == 0,
        _ => false,
    }
}

/// A way to a header.
#[derive(Clone, Default)]
struct Found {
    start: usize,
    before: Vec<&'static Protocol>,
    conditions: Vec<Condition>,
    said: Option<Said>,
}

impl Found {
    fn reaches(&mut self, to: Offset) {
        self.conditions.push(Condition::Reaches { to, said: self.said.clone() });
    }

    /// The bits of a field of the header.
    fn bits(&self, field: &Field) -> Range<usize> {
        let first = self.start * 8 + field.bit;
        first..first + field.bits
    }
}

struct Search<'s> {
    wanted: &'s Protocol,
    all: &'s mut Vec<Place>,
}

impl Search<'_> {
    fn visit(&mut self, way: &Found, protocol: &'static Protocol) {
        let mut here = way.clone();
        here.reaches(Offset { base: here.start + protocol.header, number: None });
        if protocol.name == self.wanted.name {
            return self.end(here, protocol);
        }
        if !carries(&here.before, protocol) {
            return;
        }
        match protocol.extent {
            Extent::Fixed => self.behind(&here, protocol, protocol.header),
            Extent::Field { name, unit, plus } => {
                let Some(field) = protocol.field(name) else { return };
                for number in 0..1 << field.bits {
                    let len = number as usize * unit + plus;
                    if len >= protocol.header {
                        let mut here = here.clone();
                        here.conditions.push(Condition::Is { bits: here.bits(field), number });
                        self.behind(&here, protocol, len);
                    }
                }
            }
            Extent::Computed(_) => {}
        }
    }

    /// The header that is looked for is here if the whole of it is.
    fn end(&mut self, mut here: Found, protocol: &'static Protocol) {
        match protocol.extent {
            Extent::Fixed => {}
            Extent::Field { name, unit, plus } => {
                let Some(field) = protocol.field(name) else { return };
                let (bits, least) = (here.bits(field), protocol.header.saturating_sub(plus).div_ceil(unit));
                here.conditions.push(Condition::AtLeast { bits: bits.clone(), number: least as u64 });
                here.reaches(Offset { base: here.start + plus, number: Some((bits, unit)) });
            }
            Extent::Computed(_) => return,
        }
        self.all.push(Place { start: here.start, conditions: here.conditions });
    }

    /// Goes on behind a header of so many bytes.
    fn behind(&mut self, header: &Found, protocol: &'static Protocol, len: usize) {
        let Next::Field { name, table, .. } = protocol.next else { return };
        let Some(field) = protocol.field(name) else { return };
        let mut next = header.clone();
        next.reaches(Offset { base: header.start + len, number: None });
        if let Some((said, from)) = end_field(protocol) {
            let (from, after) = (header.start + from, header.start + len);
            next.said = Some(Said { bits: header.bits(said), from, after });
        }
        // Only the first fragment has the next header.
        if let Some(fragment) = protocol.field("frag") {
            next.conditions.push(Condition::Is { bits: header.bits(fragment), number: 0 });
        }
        next.start += len;
        next.before.push(protocol);
        for (number, name) in table {
            let Some(protocol) = Protocol::named(name) else { continue };
            let mut next = next.clone();
            next.conditions.push(Condition::Is { bits: header.bits(field), number: u64::from(*number) });
            self.visit(&next, protocol);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{bits, build};

    fn number(bytes: &[u8], range: &Range<usize>) -> u64 {
        bits::get(bytes, range.start, range.len()) as u64
    }

    fn holds(condition: &Condition, bytes: &[u8]) -> bool {
        match condition {
            Condition::Is { bits, number: wanted } => number(bytes, bits) == *wanted,
            Condition::AtLeast { bits, number: least } => number(bytes, bits) >= *least,
            Condition::Reaches { to, said } => {
                let variable =
                    to.number.as_ref().map_or(0, |(bits, unit)| number(bytes, bits) as usize * unit);
                let end = said.as_ref().map_or(bytes.len(), |said| {
                    let length = number(bytes, &said.bits) as usize;
                    let end = said.from + length;
                    let is_meant = length != 0 && (said.after..bytes.len()).contains(&end);
                    if is_meant { end } else { bytes.len() }
                });
                to.base + variable <= end
            }
        }
    }

    /// Packets of many forms, and such with changed and missing bytes, have a header where its places say.
    #[test]
    fn headers_are_where_layers_finds_them() {
        let tags = ["", "vlan / ", "qinq / ", "vlan / vlan / ", "qinq / vlan / ", "vlan / vlan / vlan / "];
        let network = [
            "arp",
            "ipv4 / tcp",
            "ipv4 options=0x01010101 / udp / \"hello\"",
            "ipv4 frag=3 / udp",
            "ipv4 / tcp options=0x01010101 / \"x\" / padding 0x00*9",
            "ipv4 len=20 / udp dport=4789",
            "ipv6 / udp / padding 0x00*9",
            "ipv6 / icmpv6",
            "ipv6 / hopopts / tcp",
            "ipv6 / fragment / udp",
            "ipv4 / ipv4 / sctp",
            "ipv4 / gre / ipv4 / icmp",
            "mpls / ipv4 / tcp",
        ];
        let mut random = fastrand::Rng::with_seed(11);
        let all: Vec<_> = Protocol::ALL.iter().map(|protocol| (protocol, places(protocol))).collect();
        let mut found = 0;
        for round in 0..1500 {
            let tags = tags[random.usize(..tags.len())];
            let text = format!("eth / {tags}{}", network[random.usize(..network.len())]);
            let Ok(mut packet) = build(&text) else { panic!("{text}") };
            for _ in 0..random.usize(..3) {
                let at = random.usize(..packet.len().min(60));
                packet[at] = if random.bool() { random.u8(..) } else { packet[at].wrapping_add(1) };
            }
            if round % 3 == 0 {
                packet.truncate(random.usize(..=packet.len()));
            }
            let layers = Layers::new(&packet);
            for (protocol, places) in &all {
                let there: Vec<_> = places
                    .iter()
                    .filter(|place| place.conditions.iter().all(|condition| holds(condition, &packet)))
                    .map(|place| place.start)
                    .collect();
                let expected: Vec<_> = layers.placed(protocol).map(|layer| layer.start).into_iter().collect();
                assert_eq!(there, expected, "{} in {text}: {packet:02x?}", protocol.name);
                found += usize::from(!expected.is_empty());
            }
        }
        assert!(found > 3000, "{found}");
    }

    #[test]
    fn headers_of_tunnels_have_no_place() {
        let count = |name| Protocol::named(name).map(|protocol| places(protocol).len());
        assert_eq!([count("vxlan"), count("gre"), count("eth")], [Some(0), Some(0), Some(1)]);
        // Behind none to two tags, of two kinds.
        assert_eq!([count("arp"), count("ipv4")], [Some(7), Some(14)]);
    }
}
