//! Parts of captures, read each on its own, give the packets and losses of one pass, wherever they are cut.

use std::fs;

use fastrand::Rng;
use paceline_capture::{CaptureReader, Heads, Lost, Preamble, Split, SplitOptions, splits};
use paceline_frame::FrameMeta;

use crate::common::{Bytes, Order, packet};

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

/// Everything that a reader gives.
#[derive(Default, PartialEq)]
struct Read {
    packets: Vec<(u64, FrameMeta, Vec<u8>)>,
    lost: Vec<Lost>,
}

impl Read {
    /// Adds what a reader has left.
    fn add(&mut self, reader: &mut CaptureReader<'_>) {
        let mut heads = Heads::new(usize::MAX);
        while reader.fill_heads(&mut heads).expect("bytes in memory") > 0 {
            for index in 0..heads.burst.len() {
                let whole = reader.packet(&heads, index);
                assert_eq!(heads.burst.frame(index).packet(), whole);
                self.packets.push((heads.offset(index), *heads.burst.frame(index).meta(), whole.to_vec()));
            }
        }
        self.lost.extend(reader.take_lost());
    }
}

fn one_pass(capture: &[u8]) -> Read {
    let (preamble, start) = Preamble::read(capture).expect("a capture");
    let mut reader = CaptureReader::resume(&capture[start as usize..], &preamble, start).expect("a preamble");
    reader.set_end(u64::MAX);
    let mut read = Read::default();
    read.add(&mut reader.recovering());
    read
}

/// The parts, joined. A part in which interfaces are described is read to the end of the capture, in the place of those behind it,
/// as is one that a long block reaches out of.
fn joined(capture: &[u8], parts: &[Split]) -> Read {
    let mut read = Read::default();
    for part in parts {
        let mut reader = part.reader(&capture[part.start as usize..]).expect("a preamble");
        read.add(&mut reader);
        if !part.leads_on(&reader) {
            assert!(!part.is_walked, "boundaries that are read are certain");
            reader.set_end(u64::MAX);
            read.add(&mut reader);
            break;
        }
    }
    read
}

/// Bytes that look like records one after the other, of lengths such that the last one ends with the packet.
fn like_records(order: Order, seconds: u32, count: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Bytes::new(order).raw(&packet(rng.usize(0..40)));
    for _ in 0..count {
        let inner = packet(rng.usize(1..90));
        bytes = bytes.record(seconds, rng.u32(0..1_000_000), &inner, inner.len() as u32);
    }
    bytes.bytes
}

/// A pcap in which packets contain records, whole ones, and ones that reach into the next packet's, so that two rows of records go
/// beside each other.
fn beside(order: Order, packets: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Bytes::new(order).pcap(MICRO, 65_535, 1);
    for number in 0..packets as u32 {
        // The inner record ends 20 bytes into the next packet, where the next one begins.
        let len = rng.u32(60..200);
        let mut inner = vec![7; 20];
        inner.extend(Bytes::new(order).u32(1000 + number).u32(5).u32(len + 16 + 20).u32(len + 16 + 20).bytes);
        inner.extend(vec![9; len as usize]);
        bytes = bytes.record(1000 + number, 5, &inner, inner.len() as u32);
    }
    bytes.bytes
}

fn pcap(order: Order, magic: u32, packets: usize, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Bytes::new(order).pcap(magic, 65_535, 1);
    for number in 0..packets as u32 {
        let content = match rng.u8(0..6) {
            0 => vec![0; rng.usize(0..3000)],
            1 => like_records(order, number, 8, rng),
            2 => (0..rng.usize(0..1500)).map(|_| rng.u8(..)).collect(),
            3 => Vec::new(),
            _ => packet(rng.usize(14..600)),
        };
        let original = content.len() as u32 + rng.u32(0..2);
        if magic == MODIFIED {
            bytes =
                bytes.u32(number).u32(7).u32(content.len() as u32).u32(original).u32(1).u32(2).raw(&content);
        } else {
            bytes = bytes.record(number, 7, &content, original);
        }
    }
    bytes.bytes
}

