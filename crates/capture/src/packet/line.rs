//! A packet in one line, as tcpdump prints it.

use std::fmt::Write;

use crate::packet::layers::{Layer, Layers};
use crate::packet::table::{IP_PROTOCOLS, NEXT_HEADERS};

/// Flags of TCP in tcpdump's order, and its letters for them.
const FLAGS: [(u128, &str); 8] =
    [(0x01, "F"), (0x02, "S"), (0x04, "R"), (0x08, "P"), (0x10, "."), (0x20, "U"), (0x40, "E"), (0x80, "W")];
/// FIN, SYN and RST take a sequence number.
const NUMBERED: u128 = 0x07;
const ACK: u128 = 0x10;
const URG: u128 = 0x20;

/// Names of the types of ICMP messages (IANA) that are common.
const ICMP: [(u128, &str); 5] = [
    (0, "echo reply"),
    (3, "destination unreachable"),
    (5, "redirect"),
    (8, "echo request"),
    (11, "time exceeded"),
];
/// The same of ICMPv6.
const ICMP6: [(u128, &str); 9] = [
    (1, "destination unreachable"),
    (2, "packet too big"),
    (3, "time exceeded"),
    (128, "echo request"),
    (129, "echo reply"),
    (133, "router solicitation"),
    (134, "router advertisement"),
    (135, "neighbor solicitation"),
    (136, "neighbor advertisement"),
];

/// A packet in one line in the form of `tcpdump -n -S`: protocol, addresses with ports, flags, lengths; without options, and without what
/// applications say. Tunnels show what is in them after what they are. `bytes` start with an Ethernet header, and may be cut.
#[must_use]
pub fn to_line(bytes: &[u8]) -> String {
    let layers = Layers::new(bytes);
    let mut line = Line { layers: layers.headers(), bytes, text: String::new() };
    for index in 0..line.layers.len() {
        line.layer(index);
    }
    line.rest(layers.payload().len());
    line.text
}

/// The line so far.
struct Line<'a> {
    layers: &'a [Layer<'a>],
    bytes: &'a [u8],
    text: String,
}

