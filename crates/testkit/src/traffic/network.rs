//! ICMP, fragments, options, extension headers, and other protocols over IP.

use super::conversations::router;
use super::layers::{
    Host, ICMPV6, IPV6, Ipv4, MORE_FRAGMENTS, TCP, Tcp, UDP, address, checksum, control, datagram, ethernet,
    flag, host, ip, ipv4_with, ipv6_with, multicast_mac, text, udp, v4, v6,
};
use super::trace::Trace;

fn router6() -> Host {
    Host { ip: address("2001:db8:1::1"), ..router() }
}

pub(super) fn control_messages(trace: &mut Trace) {
    let client = host("198.51.100.80", 0x81);
    let client6 = host("2001:db8:2::80", 0x81);
    for (number, len) in [0usize, 1, 56, 500, 1_100].into_iter().enumerate() {
        let body = [&[0x12, 0x34, 0, number as u8][..], &text(len)].concat();
        trace.put_padded(control(client, router(), 8, 0, &body));
        trace.put_padded(control(router(), client, 0, 0, &body));
        trace.put_padded(control(client6, router6(), 128, 0, &body));
        trace.put_padded(control(router6(), client6, 129, 0, &body));
    }
    // ICMP errors contain the start of the packet that caused them.
    let about = udp(client, Host { ip: address("192.0.2.10"), ..router() }, (40_000, 33_434), &text(24));
    let quoted = &about[14..];
    for (kind, code, rest) in [
        (3, 3, [0, 0, 0, 0]),
        (3, 4, [0, 0, 0x05, 0xdc]),
        (3, 13, [0; 4]),
        (5, 1, [192, 0, 2, 254]),
        (11, 0, [0; 4]),
        (12, 0, [20, 0, 0, 0]),
    ] {
        trace.put(control(router(), client, kind, code, &[&rest[..], &quoted[..28]].concat()));
    }
    trace.put_padded(control(client, router(), 13, 0, &[0, 1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]));
    let about = udp(client6, router6(), (40_000, 33_434), &text(24));
    let quoted = &about[14..];
    for (kind, code, rest) in [(1, 4, [0; 4]), (2, 0, [0, 0, 5, 0]), (3, 0, [0; 4]), (4, 1, [0, 0, 0, 6])] {
        trace.put(control(router6(), client6, kind, code, &[&rest[..], quoted].concat()));
    }
    neighbor_discovery(trace);
}

fn group(ip: &str) -> Host {
    let ip = address(ip);
    Host { mac: multicast_mac(ip), ip }
}

fn neighbor_discovery(trace: &mut Trace) {
    let (node, gateway) = (host("fe80::81", 0x81), host("fe80::1", 1));
    let source_mac = [&[1, 1][..], &node.mac].concat();
    let gateway_mac = [&[1, 1][..], &gateway.mac].concat();
    trace.put(control(node, group("ff02::2"), 133, 0, &[&[0; 4][..], &source_mac].concat()));
    let advertised =
        [&[64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0][..], &gateway_mac, &[5, 1, 0, 0, 0, 0, 5, 0xdc]].concat();
    trace.put(control(gateway, group("ff02::1"), 134, 0, &advertised));
    let target = v6("fe80::1");
    trace.put(control(node, group("ff02::1:ff00:1"), 135, 0, &[&[0; 4][..], &target, &source_mac].concat()));
    let found = [&[0xe0, 0, 0, 0][..], &target, &[2, 1], &gateway.mac].concat();
    trace.put(control(gateway, node, 136, 0, &found));
    // Duplicate address detection, from the unspecified address.
    let nobody = Host { ip: address("::"), ..node };
    trace.put(control(nobody, group("ff02::1:ff00:81"), 135, 0, &[&[0; 4][..], &v6("fe80::81")].concat()));
    // Multicast listener report, with the router alert in a hop-by-hop header.
    let report =
        control(node, group("ff02::16"), 143, 0, &[&[0, 0, 0, 1, 4, 0, 0, 0][..], &v6("ff02::fb")].concat());
    let message = &report[14 + 40..];
    let payload = [&[ICMPV6, 0, 5, 2, 0, 0, 1, 0][..], message].concat();
    let to = group("ff02::16");
    trace.put(ethernet(to.mac, node.mac, IPV6, &ipv6_with(0, 0, 1, node.ip, to.ip, 0, &payload)));
}

