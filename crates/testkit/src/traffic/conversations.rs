//! TCP and UDP between hosts.

use super::layers::flag::{ACK, AE, CWR, ECE, FIN, PSH, RST, SYN, URG};
use super::layers::{Host, Tcp, address, arp, ethernet, host, multicast_mac, tagged, text, udp, v4};
use super::trace::Trace;

/// Options of a SYN: maximum segment size, selective acknowledgment, time stamp, window scale.
const SYN_OPTIONS: [u8; 20] = [2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0x30, 0x39, 0, 0, 0, 0, 1, 3, 3, 7];
/// Options of other segments: a time stamp, aligned.
const STAMP: [u8; 12] = [1, 1, 8, 10, 0, 0, 0x30, 0x3a, 0, 0, 0xd4, 0x31];

/// The router of the network that the example programs protect.
pub(super) fn router() -> Host {
    host("192.0.2.1", 1)
}

/// A complete connection. The client sends a request, the server answers in full segments.
pub(super) struct Connection {
    pub(super) client: Host,
    pub(super) server: Host,
    pub(super) ports: (u16, u16),
    pub(super) request: Vec<u8>,
    pub(super) response: Vec<u8>,
    /// VLAN tags of all its frames.
    pub(super) tags: Vec<(u16, u16)>,
}

impl Connection {
    pub(super) fn new(client: Host, server: Host, ports: (u16, u16)) -> Self {
        Self { client, server, ports, request: Vec::new(), response: Vec::new(), tags: Vec::new() }
    }

    pub(super) fn run(&self, trace: &mut Trace) {
        let (mut ours, mut theirs) = (trace.number(), trace.number());
        self.client_sends(trace, SYN, ours, 0, &SYN_OPTIONS, &[]);
        ours = ours.wrapping_add(1);
        self.server_sends(trace, SYN | ACK, theirs, ours, &SYN_OPTIONS, &[]);
        theirs = theirs.wrapping_add(1);
        self.client_sends(trace, ACK, ours, theirs, &STAMP, &[]);
        if !self.request.is_empty() {
            self.client_sends(trace, PSH | ACK, ours, theirs, &STAMP, &self.request);
            ours = ours.wrapping_add(self.request.len() as u32);
            self.server_sends(trace, ACK, theirs, ours, &STAMP, &[]);
        }
        // 1448 bytes fill a frame of 1514 behind IPv4, 1428 behind IPv6.
        let most = if self.client.ip.is_ipv4() { 1448 } else { 1428 };
        for piece in self.response.chunks(most) {
            let flags = if piece.len() < most { PSH | ACK } else { ACK };
            self.server_sends(trace, flags, theirs, ours, &STAMP, piece);
            theirs = theirs.wrapping_add(piece.len() as u32);
            self.client_sends(trace, ACK, ours, theirs, &STAMP, &[]);
        }
        self.client_sends(trace, FIN | ACK, ours, theirs, &STAMP, &[]);
        self.server_sends(trace, FIN | ACK, theirs, ours.wrapping_add(1), &STAMP, &[]);
        self.client_sends(trace, ACK, ours.wrapping_add(1), theirs.wrapping_add(1), &STAMP, &[]);
    }

    fn client_sends(
        &self,
        trace: &mut Trace,
        flags: u16,
        sequence: u32,
        ack: u32,
        options: &[u8],
        data: &[u8],
    ) {
        let tcp = Tcp {
            ports: self.ports,
            sequence,
            acknowledgment: ack,
            flags,
            urgent: 0,
            options: options.to_vec(),
        };
        trace.put_padded(tagged(&tcp.frame(self.client, self.server, data), &self.tags));
    }

    fn server_sends(
        &self,
        trace: &mut Trace,
        flags: u16,
        sequence: u32,
        ack: u32,
        options: &[u8],
        data: &[u8],
    ) {
        let ports = (self.ports.1, self.ports.0);
        let tcp = Tcp { ports, sequence, acknowledgment: ack, flags, urgent: 0, options: options.to_vec() };
        trace.put_padded(tagged(&tcp.frame(self.server, self.client, data), &self.tags));
    }
}

