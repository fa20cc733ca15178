//! Randomly changed captures: reading terminates, and the written capture can be read.
//!
//! `PACELINE_MUTATIONS` is the number of mutants per capture.

use std::path::Path;

use crate::common::{Bytes, Order, copy, packet, read};

const DEFAULT: u64 = 150;

/// Values at which parsers typically fail.
const TEMPTING: [u32; 12] =
    [0, 1, 3, 4, 6, 12, 0x7fff_ffff, 0x8000_0000, 0xffff_fffc, 0xffff_ffff, 262_144, 262_145];

fn captures() -> Vec<(String, Vec<u8>)> {
    let mut captures = Vec::new();
    for order in [Order::Little, Order::Big] {
        for (name, magic) in [("micro", 0xa1b2_c3d4), ("nano", 0xa1b2_3c4d), ("modified", 0xa1b2_cd34)] {
            let start = Bytes::new(order).pcap(magic, 65_535, 1);
            let extra: &[u8] = if name == "modified" { b"12345678" } else { &[] };
            let capture = (0..40u32).fold(start, |capture, i| {
                let packet = packet(i as usize * 3);
                let len = packet.len() as u32;
                capture.u32(i).u32(1).u32(len).u32(len * 2).raw(extra).raw(&packet)
            });
            captures.push((format!("{name} pcap {order:?}"), capture.bytes));
        }
        captures.push((format!("pcapng {order:?}"), pcapng(order)));
    }
    let both = [pcapng(Order::Big), pcapng(Order::Little)].concat();
    captures.push(("pcapng of two sections".to_owned(), both));
    for name in ["traffic.pcap", "traffic.pcapng"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").join(name);
        let capture = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        captures.push((name.to_owned(), capture));
    }
    captures
}

fn pcapng(order: Order) -> Vec<u8> {
    let option = |code, value: &[u8]| Bytes::new(order).option(code, value).bytes;
    let options = [option(2, b"eth0"), option(9, &[9]), option(14, &order.i64(-5)), option(0, &[])].concat();
    let noted = [option(1, b"a comment"), option(3, &[2, 9, 9, 9, 9]), option(0, &[])].concat();
    let start = Bytes::new(order)
        .section(&option(4, b"mutations"))
        .interface(1, 100, &options)
        .interface(1, 0, &[])
        .interface(113, 0, &[]);
    (0..20u32)
        .fold(start, |capture, i| {
            let packet = packet(i as usize * 3);
            let (stamp, len) = (u64::from(i) << 31, packet.len() as u32);
            match i % 5 {
                0 => capture.enhanced(0, stamp, &packet, len + 4, &noted),
                1 => capture.enhanced(1, stamp, &packet, len, &[]),
                2 => capture.simple(len, &packet),
                3 => capture.packet_block(1, 2, stamp, &packet, len),
                _ => capture.block(5, &[0; 24]).block(4, &[0; 4]).block(0x0bad, &[0; 8]),
            }
        })
        .bytes
}

/// Changes one to four positions of a capture.
fn mutate(capture: &[u8], random: &mut fastrand::Rng) -> Vec<u8> {
    let mut bytes = capture.to_vec();
    for _ in 0..random.u32(1..=4) {
        if bytes.len() < 8 {
            break;
        }
        let at = random.usize(..bytes.len());
        let word = random.usize(..bytes.len() / 4) * 4;
        let other = random.usize(..bytes.len());
        let len = random.usize(..=64).min(bytes.len() - at);
        match random.u32(0..8) {
            0 => bytes[at] ^= 1 << random.u32(0..8),
            1 => bytes[at] = random.u8(..),
            2 => {
                let value = TEMPTING[random.usize(..TEMPTING.len())];
                let value = if random.bool() { value.to_le_bytes() } else { value.to_be_bytes() };
                bytes[word..word + 4].copy_from_slice(&value);
            }
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(at..at + len)),
            5 => {
                let piece = bytes[at..at + len].to_vec();
                bytes.splice(other..other, piece);
            }
            6 => {
                let len = len.min(bytes.len() - other);
                bytes.copy_within(at..at + len, other);
            }
            _ => bytes[word + 3] = bytes[word + 3].wrapping_add(4),
        }
    }
    bytes
}

/// Reads a capture, copies it, and reads the copy: the packets must be the same, without an error.
fn judge(name: &str, capture: &[u8]) -> bool {
    let (packets, error) = read(capture);
    let copied = copy(capture, 64, |_| true);
    if copied.is_empty() {
        // No valid header.
        assert!(packets.is_empty() && error.is_some(), "{name}");
        return false;
    }
    let (again, error_again) = read(&copied);
    assert!(
        error_again.is_none(),
        "{name}: the copy cannot be read: {error_again:?}, the original {error:?}"
    );
    assert_eq!(packets, again, "{name}");
    // A Simple Packet Block may become an Enhanced one, which is 16 bytes longer.
    assert!(
        copied.len() <= capture.len() + 16 * packets.len(),
        "{name}: a copy is no longer than the original"
    );
    // A copy of some packets has exactly those.
    let half = read(&copy(capture, 7, |number| number % 2 == 1)).0;
    assert!(half.iter().eq(packets.iter().skip(1).step_by(2)), "{name}");
    error.is_none()
}

#[test]
fn captures_changed_at_random() {
    let count = match std::env::var("PACELINE_MUTATIONS") {
        Ok(count) => count.parse().expect("PACELINE_MUTATIONS is a number"),
        Err(_) => DEFAULT,
    };
    for (name, capture) in captures() {
        assert!(judge(&name, &capture), "{name} is good as it is");
        let good = (0..count)
            .filter(|&seed| {
                let mutant = mutate(&capture, &mut fastrand::Rng::with_seed(seed));
                judge(&format!("{name}, seed {seed}"), &mutant)
            })
            .count();
        eprintln!("{name}: {good} of {count} mutants could be read to the end");
    }
}

#[test]
fn captures_cut_at_every_byte() {
    for (name, capture) in captures() {
        let step = 1 + capture.len() / 3_000;
        let mut before = 0;
        for len in (0..capture.len()).step_by(step) {
            let packets = read(&capture[..len]).0.len();
            assert!(packets >= before, "{name} cut at {len}");
            before = packets;
        }
    }
}