/// The fragments of an IP payload: offset, and whether more follow.
fn pieces(payload: &[u8], len: usize) -> impl Iterator<Item = (usize, bool, &[u8])> {
    assert_eq!(len % 8, 0);
    payload.chunks(len).enumerate().map(move |(number, piece)| {
        let offset = number * len;
        (offset, offset + piece.len() < payload.len(), piece)
    })
}

fn fragment_field(offset: usize, more: bool) -> u16 {
    (offset / 8) as u16 | if more { MORE_FRAGMENTS } else { 0 }
}

pub(super) fn fragments(trace: &mut Trace) {
    let (client, server) = (host("198.51.100.90", 0x91), router());
    let whole = datagram(client, server, (9_000, 9_003), &text(3_500));
    for (offset, more, piece) in pieces(&whole, 1480) {
        let header = Ipv4 { id: 0x4242, fragment: fragment_field(offset, more), ..Ipv4::default() };
        trace.put_padded(ipv4_with(&header, client, server, UDP, piece));
    }
    // A first fragment too short for the TCP flags (RFC 1858), then the rest of the header.
    let syn =
        Tcp { ports: (45_000, 80), flags: flag::SYN, ..Tcp::default() }.segment(client, server, &text(12));
    for (offset, more, piece) in pieces(&syn, 8) {
        let header = Ipv4 { id: 0x4343, fragment: fragment_field(offset, more), ..Ipv4::default() };
        trace.put_padded(ipv4_with(&header, client, server, TCP, piece));
    }
    // An overlapping fragment, a missing last fragment, and one that ends beyond 65,535.
    for (fragment, piece) in
        [(MORE_FRAGMENTS | 3, &text(64)), (0x1fff, &text(64)), (MORE_FRAGMENTS, &text(56))]
    {
        let header = Ipv4 { id: 0x4444, fragment, ..Ipv4::default() };
        trace.put_padded(ipv4_with(&header, client, server, UDP, piece));
    }
    let (client6, server6) = (host("2001:db8:2::90", 0x91), router6());
    let whole = datagram(client6, server6, (9_000, 9_003), &text(2_000));
    for (offset, more, piece) in pieces(&whole, 1232) {
        let field = (offset as u16 | u16::from(more)).to_be_bytes();
        let payload = [&[UDP, 0, field[0], field[1], 0, 0, 0x42, 0x42][..], piece].concat();
        trace.put(ip(client6, server6, 44, &payload));
    }
    // An atomic fragment (RFC 6946): a fragment header, but no other piece.
    let whole = datagram(client6, server6, (9_000, 9_004), b"atomic");
    trace.put_padded(ip(client6, server6, 44, &[&[UDP, 0, 0, 0, 0, 0, 0, 1][..], &whole].concat()));
}

pub(super) fn ipv4_options(trace: &mut Trace) {
    let (client, server) = (host("198.51.100.95", 0x95), router());
    let options: [Vec<u8>; 7] = [
        // Router alert.
        vec![148, 4, 0, 0],
        // Record route with room for three.
        [&[7, 15, 4][..], &[0; 12], &[0]].concat(),
        // Time stamps.
        [&[68, 12, 5, 0][..], &[0; 8]].concat(),
        // Loose source route, at its end.
        [&[131, 7, 8][..], &v4("192.0.2.77"), &[0]].concat(),
        // No operation, then the end.
        vec![1, 1, 1, 0],
        // All 40 bytes.
        [&[7, 39, 4][..], &[0; 36], &[0]].concat(),
        // A length that leads past the header.
        vec![7, 200, 4, 0],
    ];
    for (number, options) in options.into_iter().enumerate() {
        let header = Ipv4 { options, tos: (number as u8) << 5, ..Ipv4::default() };
        let ports = (46_000 + number as u16, 80);
        let tcp = Tcp { ports, flags: flag::SYN, ..Tcp::default() }.segment(client, server, &[]);
        trace.put_padded(ipv4_with(&header, client, server, TCP, &tcp));
        trace.put_padded(ipv4_with(
            &header,
            client,
            server,
            UDP,
            &datagram(client, server, ports, b"options"),
        ));
    }
}

