//! The protocols.

use crate::packet::protocol::Checksum::{Crc32c, Header, Message, Transport, Udp};
use crate::packet::protocol::Default::{
    Bytes, Checksum, HeaderLength, LastOfItsKind, Length, Next as NextNumber, Value,
};
use crate::packet::protocol::Extent::{Computed, Field as ByField, Fixed};
use crate::packet::protocol::Kind::{self, EtherType, Flags, Hex, IpProtocol, Ipv4, Ipv6, Mac, Number};
use crate::packet::protocol::{Default, Field, Next, Protocol};

/// EtherTypes (IEEE registration authority) of the protocols that may follow.
pub(crate) const ETHER_TYPES: &[(u32, &str)] = &[
    (0x0800, "ipv4"),
    (0x86dd, "ipv6"),
    (0x0806, "arp"),
    (0x8100, "vlan"),
    (0x88a8, "qinq"),
    (0x8847, "mpls"),
    (0x6558, "eth"),
];

/// Protocol numbers (IANA) of the protocols that may follow IPv4.
pub(crate) const IP_PROTOCOLS: &[(u32, &str)] = &[
    (1, "icmp"),
    (6, "tcp"),
    (17, "udp"),
    (4, "ipv4"),
    (41, "ipv6"),
    (47, "gre"),
    (58, "icmpv6"),
    (132, "sctp"),
];

/// Protocol numbers of the protocols that may follow IPv6, with its extension headers.
pub(crate) const NEXT_HEADERS: &[(u32, &str)] = &[
    (0, "hopopts"),
    (43, "routing"),
    (44, "fragment"),
    (60, "dstopts"),
    (1, "icmp"),
    (6, "tcp"),
    (17, "udp"),
    (4, "ipv4"),
    (41, "ipv6"),
    (47, "gre"),
    (58, "icmpv6"),
    (132, "sctp"),
];

/// Destination ports (IANA) of tunnels over UDP.
const TUNNELS: &[(u32, &str)] = &[(4789, "vxlan"), (6081, "geneve"), (2152, "gtpu")];

/// EtherType for local experiments, of a frame whose payload has no protocol.
const LOCAL_EXPERIMENT: u128 = 0x88b5;

/// Protocol number for experiments (RFC 3692), of a packet whose payload has no protocol.
const EXPERIMENT: u128 = 253;

const BY_ETHER_TYPE: Next = Next::Field { name: "type", table: ETHER_TYPES, applies: always };
const BY_NEXT_HEADER: Next = Next::Field { name: "next", table: NEXT_HEADERS, applies: always };

const DONT_FRAGMENT: Kind = Flags(&[("DF", 2), ("MF", 1), ("EVIL", 4)]);
const TCP_FLAGS: Kind = Flags(&[
    ("S", 0x002),
    ("A", 0x010),
    ("P", 0x008),
    ("F", 0x001),
    ("R", 0x004),
    ("U", 0x020),
    ("E", 0x040),
    ("C", 0x080),
    ("N", 0x100),
]);

/// An option that pads (RFC 8200, section 4.2): the shortest header of options.
const PAD: &[u8] = &[1, 4, 0, 0, 0, 0];

const fn field(name: &'static str, bit: usize, bits: usize, kind: Kind, default: Default) -> Field {
    Field { name, bit, bits, kind, default }
}

const fn number(name: &'static str, bit: usize, bits: usize, value: u128) -> Field {
    field(name, bit, bits, Number, Value(value))
}

const fn hex(name: &'static str, bit: usize, bits: usize, value: u128) -> Field {
    field(name, bit, bits, Hex, Value(value))
}

/// The bytes between the fixed part, of `header` bytes, and the end of the header.
const fn rest(name: &'static str, header: usize, default: &'static [u8]) -> Field {
    field(name, header * 8, 0, Kind::Bytes, Bytes(default))
}