impl Line<'_> {
    /// Writing to a string cannot fail.
    fn put(&mut self, text: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(text);
    }

    /// Adds a layer; those that only say what follows add nothing.
    fn layer(&mut self, index: usize) {
        let layer = self.layers[index];
        match layer.protocol.name {
            "vlan" | "qinq" => self.put(format_args!("vlan {}, ", number(&layer, "id"))),
            "mpls" => self.put(format_args!("MPLS label {}, ", number(&layer, "label"))),
            "arp" => self.arp(&layer),
            "ipv4" => self.addresses("IP", index),
            "ipv6" => self.addresses("IP6", index),
            "tcp" => self.tcp(index),
            "udp" => self.udp(index),
            "icmp" => self.icmp(index, "ICMP ", &ICMP, [0, 8]),
            "icmpv6" => self.icmp(index, "ICMP6, ", &ICMP6, [128, 129]),
            "sctp" => self.put(format_args!("SCTP, length {}", self.after(index))),
            "gre" => self.put(format_args!("GREv{}, ", number(&layer, "version"))),
            "vxlan" => self.put(format_args!("VXLAN, vni {}, ", number(&layer, "vni"))),
            "geneve" => self.put(format_args!("Geneve, vni {}, ", number(&layer, "vni"))),
            "gtpu" => self.put(format_args!("GTP-U, teid {:#x}, ", number(&layer, "teid"))),
            _ => {}
        }
    }

    fn arp(&mut self, layer: &Layer<'_>) {
        let field = |name: &str| text(layer, name);
        match number(layer, "op") {
            1 => self.put(format_args!("ARP, Request who-has {} tell {}", field("tpa"), field("spa"))),
            2 => self.put(format_args!("ARP, Reply {} is-at {}", field("spa"), field("sha"))),
            op => self.put(format_args!("ARP, operation {op}")),
        }
        let length = self.bytes.len().saturating_sub(layer.start);
        self.put(format_args!(", length {length}"));
    }

    /// Addresses of IP, with the ports of the transport that follows, perhaps behind extension headers.
    fn addresses(&mut self, name: &str, index: usize) {
        let layer = self.layers[index];
        let of_options = |layer: &&Layer<'_>| {
            !matches!(layer.protocol.name, "hopopts" | "dstopts" | "routing" | "fragment")
        };
        let transport = self.layers[index + 1..].iter().find(of_options);
        let transport = transport.filter(|next| next.protocol.field("sport").is_some());
        let ports = transport.map(|layer| [number(layer, "sport"), number(layer, "dport")]);
        let [from, to] = match ports {
            Some([from, to]) => [format!(".{from}"), format!(".{to}")],
            None => Default::default(),
        };
        self.put(format_args!("{name} {}{from} > {}{to}: ", text(&layer, "src"), text(&layer, "dst")));
    }

    fn tcp(&mut self, index: usize) {
        let layer = self.layers[index];
        let (flags, length) = (number(&layer, "flags"), self.after(index));
        let letters: String =
            FLAGS.into_iter().filter(|(bit, _)| flags & bit != 0).map(|(_, letter)| letter).collect();
        self.put(format_args!("Flags [{}]", if letters.is_empty() { "none" } else { &letters }));
        let seq = number(&layer, "seq") as u32;
        match length {
            0 if flags & NUMBERED == 0 => {}
            0 => self.put(format_args!(", seq {seq}")),
            length => self.put(format_args!(", seq {seq}:{}", seq.wrapping_add(length as u32))),
        }
        if flags & ACK != 0 {
            self.put(format_args!(", ack {}", number(&layer, "ack")));
        }
        self.put(format_args!(", win {}", number(&layer, "window")));
        if flags & URG != 0 {
            self.put(format_args!(", urg {}", number(&layer, "urg")));
        }
        self.put(format_args!(", length {length}"));
    }

    fn udp(&mut self, index: usize) {
        let layer = self.layers[index];
        let length = number(&layer, "len").saturating_sub(layer.header.len() as u128);
        match self.layers.get(index + 1) {
            Some(_) => {}
            None => self.put(format_args!("UDP, length {length}")),
        }
    }

    fn icmp(&mut self, index: usize, name: &str, types: &[(u128, &str)], echoes: [u128; 2]) {
        let layer = self.layers[index];
        let (kind, code) = (number(&layer, "type"), number(&layer, "code"));
        match types.iter().find(|(known, _)| *known == kind) {
            Some((_, words)) => self.put(format_args!("{name}{words}")),
            None => self.put(format_args!("{name}type {kind}, code {code}")),
        }
        if echoes.contains(&kind) {
            self.put(format_args!(", id {}, seq {}", number(&layer, "id"), number(&layer, "seq")));
        }
        let length = self.after(index) + layer.header.len();
        self.put(format_args!(", length {length}"));
    }

    /// The protocol that follows the last header and is not known, or cut.
    fn rest(&mut self, payload: usize) {
        let Some(layer) = self.layers.last() else {
            return self.put(format_args!("no Ethernet header, length {}", self.bytes.len()));
        };
        let next = |name: &str| number(layer, name);
        match layer.protocol.name {
            "eth" | "vlan" | "qinq" | "gre" | "geneve" => {
                self.put(format_args!("ethertype {}, length {payload}", ether_type(layer)));
            }
            "ipv4" if next("frag") > 0 => {
                let (offset, length) = (next("frag") * 8, self.after(self.layers.len() - 1));
                self.put(format_args!("{}, fragment at {offset}, length {length}", protocol(next("proto"))));
            }
            "ipv4" => self.protocol(IP_PROTOCOLS, next("proto")),
            "fragment" if next("frag") > 0 => {
                let (offset, length) = (next("frag") * 8, self.after(self.layers.len() - 1));
                self.put(format_args!("{}, fragment at {offset}, length {length}", protocol(next("next"))));
            }
            "ipv6" | "hopopts" | "dstopts" | "routing" | "fragment" => {
                self.protocol(NEXT_HEADERS, next("next"))
            }
            "mpls" | "vxlan" | "gtpu" => self.put(format_args!("length {payload}")),
            _ => {}
        }
    }

    /// A protocol over IP: cut where its header is known and not whole.
    fn protocol(&mut self, known: &[(u32, &str)], number: u128) {
        let length = self.after(self.layers.len() - 1);
        match known.iter().find(|(known, _)| u128::from(*known) == number) {
            Some((_, name)) => self.put(format_args!("[|{name}]")),
            None => self.put(format_args!("ip-proto-{number}, length {length}")),
        }
    }

    /// Bytes that the innermost IP header around a layer counts behind the layer, captured or not.
    fn after(&self, index: usize) -> usize {
        let start = self.layers[index].start + self.layers[index].header.len();
        let around = self.layers[..=index].iter().rev();
        let ends = around.filter_map(|layer| {
            let from = match layer.protocol.name {
                "ipv4" => 0,
                "ipv6" => layer.header.len(),
                _ => return None,
            };
            Some(layer.start + from + number(layer, "len") as usize)
        });
        ends.into_iter().next().unwrap_or(self.bytes.len()).saturating_sub(start)
    }
}