pub(super) fn ipv6_extensions(trace: &mut Trace) {
    let (client, server) = (host("2001:db8:2::95", 0x95), router6());
    let syn_to =
        |to| Tcp { ports: (47_000, 80), flags: flag::SYN, ..Tcp::default() }.segment(client, to, &[]);
    // The checksum covers the final destination, which a routing header contains.
    let (syn, syn_routed) = (syn_to(server), syn_to(host("2001:db8:9::9", 0x99)));
    let echo = datagram(client, server, (47_001, 7), b"extended");
    // Eight bytes each, beginning with the next header: hop-by-hop, destination options, routing, authentication.
    let header = |next: u8| [next, 0, 1, 4, 0, 0, 0, 0];
    let routing = |next: u8| [&[next, 2, 0, 1, 0, 0, 0, 0][..], &v6("2001:db8:9::9")].concat();
    let segments = |next: u8| [&[next, 2, 4, 0, 0, 0, 0, 0][..], &v6("2001:db8:9::9")].concat();
    let authentication = |next: u8| [&[next, 4, 0, 0][..], &[0x5a; 20]].concat();
    let chains: [(u8, Vec<u8>); 9] = [
        (0, [&header(TCP)[..], &syn].concat()),
        (60, [&header(UDP)[..], &echo].concat()),
        (43, [&routing(TCP)[..], &syn_routed].concat()),
        (43, [&segments(UDP)[..], &echo].concat()),
        (51, [&authentication(TCP)[..], &syn].concat()),
        (0, [&header(60)[..], &header(43), &routing(TCP), &syn_routed].concat()),
        (0, [&header(44)[..], &[UDP, 0, 0, 0, 0, 0, 0, 9], &echo].concat()),
        // The same header again and again.
        (60, [&header(60).repeat(11)[..], &header(UDP), &echo].concat()),
        // Long options: 264 bytes.
        (60, [&[UDP, 32, 1, 255][..], &[0; 255], &[1, 3, 0, 0, 0], &echo].concat()),
    ];
    for (next, payload) in chains {
        trace.put_padded(ip(client, server, next, &payload));
    }
    // No next header, with and without bytes behind.
    trace.put_padded(ip(client, server, 59, &[]));
    trace.put_padded(ip(client, server, 59, b"ignored"));
    // Traffic class and flow label.
    let marked = ipv6_with(0xb8, 0xf_edcb, 1, client.ip, server.ip, UDP, &echo);
    trace.put_padded(ethernet(server.mac, client.mac, IPV6, &marked));
}

/// The checksum of SCTP, CRC-32C bit by bit.
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    })
}

fn sctp(chunks: &[u8]) -> Vec<u8> {
    let mut packet = [5_000u16, 5_001].map(u16::to_be_bytes).concat();
    packet.extend([0x1122_3344u32, 0].map(u32::to_be_bytes).concat());
    packet.extend(chunks);
    let crc = crc32c(&packet).to_le_bytes();
    packet[8..12].copy_from_slice(&crc);
    packet
}

