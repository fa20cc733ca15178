//! Address resolution, VLAN tags, and Ethernet without IP.

use super::conversations::{Connection, router};
use super::layers::{
    ARP, BROADCAST, Host, IPV4, IPV6, QINQ, TCP, Tcp, VLAN, address, arp, control, ethernet, flag, host, ip,
    tagged, text, udp,
};
use super::trace::Trace;

pub(super) fn neighbors(trace: &mut Trace) {
    let router = router();
    for number in 0..3 {
        let asks = host(&format!("192.0.2.{}", 30 + number), 0x1e + number);
        trace.put_padded(ethernet(BROADCAST, asks.mac, ARP, &arp(1, asks, [0; 6], "192.0.2.1")));
        let answer = arp(2, router, asks.mac, &format!("192.0.2.{}", 30 + number));
        trace.put_padded(ethernet(asks.mac, router.mac, ARP, &answer));
    }
    // Gratuitous: asks for its own address.
    let announced = host("192.0.2.30", 0x1e);
    trace.put_padded(ethernet(BROADCAST, announced.mac, ARP, &arp(1, announced, [0; 6], "192.0.2.30")));
    // As it leaves the host, not yet padded.
    trace.put(ethernet(BROADCAST, announced.mac, ARP, &arp(1, announced, [0; 6], "192.0.2.99")));
    // Reverse ARP, as after a live migration.
    let nobody = Host { ip: address("0.0.0.0"), ..announced };
    trace.put_padded(ethernet(BROADCAST, nobody.mac, 0x8035, &arp(3, nobody, nobody.mac, "0.0.0.0")));
}

pub(super) fn tags(trace: &mut Trace) {
    let web = Host { ip: address("192.0.2.10"), ..router() };
    let stacks: [&[(u16, u16)]; 7] = [
        &[(VLAN, 100)],
        &[(VLAN, 0x6000 | 4094)],
        // A priority tag: no VLAN.
        &[(VLAN, 0xa000)],
        &[(QINQ, 200), (VLAN, 100)],
        &[(VLAN, 200), (VLAN, 100)],
        &[(0x9100, 7), (VLAN, 8)],
        &[(QINQ, 1), (QINQ, 2), (VLAN, 3)],
    ];
    for (number, stack) in stacks.into_iter().enumerate() {
        let number = number as u8;
        let client = host(&format!("198.51.100.{}", 100 + number), 0x80 + number);
        let client6 = host(&format!("2001:db8:3::{number:x}"), 0x80 + number);
        let router6 = Host { ip: address("2001:db8:1::1"), ..router() };
        let syn = Tcp { ports: (43_000, 80), flags: flag::SYN, ..Tcp::default() };
        trace.put_padded(tagged(&syn.frame(client, web, &[]), stack));
        trace.put_padded(tagged(&udp(client, web, (43_001, 7), &text(30)), stack));
        trace.put(tagged(&udp(client6, router6, (43_002, 7), &text(40)), stack));
        trace.put(tagged(&control(client, web, 8, 0, &[&[0, 1, 0, number][..], &text(56)].concat()), stack));
        let asks = ethernet(BROADCAST, client.mac, ARP, &arp(1, client, [0; 6], "198.51.100.1"));
        trace.put_padded(tagged(&asks, stack));
    }
    let mut connection = Connection::new(host("198.51.100.120", 0x8f), web, (43_100, 80));
    connection.tags = vec![(VLAN, 100)];
    connection.request = text(64);
    connection.response = text(1_600);
    connection.run(trace);
    // A tag without a payload, and a truncated tag.
    let bare = ethernet(web.mac, host("192.0.2.2", 2).mac, VLAN, &[0, 100, 0x08, 0]);
    trace.put(bare.clone());
    trace.put(bare[..16].to_vec());
}