/// The number of a field; 0 of one that the protocol lacks.
fn number(layer: &Layer<'_>, name: &str) -> u128 {
    layer.protocol.field(name).map_or(0, |field| field.number(layer.header))
}

fn text(layer: &Layer<'_>, name: &str) -> String {
    layer.fields().find(|field| field.field.name == name).map_or_else(String::new, |field| field.to_string())
}

fn ether_type(layer: &Layer<'_>) -> String {
    format!("{:#06x}", number(layer, "type"))
}

fn protocol(number: u128) -> String {
    let known = NEXT_HEADERS.iter().find(|(known, _)| u128::from(*known) == number);
    known.map_or_else(|| format!("ip-proto-{number}"), |(_, name)| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::to_line;
    use crate::packet::build;

    #[test]
    fn packets_are_lines_as_tcpdump_prints_them() {
        let line = |words: &str| to_line(&build(words).unwrap());
        for (words, expected) in [
            (
                "eth / ipv4 src=10.0.0.1 dst=10.0.0.2 / tcp sport=1024 dport=22 seq=5",
                "IP 10.0.0.1.1024 > 10.0.0.2.22: Flags [S], seq 5, win 65535, length 0",
            ),
            (
                "eth / vlan id=7 / ipv6 / tcp sport=1 dport=2 flags=PA seq=7 ack=9 window=3 / \"abc\"",
                "vlan 7, IP6 2001:db8::1.1 > 2001:db8::2.2: Flags [P.], seq 7:10, ack 9, win 3, length 3",
            ),
            ("eth / ipv4 / udp dport=53 / \"abcd\"", "IP 192.0.2.1.49152 > 192.0.2.2.53: UDP, length 4"),
            (
                "eth / ipv4 / icmp id=1 seq=2 / \"x\"",
                "IP 192.0.2.1 > 192.0.2.2: ICMP echo request, id 1, seq 2, length 9",
            ),
            ("eth / arp", "ARP, Request who-has 192.0.2.2 tell 192.0.2.1, length 28"),
            (
                "eth / ipv4 / udp / vxlan vni=5 / eth / ipv4 / icmpv6",
                "IP 192.0.2.1.49152 > 192.0.2.2.4789: VXLAN, vni 5, IP 192.0.2.1 > 192.0.2.2: ICMP6, \
                 echo request, id 0, seq 0, length 8",
            ),
            ("eth / \"abc\"", "ethertype 0x88b5, length 3"),
            ("eth / ipv4 proto=tcp / \"ab\"", "IP 192.0.2.1 > 192.0.2.2: [|tcp]"),
            (
                "eth / ipv4 frag=2 proto=udp / \"ab\"",
                "IP 192.0.2.1 > 192.0.2.2: udp, fragment at 16, length 2",
            ),
            ("eth / ipv4 / \"ab\"", "IP 192.0.2.1 > 192.0.2.2: ip-proto-253, length 2"),
        ] {
            assert_eq!(line(words), expected, "{words}");
        }
        assert_eq!(to_line(&[1, 2]), "no Ethernet header, length 2");
        assert_eq!(to_line(&[]), "no Ethernet header, length 0");
    }
}