const TAG: &[Field] = &[
    number("pcp", 0, 3, 0),
    number("dei", 3, 1, 0),
    number("id", 4, 12, 0),
    field("type", 16, 16, EtherType, NextNumber(LOCAL_EXPERIMENT)),
];

const OPTIONS: &[Field] = &[
    field("next", 0, 8, IpProtocol, NextNumber(EXPERIMENT)),
    field("len", 8, 8, Number, HeaderLength { unit: 8, less: 1 }),
    rest("options", 2, PAD),
];

const fn of_tag(name: &'static str, about: &'static str) -> Protocol {
    Protocol { name, about, header: 4, fields: TAG, extent: Fixed, next: BY_ETHER_TYPE }
}

const fn of_options(name: &'static str, about: &'static str) -> Protocol {
    let extent = ByField { name: "len", unit: 8, plus: 8 };
    Protocol { name, about, header: 2, fields: OPTIONS, extent, next: BY_NEXT_HEADER }
}

pub(crate) const PROTOCOLS: &[Protocol] = &[
    Protocol {
        name: "eth",
        about: "Ethernet, IEEE 802.3",
        header: 14,
        fields: &[
            field("dst", 0, 48, Mac, Value(0x0200_0000_0002)),
            field("src", 48, 48, Mac, Value(0x0200_0000_0001)),
            field("type", 96, 16, EtherType, NextNumber(LOCAL_EXPERIMENT)),
        ],
        extent: Fixed,
        next: BY_ETHER_TYPE,
    },
    of_tag("vlan", "VLAN tag, IEEE 802.1Q"),
    of_tag("qinq", "VLAN tag of a service provider, IEEE 802.1ad"),
    Protocol {
        name: "arp",
        about: "Address resolution for IPv4 over Ethernet, RFC 826",
        header: 28,
        fields: &[
            number("htype", 0, 16, 1),
            field("ptype", 16, 16, EtherType, Value(0x0800)),
            number("hlen", 32, 8, 6),
            number("plen", 40, 8, 4),
            number("op", 48, 16, 1),
            field("sha", 64, 48, Mac, Value(0x0200_0000_0001)),
            field("spa", 112, 32, Ipv4, Value(0xc000_0201)),
            field("tha", 144, 48, Mac, Value(0)),
            field("tpa", 192, 32, Ipv4, Value(0xc000_0202)),
        ],
        extent: Fixed,
        next: Next::Payload,
    },
    Protocol {
        name: "ipv4",
        about: "IPv4, RFC 791",
        header: 20,
        fields: &[
            number("version", 0, 4, 4),
            field("ihl", 4, 4, Number, HeaderLength { unit: 4, less: 0 }),
            number("dscp", 8, 6, 0),
            number("ecn", 14, 2, 0),
            field("len", 16, 16, Number, Length { from: 0 }),
            number("id", 32, 16, 0),
            field("flags", 48, 3, DONT_FRAGMENT, Value(0)),
            number("frag", 51, 13, 0),
            number("ttl", 64, 8, 64),
            field("proto", 72, 8, IpProtocol, NextNumber(EXPERIMENT)),
            field("csum", 80, 16, Hex, Checksum(Header)),
            field("src", 96, 32, Ipv4, Value(0xc000_0201)),
            field("dst", 128, 32, Ipv4, Value(0xc000_0202)),
            rest("options", 20, &[]),
        ],
        extent: ByField { name: "ihl", unit: 4, plus: 0 },
        next: Next::Field { name: "proto", table: IP_PROTOCOLS, applies: is_first_of_ipv4 },
    },
    Protocol {
        name: "ipv6",
        about: "IPv6, RFC 8200",
        header: 40,
        fields: &[
            number("version", 0, 4, 6),
            number("tc", 4, 8, 0),
            hex("flow", 12, 20, 0),
            field("len", 32, 16, Number, Length { from: 40 }),
            field("next", 48, 8, IpProtocol, NextNumber(EXPERIMENT)),
            number("hlim", 56, 8, 64),
            field("src", 64, 128, Ipv6, Value(0x2001_0db8_0000_0000_0000_0000_0000_0001)),
            field("dst", 192, 128, Ipv6, Value(0x2001_0db8_0000_0000_0000_0000_0000_0002)),
        ],
        extent: Fixed,
        next: BY_NEXT_HEADER,
    },
    of_options("hopopts", "IPv6 hop-by-hop options, RFC 8200"),
    of_options("dstopts", "IPv6 destination options, RFC 8200"),
    of_options("routing", "IPv6 routing header, RFC 8200"),
    Protocol {
        name: "fragment",
        about: "IPv6 fragment header, RFC 8200",
        header: 8,
        fields: &[
            field("next", 0, 8, IpProtocol, NextNumber(EXPERIMENT)),
            number("reserved", 8, 8, 0),
            number("frag", 16, 13, 0),
            number("reserved2", 29, 2, 0),
            number("more", 31, 1, 0),
            hex("id", 32, 32, 0),
        ],
        extent: Fixed,
        next: Next::Field { name: "next", table: NEXT_HEADERS, applies: is_first_of_ipv6 },
    },
    Protocol {
        name: "tcp",
        about: "TCP, RFC 9293",
        header: 20,
        fields: &[
            number("sport", 0, 16, 49152),
            number("dport", 16, 16, 80),
            number("seq", 32, 32, 0),
            number("ack", 64, 32, 0),
            field("off", 96, 4, Number, HeaderLength { unit: 4, less: 0 }),
            number("reserved", 100, 3, 0),
            field("flags", 103, 9, TCP_FLAGS, Value(0x002)),
            number("window", 112, 16, 65535),
            field("csum", 128, 16, Hex, Checksum(Transport)),
            number("urg", 144, 16, 0),
            rest("options", 20, &[]),
        ],
        extent: ByField { name: "off", unit: 4, plus: 0 },
        next: Next::Payload,
    },
    Protocol {
        name: "udp",
        about: "UDP, RFC 768",
        header: 8,
        fields: &[
            number("sport", 0, 16, 49152),
            field("dport", 16, 16, Number, NextNumber(9)),
            field("len", 32, 16, Number, Length { from: 0 }),
            field("csum", 48, 16, Hex, Checksum(Udp)),
        ],
        extent: Fixed,
        next: Next::Field { name: "dport", table: TUNNELS, applies: always },
    },
    Protocol {
        name: "icmp",
        about: "ICMP, RFC 792",
        header: 8,
        fields: &[
            number("type", 0, 8, 8),
            number("code", 8, 8, 0),
            field("csum", 16, 16, Hex, Checksum(Message)),
            number("id", 32, 16, 0),
            number("seq", 48, 16, 0),
        ],
        extent: Fixed,
        next: Next::Payload,
    },
    Protocol {
        name: "icmpv6",
        about: "ICMPv6, RFC 4443",
        header: 8,
        fields: &[
            number("type", 0, 8, 128),
            number("code", 8, 8, 0),
            field("csum", 16, 16, Hex, Checksum(Transport)),
            number("id", 32, 16, 0),
            number("seq", 48, 16, 0),
        ],
        extent: Fixed,
        next: Next::Payload,
    },
    Protocol {
        name: "sctp",
        about: "SCTP, RFC 9260",
        header: 12,
        fields: &[
            number("sport", 0, 16, 49152),
            number("dport", 16, 16, 80),
            hex("tag", 32, 32, 0),
            field("csum", 64, 32, Hex, Checksum(Crc32c)),
        ],
        extent: Fixed,
        next: Next::Payload,
    },
    Protocol {
        name: "gre",
        about: "GRE, RFC 2784 and RFC 2890",
        header: 4,
        fields: &[
            field("flags", 0, 4, Flags(&[("C", 8), ("R", 4), ("K", 2), ("S", 1)]), Value(0)),
            number("reserved", 4, 9, 0),
            number("version", 13, 3, 0),
            field("type", 16, 16, EtherType, NextNumber(LOCAL_EXPERIMENT)),
            rest("options", 4, &[]),
        ],
        extent: Computed(gre_header),
        next: BY_ETHER_TYPE,
    },
    Protocol {
        name: "vxlan",
        about: "VXLAN, RFC 7348",
        header: 8,
        fields: &[
            hex("flags", 0, 8, 8),
            hex("reserved", 8, 24, 0),
            number("vni", 32, 24, 0),
            hex("reserved2", 56, 8, 0),
        ],
        extent: Fixed,
        next: Next::Always("eth"),
    },
    Protocol {
        name: "geneve",
        about: "Geneve, RFC 8926",
        header: 8,
        fields: &[
            number("version", 0, 2, 0),
            field("optlen", 2, 6, Number, HeaderLength { unit: 4, less: 2 }),
            hex("flags", 8, 8, 0),
            field("type", 16, 16, EtherType, NextNumber(LOCAL_EXPERIMENT)),
            number("vni", 32, 24, 0),
            hex("reserved", 56, 8, 0),
            rest("options", 8, &[]),
        ],
        extent: ByField { name: "optlen", unit: 4, plus: 8 },
        next: BY_ETHER_TYPE,
    },
    Protocol {
        name: "gtpu",
        about: "GTP-U, 3GPP TS 29.281",
        header: 8,
        fields: &[
            hex("flags", 0, 8, 0x30),
            number("type", 8, 8, 255),
            field("len", 16, 16, Number, Length { from: 8 }),
            hex("teid", 32, 32, 0),
            rest("options", 8, &[]),
        ],
        extent: Computed(gtpu_header),
        next: Next::Computed(after_gtpu),
    },
    Protocol {
        name: "mpls",
        about: "MPLS label, RFC 3032",
        header: 4,
        fields: &[
            number("label", 0, 20, 16),
            number("tc", 20, 3, 0),
            field("bottom", 23, 1, Number, LastOfItsKind),
            number("ttl", 24, 8, 64),
        ],
        extent: Fixed,
        next: Next::Computed(after_mpls),
    },
];

