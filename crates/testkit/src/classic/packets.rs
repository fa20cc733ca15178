//! Packets for random filters: random bytes, nested headers that the kernel's flow dissector supports, and netlink
//! attributes.

use fastrand::Rng;

/// A packet for the loopback interface's address; the kernel does not remove VLAN tags from it.
pub(super) fn packet(rng: &mut Rng) -> Vec<u8> {
    match rng.u8(..8) {
        0 | 1 => headers(rng),
        2 => attributes(rng),
        _ => noise(rng),
    }
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.usize(..from.len())]
}

fn random(rng: &mut Rng, len: usize) -> Vec<u8> {
    (0..len).map(|_| if rng.u8(..3) == 0 { 0 } else { rng.u8(..) }).collect()
}

fn noise(rng: &mut Rng) -> Vec<u8> {
    let len = if rng.bool() { rng.usize(14..60) } else { rng.usize(60..300) };
    let mut packet = random(rng, len);
    packet[..6].fill(if rng.u8(..4) == 0 { 1 } else { 0 });
    let types = [[0x08, 0x00], [0x86, 0xdd], [0x08, 0x06], [0x00, 0x20], [0x99, 0x99]];
    packet[12..14].copy_from_slice(&types[rng.usize(..types.len())]);
    if packet.len() > 14 && rng.bool() {
        packet[14] = 0x45;
    }
    packet
}

/// Attributes of types below 8 from byte 14 on, some of them nested.
fn attributes(rng: &mut Rng) -> Vec<u8> {
    let mut packet = vec![0; 14];
    while packet.len() < 14 + 100 && rng.u8(..8) > 0 {
        let bytes = rng.usize(..20);
        let payload = random(rng, bytes);
        attribute(rng, &mut packet, &payload);
        if rng.bool() {
            let mut nested = Vec::new();
            (0..rng.u8(..4)).for_each(|kind| attribute(rng, &mut nested, &[kind; 5]));
            attribute(rng, &mut packet, &nested);
        }
    }
    packet.resize(packet.len().max(20), 0);
    packet
}

fn attribute(rng: &mut Rng, to: &mut Vec<u8>, payload: &[u8]) {
    let wrong = if rng.u8(..16) == 0 { rng.u16(..40) } else { 0 };
    to.extend((4 + payload.len() as u16 + wrong).to_ne_bytes());
    to.extend((rng.u16(..8) | if rng.u8(..8) == 0 { 0x8000 } else { 0 }).to_ne_bytes());
    to.extend(payload);
    to.resize(to.len().next_multiple_of(4), 0);
}

/// Namespace of the number that announces the next header.
#[derive(Clone, Copy)]
enum Next {
    Ethernet(u16),
    /// IP version.
    Ip(u8, u8),
    Payload,
}

/// Protocols with a next header, and others.
const ETHERNET: &[u16] = &[
    0x0800, 0x0800, 0x0800, 0x86dd, 0x86dd, 0x8864, 0x88fb, 0x892f, 0x4305, 0x8847, 0x8848, 0x8906, 0x88f7,
    0x88ca, 0x0806, 0x8035, 0x8902, 0x9999,
];
const TAGS: &[u16] = &[0x8100, 0x88a8];
const IP: &[u8] = &[0, 1, 2, 4, 4, 6, 6, 17, 41, 41, 43, 44, 47, 47, 58, 60, 132, 136, 137, 33, 50, 51];

/// Consecutive headers, sometimes truncated or with a wrong byte.
fn headers(rng: &mut Rng) -> Vec<u8> {
    let mut packet = vec![0; 12];
    let first = pick(rng, ETHERNET);
    packet.extend(first.to_be_bytes());
    let mut next = Next::Ethernet(first);
    while !matches!(next, Next::Payload) && packet.len() < 600 {
        next = match next {
            Next::Ethernet(protocol) => ethernet(rng, &mut packet, protocol),
            Next::Ip(version, protocol) => ip(rng, &mut packet, version, protocol),
            Next::Payload => Next::Payload,
        };
    }
    let bytes = rng.usize(..60);
    packet.extend(random(rng, bytes));
    if rng.u8(..6) == 0 {
        packet.truncate(rng.usize(14..=packet.len()));
    }
    if rng.u8(..8) == 0 && packet.len() > 14 {
        let at = rng.usize(14..packet.len());
        packet[at] = rng.u8(..);
    }
    packet
}

