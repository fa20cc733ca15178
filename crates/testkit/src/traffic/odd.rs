//! Invalid input for parsers: wrong lengths, wrong checksums, and truncated packets.

use super::conversations::router;
use super::layers::{
    Host, IPV4, IPV6, Ipv4, TCP, Tcp, UDP, VLAN, address, control, datagram, ethernet, flag, host, ip,
    tagged, text, udp,
};
use super::trace::Trace;

/// Offset of the IP header, and of the payload of an IPv4 header without options.
const IP: usize = 14;
const TRANSPORT: usize = 34;

fn client() -> Host {
    host("198.51.100.130", 0xa0)
}

fn web() -> Host {
    Host { ip: address("192.0.2.10"), ..router() }
}

fn client6() -> Host {
    host("2001:db8:2::130", 0xa0)
}

fn web6() -> Host {
    Host { ip: address("2001:db8:1::10"), ..router() }
}

fn syn(from: Host, to: Host) -> Vec<u8> {
    Tcp { ports: (48_000, 80), flags: flag::SYN, ..Tcp::default() }.frame(from, to, &[])
}

/// The frame with some bytes changed, and unchanged checksums.
fn changed(frame: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut frame = frame.to_vec();
    frame[at..at + bytes.len()].copy_from_slice(bytes);
    frame
}

pub(super) fn wrong_headers(trace: &mut Trace) {
    let tcp = syn(client(), web());
    let echo = udp(client(), web(), (48_001, 7), &text(20));
    // IPv4: header length 0, 4 words, 15 words that are not there; versions 0 and 15.
    for first in [0x40, 0x44, 0x4f, 0x05, 0xf5] {
        trace.put_padded(changed(&tcp, IP, &[first]));
    }
    // IPv4: total length 0, less than the header, less than the packet, more than the packet, the most there is.
    for len in [0u16, 19, 30, 100, 1_500, 65_535] {
        trace.put_padded(changed(&tcp, IP + 2, &len.to_be_bytes()));
        trace.put_padded(changed(&echo, IP + 2, &len.to_be_bytes()));
    }
    // TCP: data offset 0, 4, and 15 words.
    for offset in [0x00, 0x40, 0xf0] {
        trace.put_padded(changed(&tcp, TRANSPORT + 12, &[offset]));
    }
    // UDP: length 0, 7, more than the packet.
    for len in [0u16, 7, 1_000] {
        trace.put_padded(changed(&echo, TRANSPORT + 4, &len.to_be_bytes()));
    }
    let (tcp6, echo6) = (syn(client6(), web6()), udp(client6(), web6(), (48_001, 7), &text(20)));
    // IPv6: payload length 0, too short, too long.
    for len in [0u16, 7, 1_000] {
        trace.put_padded(changed(&tcp6, IP + 4, &len.to_be_bytes()));
        trace.put_padded(changed(&echo6, IP + 4, &len.to_be_bytes()));
    }
    // IPv6: an extension header that says it is longer than the packet.
    let options =
        [&[UDP, 200, 1, 4, 0, 0, 0, 0][..], &datagram(client6(), web6(), (48_001, 7), b"lost")].concat();
    trace.put_padded(ip(client6(), web6(), 60, &options));
    addresses(trace, &tcp);
    // Nothing but zeros, nothing but ones.
    trace.put(vec![0; 60]);
    trace.put(vec![0xff; 60]);
}

/// Addresses that are invalid as source or destination.
fn addresses(trace: &mut Trace, tcp: &[u8]) {
    for (from, to) in [
        ("192.0.2.10", "192.0.2.10"),
        ("127.0.0.1", "192.0.2.10"),
        ("0.0.0.0", "192.0.2.10"),
        ("255.255.255.255", "192.0.2.10"),
        ("224.0.0.1", "192.0.2.10"),
        ("198.51.100.130", "0.0.0.0"),
        ("10.1.2.3", "240.0.0.1"),
        ("::1", "2001:db8:1::10"),
        ("::ffff:198.51.100.130", "2001:db8:1::10"),
        ("ff02::1", "2001:db8:1::10"),
    ] {
        let (from, to) = (Host { ip: address(from), ..client() }, Host { ip: address(to), ..router() });
        trace.put_padded(syn(from, to));
    }
    // A multicast source MAC address, and time to live 0 and 1.
    trace.put_padded(changed(tcp, 6, &[0x01, 0, 0x5e, 0, 0, 1]));
    for ttl in [0, 1] {
        let header = Ipv4 { ttl, ..Ipv4::default() };
        let segment =
            Tcp { ports: (48_002, 80), flags: flag::ACK, ..Tcp::default() }.segment(client(), web(), b"late");
        trace.put_padded(ethernet(
            web().mac,
            client().mac,
            IPV4,
            &header.around(client().ip, web().ip, TCP, &segment),
        ));
    }
}