fn pcapng(order: Order, packets: usize, late: bool, rng: &mut Rng) -> Vec<u8> {
    let resolution = Bytes::new(order).option(9, &[9]).u32(0).bytes;
    let mut bytes = Bytes::new(order).section(&[]).interface(1, 0, &[]).interface(1, 0, &resolution);
    let mut interfaces = 2;
    for number in 0..packets as u64 {
        let content = match rng.u8(0..5) {
            0 => vec![0; rng.usize(0..2000)],
            // Whole blocks, among them descriptions.
            1 => Bytes::new(order).interface(1, 0, &[]).enhanced(0, number, &packet(40), 40, &[]).bytes,
            2 => Bytes::new(order).section(&[]).interface(113, 0, &[]).bytes,
            _ => packet(rng.usize(14..600)),
        };
        let comment = Bytes::new(order).option(1, b"comment").u32(0).bytes;
        bytes = match rng.u8(0..12) {
            0 => bytes.block(5, &packet(24)),
            1 => bytes.simple(content.len() as u32, &content),
            2 => bytes.enhanced(rng.u32(0..interfaces), number, &content, content.len() as u32, &comment),
            3 if late && rng.u8(0..40) == 0 => {
                interfaces += 1;
                bytes.interface(1, 0, &resolution)
            }
            4 if late && rng.u8(0..80) == 0 => {
                interfaces = 1;
                bytes.section(&[]).interface(1, 0, &resolution)
            }
            _ => bytes.enhanced(rng.u32(0..interfaces), number, &content, content.len() as u32, &[]),
        };
    }
    bytes.bytes
}

/// Blocks of more than 1 MiB that contain packets' blocks.
fn long_blocks(rng: &mut Rng) -> Vec<u8> {
    let mut bytes = Bytes::new(Order::Little).section(&[]).interface(1, 0, &[]);
    for number in 0..4 {
        let inner = (0..20_000)
            .fold(Bytes::new(Order::Little), |inner, _| inner.enhanced(0, 1, &packet(50), 50, &[]));
        bytes = bytes.block(4, &inner.bytes);
        for _ in 0..200 {
            bytes = bytes.enhanced(0, number, &packet(rng.usize(10..900)), 900, &[]);
        }
    }
    bytes.bytes
}

/// Changes some places: bits, zeros, bytes left out or put in, the end cut off.
fn damaged(mut capture: Vec<u8>, times: usize, rng: &mut Rng) -> Vec<u8> {
    for _ in 0..times {
        let at = rng.usize(2000..capture.len());
        let len = rng.usize(1..3000).min(capture.len() - at);
        match rng.u8(0..5) {
            0 => capture[at] ^= 1 << rng.u8(0..8),
            1 => capture[at..at + len].fill(0),
            2 => drop(capture.drain(at..at + len)),
            3 => drop(capture.splice(at..at, packet(len))),
            _ => capture[at..at + len].iter_mut().for_each(|byte| *byte = rng.u8(..)),
        }
    }
    if rng.bool() {
        capture.truncate(capture.len() - rng.usize(1..200));
    }
    capture
}