pub(super) fn other_protocols(trace: &mut Trace) {
    let from = host("192.0.2.2", 2);
    let bridges = [0x01, 0x80, 0xc2, 0, 0, 0];
    // Spanning tree: a length instead of a type, then LLC.
    let tree = [&[0x42, 0x42, 3, 0, 0, 0, 0, 0][..], &[0x80; 30]].concat();
    trace.put_padded(ethernet(bridges, from.mac, tree.len() as u16, &tree));
    // Cisco discovery: LLC with SNAP.
    let discovery =
        [&[0xaa, 0xaa, 3, 0, 0, 0x0c, 0x20, 0, 2, 180, 0, 0][..], &[0, 1, 0, 8, b'r', b't', b'r', b'1']]
            .concat();
    trace.put_padded(ethernet([1, 0, 0x0c, 0xcc, 0xcc, 0xcc], from.mac, discovery.len() as u16, &discovery));
    // LLDP: chassis, port, time to live, name, end.
    let lldp = [
        &[2, 7, 4][..],
        &from.mac,
        &[4, 5, 5, b'e', b't', b'h', b'0', 6, 2, 0, 120, 10, 3, b's', b'w', b'1', 0, 0],
    ]
    .concat();
    trace.put_padded(ethernet([0x01, 0x80, 0xc2, 0, 0, 0x0e], from.mac, 0x88cc, &lldp));
    // Slow protocols (LACP), MAC control (pause), authentication.
    trace.put_padded(ethernet(
        [0x01, 0x80, 0xc2, 0, 0, 2],
        from.mac,
        0x8809,
        &[&[1, 1, 1, 20][..], &[0; 106]].concat(),
    ));
    trace.put_padded(ethernet([0x01, 0x80, 0xc2, 0, 0, 1], from.mac, 0x8808, &[0, 1, 0xff, 0xff]));
    trace.put_padded(ethernet([0x01, 0x80, 0xc2, 0, 0, 3], from.mac, 0x888e, &[1, 1, 0, 0]));
    // PPPoE: discovery, then IPv4 in a session.
    trace.put_padded(ethernet(BROADCAST, from.mac, 0x8863, &[0x11, 9, 0, 0, 0, 4, 1, 1, 0, 0]));
    let ping = control(from, router(), 8, 0, &[0, 1, 0, 1, 9, 9, 9, 9]);
    let inner = &ping[14..];
    let session = [&[0x11, 0, 0, 7][..], &(inner.len() as u16 + 2).to_be_bytes(), &[0, 0x21], inner].concat();
    trace.put_padded(ethernet(router().mac, from.mac, 0x8864, &session));
    // MPLS: two labels, then IPv4.
    let labels = [&[0, 1, 0, 64, 0, 2, 1, 64][..], inner].concat();
    trace.put_padded(ethernet(router().mac, from.mac, 0x8847, &labels));
    // Precision time, wake on LAN, a local experiment.
    trace.put_padded(ethernet(
        [0x01, 0x1b, 0x19, 0, 0, 0],
        from.mac,
        0x88f7,
        &[&[0, 2, 0, 44][..], &[0; 40]].concat(),
    ));
    trace.put(ethernet(BROADCAST, from.mac, 0x0842, &[&[0xff; 6][..], &from.mac.repeat(16)].concat()));
    trace.put_padded(ethernet(router().mac, from.mac, 0x88b5, &text(46)));
    // The last length and the first type (IEEE 802.3, 3.2.6).
    trace.put(ethernet(router().mac, from.mac, 1500, &[&[0xf0, 0xf0, 3][..], &text(1_497)].concat()));
    trace.put_padded(ethernet(router().mac, from.mac, 0x0600, &text(46)));
    // The EtherType and the first byte name different versions of IP.
    let four = ip(from, router(), TCP, &[0; 20]);
    trace.put_padded(ethernet(router().mac, from.mac, IPV6, &four[14..]));
    let (from6, to6) = (host("2001:db8::2", 2), host("2001:db8::1", 1));
    trace.put_padded(ethernet(to6.mac, from6.mac, IPV4, &udp(from6, to6, (1, 2), b"six")[14..]));
}