pub(super) fn protocols(trace: &mut Trace) {
    let (one, other) = (host("192.0.2.201", 0xc9), host("192.0.2.202", 0xca));
    let (one6, other6) = (host("2001:db8:4::1", 0xc9), host("2001:db8:4::2", 0xca));
    let init = [&[1, 0, 0, 20][..], &[0, 0, 0, 9, 0, 1, 0, 0, 0, 10, 0, 10, 0, 0, 0, 1]].concat();
    let data = [&[0, 3, 0, 20, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0][..], b"sctp"].concat();
    for chunks in [&init, &data] {
        trace.put_padded(ip(one, other, 132, &sctp(chunks)));
        trace.put_padded(ip(one6, other6, 132, &sctp(chunks)));
    }
    tunnels(trace, (one, other), (one6, other6));
    // IGMP: query, report of version 3 with router alert.
    let alert = Ipv4 { ttl: 1, options: vec![148, 4, 0, 0], ..Ipv4::default() };
    for (to, mut message) in [
        ("224.0.0.1", vec![0x11, 100, 0, 0, 0, 0, 0, 0]),
        ("224.0.0.22", [&[0x22, 0, 0, 0, 0, 0, 0, 1, 4, 0, 0, 0][..], &v4("239.1.2.3")].concat()),
    ] {
        let sum = checksum(&[&message]);
        message[2..4].copy_from_slice(&sum);
        trace.put_padded(ipv4_with(&alert, one, group(to), 2, &message));
    }
    // OSPF hello, VRRP advertisement, PIM hello.
    let mut hello = [
        &[2, 1, 0, 44][..],
        &v4("192.0.2.201"),
        &[0; 16],
        &[255, 255, 255, 0, 0, 10, 2, 1, 0, 0, 0, 40],
        &[0; 8],
    ]
    .concat();
    let sum = checksum(&[&hello]);
    hello[12..14].copy_from_slice(&sum);
    trace.put_padded(ipv4_with(&Ipv4 { ttl: 1, ..Ipv4::default() }, one, group("224.0.0.5"), 89, &hello));
    let mut advertisement = [&[0x21, 1, 100, 1, 0, 1, 0, 0][..], &v4("192.0.2.254"), &[0; 8]].concat();
    let sum = checksum(&[&advertisement]);
    advertisement[6..8].copy_from_slice(&sum);
    trace.put_padded(ipv4_with(
        &Ipv4 { ttl: 255, ..Ipv4::default() },
        one,
        group("224.0.0.18"),
        112,
        &advertisement,
    ));
    let mut pim = vec![0x20, 0, 0, 0, 0, 1, 0, 2, 0, 105];
    let sum = checksum(&[&pim]);
    pim[2..4].copy_from_slice(&sum);
    trace.put_padded(ipv4_with(&Ipv4 { ttl: 1, ..Ipv4::default() }, one, group("224.0.0.13"), 103, &pim));
    // Encrypted (ESP), authenticated (AH), unreliable (DCCP), and unassigned protocols.
    trace.put(ip(one, other, 50, &[&[0, 0, 1, 0, 0, 0, 0, 7][..], &[0xa5; 52]].concat()));
    trace.put(ip(one6, other6, 50, &[&[0, 0, 1, 0, 0, 0, 0, 7][..], &[0xa5; 52]].concat()));
    let authenticated = [&[TCP, 4, 0, 0][..], &[0x5a; 20], &Tcp::default().segment(one, other, &[])].concat();
    trace.put(ip(one, other, 51, &authenticated));
    trace.put_padded(ip(one, other, 33, &[&[0x13, 0x88, 0x13, 0x89, 4, 0, 0, 0][..], &[0; 12]].concat()));
    for protocol in [0, 61, 253, 255] {
        trace.put_padded(ip(one, other, protocol, b"?"));
    }
}

/// IP and Ethernet in IP.
fn tunnels(trace: &mut Trace, four: (Host, Host), six: (Host, Host)) {
    let inner = udp(host("10.0.0.1", 0xd1), host("10.0.0.2", 0xd2), (1_111, 7), b"inside");
    let inner6 = udp(host("2001:db8:a::1", 0xd1), host("2001:db8:a::2", 0xd2), (1_111, 7), b"inside");
    let (packet, packet6) = (&inner[14..], &inner6[14..]);
    // GRE: plain, with key and sequence, with Ethernet inside.
    trace.put(ip(four.0, four.1, 47, &[&[0, 0, 8, 0][..], packet].concat()));
    trace.put(ip(
        four.0,
        four.1,
        47,
        &[&[0x30, 0, 0x86, 0xdd, 0, 0, 0, 5, 0, 0, 0, 1][..], packet6].concat(),
    ));
    trace.put(ip(four.0, four.1, 47, &[&[0, 0, 0x65, 0x58][..], &inner].concat()));
    trace.put(ip(six.0, six.1, 47, &[&[0, 0, 8, 0][..], packet].concat()));
    // IPv4 and IPv6 in one another.
    for (outer, protocol, packet) in
        [(four, 4, packet), (four, 41, packet6), (six, 4, packet), (six, 41, packet6)]
    {
        trace.put(ip(outer.0, outer.1, protocol, packet));
    }
}