/// 20 captures of all kinds.
pub(crate) fn captures(rng: &mut Rng) -> Vec<(&'static str, Vec<u8>)> {
    use Order::{Big, Little};
    let example =
        |name| fs::read(format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"))).expect(name);
    let mut large = Bytes::new(Little).pcap(NANO, 0, 1);
    for number in 0..40u32 {
        large = large.record(number, 1, &like_records(Little, number, 600, rng), 1 << 17);
    }
    vec![
        ("traffic.pcap", example("traffic.pcap")),
        ("traffic.pcapng", example("traffic.pcapng")),
        ("pcap, little-endian", pcap(Little, MICRO, 1500, rng)),
        ("pcap, big-endian, nanoseconds", pcap(Big, NANO, 1500, rng)),
        ("pcap, modified", pcap(Little, MODIFIED, 900, rng)),
        ("pcap, no packet", Bytes::new(Little).pcap(MICRO, 0, 1).bytes),
        ("pcap, one packet", Bytes::new(Big).pcap(MICRO, 0, 1).record(1, 1, &packet(3000), 3000).bytes),
        ("pcap, large packets of records", large.bytes),
        ("pcap, records beside records", beside(Little, 4000, rng)),
        ("pcapng, little-endian", pcapng(Little, 900, false, rng)),
        ("pcapng, big-endian", pcapng(Big, 700, false, rng)),
        ("pcapng, late descriptions", pcapng(Little, 1500, true, rng)),
        ("pcapng, long blocks", long_blocks(rng)),
        ("pcapng, no packet", Bytes::new(Big).section(&[]).interface(1, 0, &[]).bytes),
        ("pcap, damaged a little", damaged(pcap(Little, MICRO, 1500, rng), 2, rng)),
        ("pcap, damaged much", damaged(pcap(Big, MICRO, 1500, rng), 40, rng)),
        ("pcap, records beside records, damaged", damaged(beside(Little, 3000, rng), 10, rng)),
        ("traffic.pcap, damaged", damaged(example("traffic.pcap"), 5, rng)),
        ("pcapng, damaged", damaged(pcapng(Little, 900, false, rng), 5, rng)),
        ("pcapng, late descriptions, damaged", damaged(pcapng(Big, 900, true, rng), 12, rng)),
    ]
}

/// Number of cuts of each capture: `PACELINE_SPLITS`.
fn rounds() -> usize {
    std::env::var("PACELINE_SPLITS").ok().and_then(|text| text.parse().ok()).unwrap_or(3)
}

/// Captures of a folder, `PACELINE_CAPTURES`, as they are and damaged.
fn given(rng: &mut Rng) -> Vec<(String, Vec<u8>)> {
    let Some(folder) = std::env::var_os("PACELINE_CAPTURES") else { return Vec::new() };
    let mut given = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let bytes = fs::read(&path).unwrap_or_default();
        if CaptureReader::for_filters(bytes.as_slice()).is_ok() {
            if bytes.len() > 4000 {
                given.push((format!("{}, damaged", path.display()), damaged(bytes.clone(), 5, rng)));
            }
            given.push((path.display().to_string(), bytes));
        }
    }
    // Damage of a header leaves no capture.
    given.retain(|(_, bytes)| CaptureReader::for_filters(bytes.as_slice()).is_ok());
    eprintln!("{} captures are given", given.len());
    given
}

/// All captures by their names, those of the folder too.
pub(crate) fn all(rng: &mut Rng) -> Vec<(String, Vec<u8>)> {
    let mut all: Vec<_> = captures(rng).into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    all.extend(given(rng));
    all
}

#[test]
fn parts_give_what_one_pass_gives() {
    let mut rng = Rng::with_seed(0x5b1175);
    let mut cuts = 0;
    for (name, capture) in all(&mut rng) {
        let whole = one_pass(&capture);
        for _ in 0..rounds() {
            let options = SplitOptions { parts: rng.usize(1..12), walk: rng.u8(0..4) == 0 };
            let parts = splits(&capture.as_slice(), capture.len() as u64, options).expect("a capture");
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start), "{name}");
            cuts += parts.len() - 1;
            let read = joined(&capture, &parts);
            assert!(read.lost == whole.lost, "{name}, {options:?}: {:?} for {:?}", read.lost, whole.lost);
            assert!(read.packets == whole.packets, "{name}, {options:?}");
        }
    }
    assert!(cuts > 20 * rounds(), "captures are cut");
}

#[test]
fn an_undamaged_capture_loses_nothing() {
    let mut rng = Rng::with_seed(7);
    for (name, capture) in captures(&mut rng) {
        let read = one_pass(&capture);
        assert_eq!(read.lost.is_empty(), !name.contains("damaged"), "{name}: {:?}", read.lost);
        if !name.contains("damaged") && !name.contains("no packet") {
            assert!(!read.packets.is_empty(), "{name}");
        }
    }
}

/// Boundaries come from the middle: what is before a part is not read for it.
#[test]
fn parts_are_found_without_what_is_before_them() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    struct Counted<'a>(&'a [u8], AtomicUsize);
    impl paceline_capture::ReadAt for Counted<'_> {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
            let read = self.0.read_at(offset, buffer)?;
            self.1.fetch_add(read, Ordering::Relaxed);
            Ok(read)
        }
    }
    let mut rng = Rng::with_seed(3);
    let capture = pcap(Order::Little, MICRO, 30_000, &mut rng);
    let counted = Counted(&capture, 0.into());
    let options = SplitOptions { parts: 2, walk: false };
    let parts = splits(&counted, capture.len() as u64, options).expect("a capture");
    assert_eq!(parts.len(), 2);
    assert!(
        counted.1.load(Ordering::Relaxed) < 2 << 20,
        "{} of {} bytes are read",
        counted.1.load(Ordering::Relaxed),
        capture.len()
    );
    assert!(joined(&capture, &parts) == one_pass(&capture));
}

