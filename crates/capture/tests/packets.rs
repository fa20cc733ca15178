//! Packets from text and back, against `etherparse` and on arbitrary bytes.

use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use paceline_capture::packet::{Layers, Protocol, build, differences, to_text};

fn packet(text: &str) -> Vec<u8> {
    build(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn packets_equal_those_of_another_builder() {
    let mut tcp = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv4([10, 0, 0, 1], [10, 0, 0, 2], 63)
        .tcp(1024, 443, 7, 1000)
        .psh()
        .ack(9)
        .write(&mut tcp, b"odd payload")
        .unwrap();
    let text = r#"eth / ipv4 src=10.0.0.1 dst=10.0.0.2 ttl=63 flags=DF
        / tcp sport=1024 dport=443 seq=7 ack=9 flags=PA window=1000 / "odd payload""#;
    assert_eq!(packet(text), tcp);

    let mut udp = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .single_vlan(7.try_into().unwrap())
        .ipv6([1; 16], [2; 16], 3)
        .udp(53, 5353)
        .write(&mut udp, b"x")
        .unwrap();
    let text = "eth / vlan id=7 / ipv6 src=101:101:101:101:101:101:101:101 dst=202:202:202:202:202:202:202:202 hlim=3
        / udp sport=53 dport=5353 / 'x'";
    assert_eq!(packet(text), udp);

    let mut echo = Vec::new();
    PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ipv6([1; 16], [2; 16], 3)
        .icmpv6_echo_request(3, 4)
        .write(&mut echo, &[1, 2, 3])
        .unwrap();
    let text = "eth / ipv6 src=101:101:101:101:101:101:101:101 dst=202:202:202:202:202:202:202:202 hlim=3
        / icmpv6 id=3 seq=4 / 0x010203";
    assert_eq!(packet(text), echo);
}

#[test]
fn another_parser_reads_the_layers_that_are_built() {
    let bytes =
        packet("eth / qinq id=5 / vlan id=6 / ipv4 options=0x01 / tcp dport=22 options=0x020405b4 / 0x00*30");
    let sliced = SlicedPacket::from_ethernet(&bytes).unwrap();
    let ids: Vec<u16> = sliced.vlan_ids().iter().map(|id| id.value()).collect();
    assert_eq!(ids, [5, 6]);
    let Some(TransportSlice::Tcp(tcp)) = sliced.transport else { panic!("{sliced:?}") };
    assert_eq!((tcp.destination_port(), tcp.options(), tcp.payload().len()), (22, &[2, 4, 5, 0xb4][..], 30));
    let Some(etherparse::NetSlice::Ipv4(ip)) = sliced.net else { panic!() };
    assert_eq!(ip.header().header_checksum(), ip.header().to_header().calc_header_checksum());
    assert_eq!(ip.header().options(), [1, 0, 0, 0]);
}

#[test]
fn every_protocol_has_fields_that_do_not_overlap_and_fill_its_header() {
    for protocol in Protocol::ALL {
        let fixed: Vec<_> = protocol.fields.iter().filter(|field| field.bits > 0).collect();
        let mut at = 0;
        for field in &fixed {
            assert!(field.bit >= at, "{}.{}", protocol.name, field.name);
            at = field.bit + field.bits;
        }
        assert!(at <= protocol.header * 8, "{}", protocol.name);
    }
}

#[test]
fn tunnels_name_their_next_header() {
    for text in [
        "eth / ipv4 / udp / vxlan vni=5 / eth / ipv6 / tcp",
        "eth / ipv4 / gre / ipv4 / icmp",
        "eth / ipv4 / udp / geneve options=0x00112233 type=eth / eth / arp",
        "eth / mpls label=3 / mpls label=4 / ipv4 / udp dport=53 / \"q\"",
        "eth / ipv6 / hopopts / fragment id=0x00000007 / udp",
        "eth / ipv6 / ipv4 / gre flags=K options=0x00000001 / eth / vlan",
        "eth / ipv4 / udp / gtpu teid=0x00000009 / ipv4 / tcp",
        "eth / ipv4 / tcp / padding 0x000000",
    ] {
        let bytes = packet(text);
        let names = |text: &str| {
            text.split(" / ").map(|l| l.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names(&to_text(&bytes)), names(text), "{text}");
        assert_eq!(packet(&to_text(&bytes)), bytes);
    }
}

#[test]
fn computed_values_are_not_written() {
    for text in [
        "eth / ipv4 / udp dport=53 / 0x00*1000",
        "eth / ipv6 / fragment / tcp flags=A / \"x\"",
        "eth / mpls / ipv4 / icmp type=0",
    ] {
        assert_eq!(to_text(&packet(text)), text);
    }
}

#[test]
fn values_that_are_given_are_not_computed() {
    let text = "eth type=ipv4 / ipv4 len=1000 csum=0x0000 / udp len=4 csum=0xbeef / \"x\"";
    let bytes = packet(text);
    let layers = Layers::new(&bytes);
    for (path, value) in
        [("ipv4.len", "1000"), ("ipv4.csum", "0x0000"), ("udp.len", "4"), ("udp.csum", "0xbeef")]
    {
        assert_eq!(layers.field(path).unwrap().to_string(), value, "{path}");
    }
    assert_eq!(to_text(&bytes), text.replace("eth type=ipv4", "eth"));
}

#[test]
fn bytes_of_a_packet_have_names() {
    let bytes = packet("eth / ipv4 / tcp / \"payload\" / padding 0x0000");
    let layers = Layers::new(&bytes);
    let names = [
        ((12, 2), "eth.type"),
        ((23, 1), "ipv4.proto"),
        ((14, 1), "ipv4.{version,ihl}"),
        ((26, 2), "ipv4.src[0..2]"),
        ((34, 4), "tcp.{sport,dport}"),
        ((47, 1), "tcp.flags"),
        ((54, 1), "payload[0]"),
        ((61, 2), "padding[0..2]"),
        ((0, 14), "eth.{dst,src,type}"),
        ((12, 4), "eth.type to ipv4.ecn"),
    ];
    for ((offset, len), name) in names {
        assert_eq!(layers.name_at(offset, len), name, "{offset} {len}");
    }
    assert!(layers.field("tcp.flags").unwrap().has("S").unwrap());
    assert_eq!(layers.field("tcp.flags").unwrap().has("Q"), None);
}

#[test]
fn errors_have_their_place() {
    let cases = [
        ("", "column 1: a layer is missing: a protocol, \"text\" or bytes such as 0x0102"),
        ("eth / ", "column 7: a layer is missing: a protocol, \"text\" or bytes such as 0x0102"),
        ("eth / ip4", "column 7: no protocol is named `ip4`, perhaps `ipv4`"),
        ("eth / ipv4 tll=3", "column 12: ipv4 has no field `tll`, perhaps `ttl`"),
        ("eth / ipv4 ttl=3 ttl=4", "column 18: ipv4.ttl is given twice"),
        ("eth / ipv4 ttl=256", "column 16: ipv4.ttl has 8 bits, too few for `256`"),
        ("eth / ipv4 src=1.2.3", "column 16: ipv4.src must be an address such as 192.0.2.1, not `1.2.3`"),
        (
            "eth / tcp flags=SX",
            "column 17: tcp.flags must be a number, or of S, A, P, F, R, U, E, C, N, not `SX`",
        ),
        ("eth / ipv4 tcp", "column 12: `tcp` must be a field as name=value, or a `/` is missing before it"),
        ("eth / \"x", "column 7: the text has no closing quote"),
        (
            "eth / \"\\q\"",
            "column 8: `\\q` is no escape: there are \\n, \\r, \\t, \\0, \\\\, \\\", \\' and \\xNN",
        ),
        ("eth / 0x123", "column 7: bytes are 0x and pairs of hexadecimal digits"),
        ("eth / 0x12*99999", "column 12: `*` takes a number up to 65535"),
        ("eth / 0x1234*65535 / 0x00*3", "column 22: a packet has at most 131072 bytes"),
        ("eth / 0x12 / ipv4", "column 14: a header cannot follow bytes without a protocol"),
        ("eth / padding 0x12 / 0x13", "column 22: padding is the last of a packet"),
        ("eth / \"x\" y", "column 11: `/` must follow"),
        (
            "eth / ipv4 / 0x00*65530",
            "column 7: ipv4.len has 16 bits, too few for 65550 bytes: give another value, or send less",
        ),
        ("eth / ip / tcp", "column 7: no protocol is named `ip`, perhaps `ipv4`"),
        ("ethernet / ipv4", "column 1: no protocol is named `ethernet`, perhaps `eth`"),
        (
            "eth / tcp dport=80",
            "column 7: eth cannot say that tcp follows: ipv4 or ipv6 is missing between, or give eth.type",
        ),
        (
            "eth / ipv4 / vlan",
            "column 14: ipv4 cannot say that vlan follows: gre is missing between, or give ipv4.proto",
        ),
        ("eth / tcp options=0x01*50", "column 19: tcp.options must be bytes such as 0x0102, not `0x01*50`"),
    ];
    build("eth type=0x1234 / tcp").expect("a number that is given");
    for (text, message) in cases {
        assert_eq!(
            build(text).map(drop).map_err(|error| error.to_string()),
            Err(message.to_owned()),
            "{text}"
        );
    }
    let long = format!("eth / ipv4 / tcp options=0x{}", "01".repeat(41));
    let message = "column 14: tcp.options has more bytes than a header can have";
    assert_eq!(build(&long).map(drop).map_err(|error| error.to_string()), Err(message.to_owned()));
}

/// Changed packets: lengths, flags and protocols that lie.
fn campaign(seed: u64, rounds: usize) {
    let mut random = fastrand::Rng::with_seed(seed);
    let texts = [
        "eth / vlan / ipv4 options=0x01020304 / tcp options=0x01010101 / \"hello\"",
        "eth / ipv6 / hopopts / routing / fragment / udp / vxlan / eth / ipv4 / icmp / 0x1234",
        "eth / ipv4 / gre flags=CKS options=0x000000000000000000000000 / mpls / ipv6 / sctp / 'abc'",
        "eth / arp / padding 0x00*18",
        "eth / ipv4 / udp / geneve options=0x0000000000000000 / eth / ipv4 / udp / gtpu / ipv6 / dstopts / icmpv6",
    ];
    for round in 0..rounds {
        let mut bytes = packet(random.choice(texts).unwrap());
        for _ in 0..random.usize(0..6) {
            let at = random.usize(0..bytes.len());
            bytes[at] = random.u8(..);
        }
        bytes.truncate(random.usize(0..=bytes.len() * 2));
        let text = to_text(&bytes);
        assert_eq!(build(&text).as_ref(), Ok(&bytes), "seed {seed} round {round}: {text}");
        let layers = Layers::new(&bytes);
        for field in layers.fields() {
            assert_eq!(
                field.has(&field.to_string()),
                Some(true),
                "seed {seed} round {round}: {}",
                field.path()
            );
        }
        let at = random.usize(0..bytes.len() + 4);
        let _ = layers.name_at(at, random.usize(1..17));
        // The text itself, changed.
        let mut text = text.into_bytes();
        let at = random.usize(0..text.len());
        text[at] = random.u8(b' '..b'\x7f');
        if let Ok(bytes) = build(&String::from_utf8_lossy(&text)) {
            assert_eq!(build(&to_text(&bytes)), Ok(bytes));
        }
    }
}

#[test]
fn arbitrary_packets_are_text_and_come_back() {
    let rounds = std::env::var("PACELINE_PACKETS").map_or(3_000, |rounds| rounds.parse().unwrap());
    (0..4).for_each(|seed| campaign(seed, rounds));
}

#[test]
fn differences_have_the_names_of_fields() {
    let before = packet("eth / ipv4 ttl=64 csum=0x0000 / udp csum=0x0000 / \"hello\"");
    let after = packet("eth / vlan id=5 / ipv4 ttl=63 csum=0x0000 / udp csum=0x0000 / \"help\"");
    let all = differences(&before, &after);
    let one = |name: &str| {
        let found =
            all.iter().find(|difference| difference.name == name).unwrap_or_else(|| panic!("{all:?}"));
        (found.before.as_deref(), found.after.as_deref())
    };
    assert_eq!(one("ipv4.ttl"), (Some("64"), Some("63")));
    assert_eq!(one("eth.type"), (Some("ipv4"), Some("vlan")));
    assert_eq!(one("vlan"), (None, Some("pcp=0 dei=0 id=5 type=ipv4")));
    assert_eq!(one("payload from byte 3"), (Some("\"lo\""), Some("\"p\"")));
    assert_eq!(differences(&before, &before), []);
}

#[test]
fn the_page_about_tests_has_every_protocol_with_its_fields() {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/TESTING.md");
    let page = std::fs::read_to_string(page).expect("the page");
    for protocol in Protocol::ALL {
        let fields: Vec<_> = protocol.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        let row = format!("| `{}` | {} |", protocol.name, fields.join(" "));
        assert!(page.contains(&row), "no row {row}");
    }
}