/// An encapsulated protocol, where tags stay in the packet.
fn inner(rng: &mut Rng) -> u16 {
    if rng.u8(..6) == 0 { pick(rng, TAGS) } else { pick(rng, ETHERNET) }
}

/// This number of random bytes, the last two of which are a protocol.
fn leading_on(rng: &mut Rng, to: &mut Vec<u8>, bytes: usize) -> Next {
    let protocol = inner(rng);
    to.extend(random(rng, bytes - 2));
    to.extend(protocol.to_be_bytes());
    Next::Ethernet(protocol)
}

fn ethernet(rng: &mut Rng, to: &mut Vec<u8>, protocol: u16) -> Next {
    let next = pick(rng, IP);
    match protocol {
        0x0800 => {
            let words = if rng.u8(..10) == 0 { rng.u8(..16) } else { 5 };
            let fragment: u16 = if rng.u8(..10) == 0 { pick(rng, &[0x2000, 0x4000, 0x0007]) } else { 0 };
            let start = to.len();
            to.extend(random(rng, 4 * usize::from(words.max(5))));
            to[start] = 0x40 | words;
            to[start + 6..start + 8].copy_from_slice(&fragment.to_be_bytes());
            to[start + 9] = next;
            Next::Ip(4, next)
        }
        0x86dd => {
            to.extend([0x60, 0, 0, 0, 0, 0, next, 64]);
            to.extend(random(rng, 32));
            Next::Ip(6, next)
        }
        0x8864 => {
            let inner: u16 = pick(rng, &[0x21, 0x57, 0x281, 0x283, 0xc021, 0x2100]);
            to.extend([0x11, 0, 0, 1, 0, 20]);
            to.extend(inner.to_be_bytes());
            by_ppp(inner)
        }
        0x4305 => {
            to.extend([0x40, 15]);
            leading_on(rng, to, 22)
        }
        0x88fb | 0x892f => leading_on(rng, to, 6),
        0x8100 | 0x88a8 => leading_on(rng, to, 4),
        _ => Next::Payload,
    }
}

fn by_ppp(protocol: u16) -> Next {
    match protocol {
        0x21 => Next::Ethernet(0x0800),
        0x57 => Next::Ethernet(0x86dd),
        _ => Next::Payload,
    }
}

fn ip(rng: &mut Rng, to: &mut Vec<u8>, version: u8, protocol: u8) -> Next {
    let next = pick(rng, IP);
    match (protocol, version) {
        (4, _) => Next::Ethernet(0x0800),
        (41, _) => Next::Ethernet(0x86dd),
        (47, _) => gre(rng, to),
        (0 | 43 | 60, 6) => {
            let more = if rng.u8(..10) == 0 { rng.u8(..) } else { rng.u8(..2) };
            to.extend([next, more]);
            to.extend(random(rng, 6 + 8 * usize::from(more)));
            Next::Ip(6, next)
        }
        (44, 6) => {
            to.extend([next, 0, 0, if rng.bool() { 1 } else { 8 }, 0, 0, 0, 0]);
            Next::Payload
        }
        _ => Next::Payload,
    }
}

fn gre(rng: &mut Rng, to: &mut Vec<u8>) -> Next {
    const PPTP: u16 = 0x880b;
    const BRIDGED: u16 = 0x6558;
    let is_pptp = rng.u8(..4) == 0;
    let mut flags = pick(rng, &[0, 0x8000, 0x2000, 0x1000, 0xb000]);
    flags |= if is_pptp { 0x2001 | pick(rng, &[0, 0x80]) } else { pick(rng, &[0, 0, 0, 0, 0, 0x4000, 1, 2]) };
    let protocol = match rng.u8(..3) {
        _ if is_pptp => PPTP,
        0 => BRIDGED,
        _ => inner(rng),
    };
    to.extend(u16::to_be_bytes(flags));
    to.extend(protocol.to_be_bytes());
    let words = (flags & 0xb000u16).count_ones() + (flags & 0x80).count_ones();
    to.extend(random(rng, 4 * words as usize));
    if is_pptp {
        let inner: u16 = pick(rng, &[0x21, 0x57, 0xc021]);
        to.extend([0xff, 3]);
        to.extend(inner.to_be_bytes());
        return by_ppp(inner);
    }
    if protocol == BRIDGED { leading_on(rng, to, 14) } else { Next::Ethernet(protocol) }
}