/// Chains of long blocks that break do not make the search quadratic.
#[test]
fn recovery_takes_steps_of_the_length_of_the_damage() {
    let mut bytes = Bytes::new(Order::Little).section(&[]).interface(1, 0, &[]).bytes;
    bytes.extend([6, 0, 0, 0, 1, 0, 0, 0]);
    // Each eight bytes begin a block of 512 KiB.
    bytes.extend([1, 0, 0, 0, 4, 0, 8, 0].repeat(1 << 19));
    let start = std::time::Instant::now();
    let read = one_pass(&bytes);
    assert!(start.elapsed() < std::time::Duration::from_secs(5), "{:?}", start.elapsed());
    assert_eq!((read.packets.len(), read.lost.len()), (0, 1));
}

/// Damage costs the records that it touches, and the reader finds the next one.
#[test]
fn losses_are_told() {
    let mut bytes = Bytes::new(Order::Little).pcap(MICRO, 65_535, 1);
    let mut offsets = Vec::new();
    for number in 0..100 {
        offsets.push(bytes.bytes.len());
        bytes = bytes.record(number, 1, &packet(100), 100);
    }
    let mut capture = bytes.bytes;
    capture[offsets[50] + 8..offsets[50] + 12].fill(0xff);
    capture.truncate(offsets[99] + 50);
    let read = one_pass(&capture);
    let lost: Vec<_> = read.lost.iter().map(|lost| (lost.from as usize, lost.to as usize)).collect();
    assert_eq!(lost, [(offsets[50], offsets[51]), (offsets[99], capture.len())]);
    assert_eq!(read.packets.len(), 98);
    assert_eq!(read.lost[0].damage.to_string(), "a record claims 4294967295 captured bytes");
    assert_eq!(read.lost[1].damage.to_string(), "cut: 50 of 116 bytes of a record are there");
}

#[test]
fn long_descriptions_are_kept_without_what_no_packet_depends_on() {
    const COMMENT: usize = 60_000;
    for order in crate::common::ORDERS {
        // Each interface has two clocks' options, of which the last one counts, behind a long comment; one is malformed.
        let comment = packet(COMMENT);
        let options = |clock: &[u8]| {
            Bytes::new(order).option(1, &comment).option(9, &[3]).raw(clock).option(1, &comment).u32(0).bytes
        };
        let mut bytes = Bytes::new(order).section(&Bytes::new(order).option(1, &comment).u32(0).bytes);
        for number in 0..100 {
            let clock = Bytes::new(order).option(14, &[1; 8]).option(9, &[number % 10]).bytes;
            bytes = bytes.interface(1, 0, &options(&clock));
            for stamp in 0..40 {
                bytes = bytes.enhanced(u32::from(number), stamp, &packet(60), 60, &[]);
            }
        }
        for malformed in [
            Bytes::new(order).option(9, &[1, 2]).bytes,
            Bytes::new(order).option(14, &comment).bytes,
            Bytes::new(order).u16(14).u16(60_001).bytes,
        ] {
            let options = Bytes::new(order).raw(&malformed).raw(&[0; 4096]).bytes;
            bytes = bytes.interface(1, 0, &options).enhanced(0, 7, &packet(60), 60, &[]);
        }
        let capture = bytes.bytes;
        let whole = one_pass(&capture);
        assert_eq!((whole.packets.len(), whole.lost.len()), (4003, 3), "{order:?}");
        for walk in [false, true] {
            let parts = splits(&capture.as_slice(), capture.len() as u64, SplitOptions { parts: 50, walk });
            let parts = parts.expect("bytes in memory");
            assert!(parts.len() > 10, "{order:?}");
            let most = parts.iter().map(|part| part.preamble.bytes.len()).max();
            assert!(most < Some(100 * 64), "{order:?}, {walk}: {most:?} bytes of descriptions in a part");
            assert!(joined(&capture, &parts) == whole, "{order:?}, {walk}: not what one pass gives");
        }
    }
}