pub(super) fn wrong_checksums(trace: &mut Trace) {
    let (tcp, echo) = (syn(client(), web()), udp(client(), web(), (48_003, 7), &text(20)));
    let ping = control(client(), web(), 8, 0, &[0, 1, 0, 1, 2, 3, 4, 5]);
    trace.put_padded(changed(&tcp, IP + 10, &[0xba, 0xad]));
    trace.put_padded(changed(&tcp, TRANSPORT + 16, &[0xba, 0xad]));
    trace.put_padded(changed(&echo, TRANSPORT + 6, &[0xba, 0xad]));
    trace.put_padded(changed(&ping, TRANSPORT + 2, &[0xba, 0xad]));
    // UDP over IPv4 may have none; over IPv6 it may not.
    trace.put_padded(changed(&echo, TRANSPORT + 6, &[0, 0]));
    let echo6 = udp(client6(), web6(), (48_003, 7), &text(20));
    trace.put_padded(changed(&echo6, IP + 40 + 6, &[0, 0]));
    trace.put_padded(changed(&echo6, IP + 40 + 6, &[0xba, 0xad]));
    // A datagram whose checksum is computed as 0 and sent as all ones.
    let mut payload = [0; 2];
    let zero = datagram(client(), web(), (48_003, 9), &payload);
    payload.copy_from_slice(&zero[6..8]);
    trace.put_padded(udp(client(), web(), (48_003, 9), &payload));
}

/// Packets that end in the middle of each header, on the wire as well as in the capture.
pub(super) fn cut_headers(trace: &mut Trace) {
    let tcp = Tcp { ports: (48_004, 80), flags: flag::ACK, options: vec![1; 12], ..Tcp::default() };
    let tcp = tcp.frame(client(), web(), b"cut");
    for len in [14, 15, 17, 20, 23, 30, 33, 34, 37, 38, 46, 47, 53, 54, 60] {
        trace.put(tcp[..len].to_vec());
    }
    let echo = udp(client(), web(), (48_005, 7), &text(4));
    for len in [35, 41, 42] {
        trace.put(echo[..len].to_vec());
    }
    let echo6 = udp(client6(), web6(), (48_005, 7), &text(4));
    for len in [14, 53, 54, 58, 61] {
        trace.put(echo6[..len].to_vec());
    }
    let chain = ip(
        client6(),
        web6(),
        0,
        &[&[60, 0, 1, 4, 0, 0, 0, 0, UDP, 0, 1, 4, 0, 0, 0, 0][..], &[0; 8]].concat(),
    );
    for len in [55, 62, 63, 70] {
        trace.put(chain[..len].to_vec());
    }
    let vlan = tagged(&tcp, &[(VLAN, 100)]);
    for len in [15, 17, 18, 37] {
        trace.put(vlan[..len].to_vec());
    }
    trace.put(ethernet(web().mac, client().mac, 0x0806, &[0, 1, 8, 0, 6, 4, 0, 1]));
    trace.put(ethernet(web6().mac, client6().mac, IPV6, &[0x60]));
}

/// Long packets of which the capture kept the start, as with tcpdump -s.
pub(super) fn truncated_by_capture(trace: &mut Trace) {
    let data =
        Tcp { ports: (80, 48_006), flags: flag::ACK, ..Tcp::default() }.frame(web(), client(), &text(1_460));
    for kept in [14, 34, 54, 60, 68, 96, 128, 256, 1_513] {
        trace.put_truncated(data.clone(), kept);
    }
    let data6 = udp(client6(), web6(), (48_006, 443), &text(1_200));
    for kept in [14, 54, 62, 96] {
        trace.put_truncated(data6.clone(), kept);
    }
    let tagged_data = tagged(&data, &[(0x88a8, 5), (VLAN, 6)]);
    trace.put_truncated(tagged_data, 64);
}

pub(super) fn shorter_than_ethernet(trace: &mut Trace) {
    let frame = syn(client(), web());
    trace.put(frame[..13].to_vec());
    trace.put(frame[..1].to_vec());
}