pub(super) fn tcp_conversations(trace: &mut Trace) {
    let web = Host { ip: address("192.0.2.10"), ..router() };
    let web6 = Host { ip: address("2001:db8:1::10"), ..router() };
    for number in 0..6u8 {
        let client = host(&format!("198.51.100.{}", 20 + number), 0x20 + number);
        let mut connection = Connection::new(client, web, (40_000 + u16::from(number) * 17, 80));
        connection.request =
            format!("GET /page/{number} HTTP/1.1\r\nHost: www.example.com\r\n\r\n").into_bytes();
        let page = text(usize::from(number) * 600);
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", page.len());
        connection.response = [head.as_bytes(), &page].concat();
        connection.run(trace);
    }
    for (number, port) in [(1, 443), (2, 22), (3, 25), (4, 8080)] {
        let client = host(&format!("203.0.113.{}", 10 + number), 0x30 + number);
        let mut connection = Connection::new(client, web, (50_000 + port, port));
        connection.request = text(33 * usize::from(number));
        connection.response = text(97 * usize::from(number));
        connection.run(trace);
    }
    for number in 0..3u8 {
        let client = host(&format!("2001:db8:2::{number:x}"), 0x40 + number);
        let mut connection =
            Connection::new(client, web6, (42_000 + u16::from(number), [80, 443, 22][usize::from(number)]));
        connection.request = b"HEAD / HTTP/1.1\r\nHost: www.example.com\r\n\r\n".to_vec();
        connection.response = text(usize::from(number) * 1_000);
        connection.run(trace);
    }
    refused_and_scanned(trace, web, web6);
}

/// Closed ports, blocked sources, and all combinations of flags that scanners send.
fn refused_and_scanned(trace: &mut Trace, web: Host, web6: Host) {
    for blocked in ["203.0.113.66", "198.51.100.7"] {
        let tcp = Tcp { ports: (31_337, 80), flags: SYN, options: SYN_OPTIONS.to_vec(), ..Tcp::default() };
        trace.put(tcp.frame(host(blocked, 0x66), web, &[]));
    }
    let scanner = host("203.0.113.99", 0x63);
    for port in [23, 135, 139, 445, 3389] {
        let syn = Tcp { ports: (61_000, port), sequence: 7, flags: SYN, ..Tcp::default() };
        trace.put_padded(syn.frame(scanner, web, &[]));
        let reset = Tcp { ports: (port, 61_000), acknowledgment: 8, flags: RST | ACK, ..Tcp::default() };
        trace.put_padded(reset.frame(web, scanner, &[]));
    }
    let flags = [
        0,
        FIN,
        SYN | FIN,
        SYN | RST,
        RST,
        FIN | PSH | URG,
        URG | ACK,
        ECE | CWR | SYN,
        ECE | ACK,
        CWR | ACK,
        AE | ECE | CWR | SYN,
        0x1ff,
    ];
    for (number, flags) in flags.into_iter().enumerate() {
        let urgent = if flags & URG != 0 { 3 } else { 0 };
        let tcp = Tcp { ports: (61_001, 80 + number as u16), sequence: 99, flags, urgent, ..Tcp::default() };
        trace.put_padded(tcp.frame(scanner, web, b"data"));
    }
    let scanner6 = host("2001:db8:bad::1", 0x64);
    let tcp = Tcp { ports: (61_002, 23), flags: SYN, options: SYN_OPTIONS.to_vec(), ..Tcp::default() };
    trace.put(tcp.frame(scanner6, web6, &[]));
    // The longest header: selective acknowledgments, fast open and the user's time-out in 40 bytes.
    let options =
        [&[5, 26][..], &[0x11; 24], &[34, 10, 1, 2, 3, 4, 5, 6, 7, 8], &[28, 4, 0x80, 0x3c]].concat();
    let tcp = Tcp { ports: (61_003, 80), flags: ACK, options, ..Tcp::default() };
    trace.put(tcp.frame(scanner, web, b"40 bytes of options"));
}

/// A DNS message about one name: identification, flags, answers appended.
fn dns(id: u16, flags: u16, name: &str, kind: u16, answer: Option<&[u8]>) -> Vec<u8> {
    let count = u16::from(answer.is_some());
    let mut message = [id, flags, 1, count, 0, 0].map(u16::to_be_bytes).concat();
    for label in name.split('.') {
        message.push(label.len() as u8);
        message.extend(label.bytes());
    }
    message.push(0);
    message.extend([kind, 1].map(u16::to_be_bytes).concat());
    if let Some(data) = answer {
        message.extend([0xc00c, kind, 1, 0, 3600, data.len() as u16].map(u16::to_be_bytes).concat());
        message.extend(data);
    }
    message
}

pub(super) fn udp_conversations(trace: &mut Trace) {
    let resolver = Host { ip: address("192.0.2.53"), ..router() };
    let resolver6 = Host { ip: address("2001:db8:1::53"), ..router() };
    for number in 0..8u16 {
        let name = format!("host{number}.example.com");
        let client = host(&format!("198.51.100.{}", 50 + number), 0x50 + number as u8);
        let ports = (20_000 + number * 31, 53);
        trace.put(udp_padded(client, resolver, ports, &dns(number, 0x0100, &name, 1, None)));
        let answer = dns(number, 0x8180, &name, 1, Some(&v4("198.51.100.200")));
        trace.put(udp_padded(resolver, client, (53, ports.0), &answer));
    }
    for number in 0..3u16 {
        let client = host(&format!("2001:db8:2::{:x}", 0x50 + number), 0x58 + number as u8);
        let ports = (21_000 + number, 53);
        trace.put(udp_padded(client, resolver6, ports, &dns(number, 0x0100, "www.example.net", 28, None)));
        let answer = dns(number, 0x8180, "www.example.net", 28, Some(&[0x20; 16]));
        trace.put(udp_padded(resolver6, client, (53, ports.0), &answer));
    }
    services(trace);
    groups(trace);
    vxlan(trace);
}