fn gre_header(fixed: &[u8]) -> usize {
    let flags = fixed.first().copied().unwrap_or(0);
    // Checksum and offset share a word, which is there with either.
    4 + 4 * [flags & 0xc0 != 0, flags & 0x20 != 0, flags & 0x10 != 0].into_iter().filter(|has| *has).count()
}

fn gtpu_header(fixed: &[u8]) -> usize {
    if fixed.first().is_some_and(|flags| flags & 7 != 0) { 12 } else { 8 }
}

fn after_gtpu(header: &[u8], rest: &[u8]) -> Option<&'static str> {
    // With an extension header the inner packet starts later.
    let is_plain = header.first().is_some_and(|flags| flags & 4 == 0);
    (is_plain && header.get(1) == Some(&255)).then(|| by_version(rest)).flatten()
}

fn after_mpls(header: &[u8], rest: &[u8]) -> Option<&'static str> {
    let is_last = header.get(2).is_some_and(|byte| byte & 1 == 1);
    if is_last { by_version(rest) } else { Some("mpls") }
}

/// Neither MPLS nor GTP-U names what follows.
fn by_version(rest: &[u8]) -> Option<&'static str> {
    match rest.first()? >> 4 {
        4 => Some("ipv4"),
        6 => Some("ipv6"),
        _ => None,
    }
}

fn always(_header: &[u8]) -> bool {
    true
}

/// Only the first fragment has the next header.
fn is_first_of_ipv6(header: &[u8]) -> bool {
    matches!(header, [_, _, 0, low, ..] if low & 0xf8 == 0)
}

fn is_first_of_ipv4(header: &[u8]) -> bool {
    matches!(header, [_, _, _, _, _, _, high, 0, ..] if high & 0x1f == 0)
}