fn udp_padded(from: Host, to: Host, ports: (u16, u16), payload: &[u8]) -> Vec<u8> {
    let mut frame = udp(from, to, ports, payload);
    frame.resize(frame.len().max(60), 0);
    frame
}

/// Time, logging, echo and others; payloads from none to more than 3,000 bytes.
fn services(trace: &mut Trace) {
    let (client, server) = (host("198.51.100.70", 0x70), router());
    let (client6, server6) =
        (host("2001:db8:2::70", 0x70), Host { ip: address("2001:db8:1::1"), ..router() });
    let time = [&[0x23][..], &[0; 47]].concat();
    trace.put_padded(udp(client, server, (123, 123), &time));
    trace.put_padded(udp(server, client, (123, 123), &time));
    for len in [0, 1, 17, 18, 19, 200] {
        trace.put_padded(udp(client, server, (7_007, 7), &text(len)));
        trace.put_padded(udp(client6, server6, (7_007, 7), &text(len)));
    }
    trace.put(udp(client, server, (514, 514), b"<13>Nov 14 22:13:20 host app: a line of a log"));
    trace.put(udp(client, server, (50_001, 443), &[&[0xc3, 0, 0, 0, 1, 8][..], &text(1_200)].concat()));
    trace.put(udp(client, server, (9_000, 9_001), &text(1_472)));
    trace.put(udp(client6, server6, (9_000, 9_001), &text(1_452)));
    trace.put(udp(client, server, (9_000, 9_002), &text(2_958)));
    trace.put(udp(client6, server6, (9_000, 9_002), &text(2_938)));
    trace.put(udp(client, server, (0, 0), b"port 0"));
}

/// Broadcast and multicast.
fn groups(trace: &mut Trace) {
    let everyone = Host { mac: [0xff; 6], ip: address("255.255.255.255") };
    let nobody = Host { ip: address("0.0.0.0"), ..host("192.0.2.1", 0x71) };
    let mut dhcp = vec![1, 1, 6, 0, 0xde, 0xad, 0xbe, 0xef];
    dhcp.resize(236, 0);
    dhcp[28..34].copy_from_slice(&nobody.mac);
    dhcp.extend([99, 130, 83, 99, 53, 1, 1, 55, 3, 1, 3, 6, 255]);
    trace.put(udp(nobody, everyone, (68, 67), &dhcp));
    let local = host("192.0.2.71", 0x71);
    let subnet = Host { mac: [0xff; 6], ip: address("192.0.2.255") };
    trace.put(udp(local, subnet, (137, 137), &dns(9, 0x0110, "EXAMPLE", 32, None)));
    for (group, port, payload) in [
        ("224.0.0.251", 5353, dns(0, 0, "_http._tcp.local", 12, None)),
        (
            "239.255.255.250",
            1900,
            b"M-SEARCH * HTTP/1.1\r\nMAN: \"ssdp:discover\"\r\nST: ssdp:all\r\n\r\n".to_vec(),
        ),
        ("ff02::fb", 5353, dns(0, 0, "_ipp._tcp.local", 12, None)),
        ("ff02::1:2", 547, vec![1, 0x12, 0x34, 0x56, 0, 8, 0, 2, 0, 0]),
    ] {
        let ip = address(group);
        let from = if ip.is_ipv4() { local } else { host("fe80::71", 0x71) };
        trace.put(udp(from, Host { mac: multicast_mac(ip), ip }, (port, port), &payload));
    }
}

/// Ethernet in UDP: a segment of TCP, and an ARP request.
fn vxlan(trace: &mut Trace) {
    let (one, other) = (host("192.0.2.201", 0xc9), host("192.0.2.202", 0xca));
    let tcp = Tcp { ports: (1_234, 80), flags: PSH | ACK, sequence: 5, acknowledgment: 6, ..Tcp::default() };
    let inner = tcp.frame(host("10.0.0.1", 0xd1), host("10.0.0.2", 0xd2), b"inside a tunnel");
    let arp = ethernet(
        [0xff; 6],
        [2, 0, 0, 0, 0, 0xd1],
        0x0806,
        &arp(1, host("10.0.0.1", 0xd1), [0; 6], "10.0.0.2"),
    );
    for (network, inner) in [(42u32, &inner), (43, &arp)] {
        let header = [0x0800_0000, network << 8].map(u32::to_be_bytes).concat();
        trace.put(udp(one, other, (55_555, 4789), &[&header[..], inner].concat()));
    }
}
