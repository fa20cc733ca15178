//! Invalid and truncated captures: one clear message each, after all valid packets.

use std::io::{self, ErrorKind, Read, Write};

use crate::common::{Bytes, ORDERS, Order, copy, error, packet, read};
use paceline_capture::{CaptureReader, CaptureWriter, ReadError, WriteError};
use paceline_frame::Burst;

const MICRO: u32 = 0xa1b2_c3d4;

fn pcap() -> Bytes {
    Bytes::new(Order::Little).pcap(MICRO, 65_535, 1)
}

fn pcapng() -> Bytes {
    Bytes::new(Order::Big).section(&[]).interface(1, 0, &[])
}

#[test]
fn files_that_are_no_captures() {
    for (start, message) in [
        (&b""[..], "the capture is empty: not even a file header"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "compressed with gzip: decompress it first"),
        (b"\x28\xb5\x2f\xfd\x04", "compressed with zstd: decompress it first"),
        (b"\xfd7zXZ\0\0\x04", "compressed with xz: decompress it first"),
        (b"BZh91AY&SY", "compressed with bzip2: decompress it first"),
        (b"\x7fELF\x02\x01\x01\0", "not a pcap or pcapng capture but an ELF file"),
        (b"snoop\0\0\0\0\0\0\x02", "not a pcap or pcapng capture but a snoop capture"),
        (b"hello, world", "not a pcap or pcapng capture but text"),
        (b"\x06\0\0\0\xff", "not a pcap or pcapng capture: it starts with 06 00 00 00 ff"),
        (b"\xd4\xc3", "not a pcap or pcapng capture: it starts with d4 c3"),
        (b"\xd4\xc3\xb2\xa1\x02", "cut in the middle of the file header at byte 0: 5 of 24 bytes are there"),
        (b"\x0a\x0d\x0d\x0a\0", "cut in the middle of the file header at byte 0: 5 of 12 bytes are there"),
    ] {
        assert_eq!(error(start), message);
    }
}

#[test]
fn versions_and_byte_order_magic() {
    for (major, minor) in [(2, 5), (1, 4), (3, 0), (543, 1)] {
        let capture = Bytes::new(Order::Big).u32(MICRO).u16(major).u16(minor).raw(&[0; 16]).bytes;
        assert_eq!(error(&capture), format!("pcap version {major}.{minor} at byte 0 is not known"));
    }
    let section = |magic, major, minor| {
        let body = Bytes::new(Order::Big).u32(magic).u16(major).u16(minor).raw(&[0xff; 8]).bytes;
        Bytes::new(Order::Big).block(0x0a0d_0d0a, &body).bytes
    };
    assert_eq!(error(&section(0x1a2b_3c4d, 2, 0)), "pcapng version 2.0 at byte 0 is not known");
    assert_eq!(
        error(&section(0x1234_5678, 1, 0)),
        "section header at byte 0 has byte-order magic 0x12345678"
    );
    assert!(read(&section(0x1a2b_3c4d, 1, 2)).1.is_none());
}

#[test]
fn other_link_types_are_named() {
    for (number, name) in
        [(101, "RAW (101)"), (0, "NULL (0)"), (105, "IEEE802_11 (105)"), (999, "number 999")]
    {
        let capture = Bytes::new(Order::Big).pcap(MICRO, 0, number).bytes;
        assert_eq!(error(&capture), format!("link type {name} is not supported, only ETHERNET (1)"));
    }
}

#[test]
fn an_interface_of_another_link_type_matters_only_to_its_packets() {
    let start = pcapng().interface(113, 0, &[]).enhanced(0, 1, &packet(60), 60, &[]).bytes;
    assert_eq!((read(&start).0.len(), read(&start).1.is_none()), (1, true));
    let capture = Bytes::new(Order::Big).raw(&start).enhanced(1, 1, &packet(60), 60, &[]).bytes;
    assert_eq!(read(&capture).0.len(), 1);
    assert_eq!(
        error(&capture),
        format!(
            "packet 2 at byte {}: link type LINUX_SLL (113) of interface 1 is not supported, only ETHERNET (1)",
            start.len()
        )
    );
}

#[test]
fn a_packet_of_an_undescribed_interface() {
    let capture = pcapng().enhanced(1, 1, &packet(60), 60, &[]).bytes;
    assert_eq!(error(&capture), "packet 1 at byte 48 belongs to interface 1, of 1 described");
    let capture = Bytes::new(Order::Little).section(&[]).simple(60, &packet(60)).bytes;
    assert_eq!(error(&capture), "packet 1 at byte 28 belongs to interface 0, of 0 described");
    // Interfaces are local to their section.
    let capture = pcapng().section(&[]).enhanced(0, 1, &packet(60), 60, &[]).bytes;
    assert_eq!(error(&capture), "packet 1 at byte 76 belongs to interface 0, of 0 described");
}

#[test]
fn block_lengths_that_lie() {
    let block = |kind: u32, first: u32, len: usize, last: u32| {
        pcapng().u32(kind).u32(first).raw(&vec![0; len - 12]).u32(last).bytes
    };
    for (capture, message) in [
        (block(6, 12, 12, 12), "block of type 0x6 at byte 48 cannot have length 12: too short for its type"),
        (block(99, 8, 12, 12), "block of type 0x63 at byte 48 cannot have length 8: too short for its type"),
        (block(99, 14, 16, 14), "block of type 0x63 at byte 48 cannot have length 14: not a multiple of 4"),
        (
            block(99, 0xffff_fffc, 16, 16),
            "block of type 0x63 at byte 48 cannot have length 4294967292: no more than 16 MiB are read",
        ),
        (block(99, 16, 16, 20), "block of type 0x63 at byte 48 has length 16 at its start and 20 at its end"),
    ] {
        assert_eq!(error(&capture), message);
    }
}

#[test]
fn packet_lengths_that_lie() {
    let lying = |captured: u32| {
        let body = Bytes::new(Order::Big).u32(0).u32(0).u32(0).u32(captured).u32(60).raw(&packet(60)).bytes;
        pcapng().block(6, &body).bytes
    };
    assert_eq!(error(&lying(61)), "packet 1 at byte 48 claims 61 captured bytes, its block has room for 60");
    assert_eq!(
        error(&lying(u32::MAX)),
        "packet 1 at byte 48 claims 4294967295 captured bytes, more than 262144"
    );
    let capture = pcap().record(1, 1, &packet(60), 60).u32(2).u32(2).u32(u32::MAX).u32(60).bytes;
    assert_eq!(read(&capture).0.len(), 1);
    assert_eq!(error(&capture), "packet 2 at byte 100 claims 4294967295 captured bytes, more than 262144");
    // A captured length above the snapshot length, or above the original one, is unusual but harmless.
    let capture = Bytes::new(Order::Big).pcap(MICRO, 20, 1).record(1, 1, &packet(60), 10).bytes;
    assert_eq!(read(&capture).0[0].1, packet(60));
}

#[test]
fn options_of_interfaces_that_lie() {
    for order in ORDERS {
        let interface = |options: &[u8]| {
            let capture = Bytes::new(order).section(&[]).interface(1, 0, options).bytes;
            error(&capture)
        };
        let option = |code, value: &[u8]| Bytes::new(order).option(code, value).bytes;
        assert_eq!(
            interface(&Bytes::new(order).u16(2).u16(5).raw(b"veth").bytes),
            "interface description at byte 28: option 2 reaches past the end of the block"
        );
        assert_eq!(
            interface(&option(9, &[6, 6])),
            "interface description at byte 28: option 9 (if_tsresol) is not one byte long"
        );
        assert_eq!(
            interface(&option(14, &[0; 4])),
            "interface description at byte 28: option 14 (if_tsoffset) is not eight bytes long"
        );
    }
}

/// For every truncation, exactly the packets before it are read, and the error has the position and part.
#[test]
fn cut_at_every_byte() {
    let pcap = pcap().record(1, 1, &packet(60), 60).record(1, 1, &packet(61), 61).record(1, 1, &packet(0), 9);
    let pcapng = pcapng()
        .enhanced(0, 1, &packet(60), 60, &[])
        .block(5, &[0; 12])
        .enhanced(0, 1, &packet(61), 61, &[])
        .simple(5, &packet(5));
    for capture in [pcap.bytes, pcapng.bytes] {
        let mut before = 0;
        let total = read(&capture).0.len();
        for len in 0..capture.len() {
            let (packets, error) = read(&capture[..len]);
            assert!(packets.len() >= before && packets.len() < total);
            before = packets.len();
            let copied = copy(&capture[..len], 64, |_| true);
            assert!(copied.is_empty() || copied == capture[..copied.len()]);
            match error {
                // A truncation between two records is indistinguishable from the end.
                None => assert_eq!(copied.len(), len),
                Some(ReadError::Cut { offset, found, needed, .. }) => {
                    assert!(needed > found);
                    assert_eq!(offset + found, len as u64);
                    assert!(copied.is_empty() || copied.len() as u64 == offset);
                }
                Some(ReadError::Empty | ReadError::Unknown(_)) => assert!(len < 4),
                Some(other) => panic!("{other}"),
            }
        }
        assert_eq!(before, total - 1);
    }
}

#[test]
fn cuts_name_what_was_cut() {
    let capture = pcap().record(1, 1, &packet(60), 60).record(1, 1, &packet(60), 60).bytes;
    for (len, message) in [
        (101, "cut in the middle of packet 2 at byte 100: 1 of 16 bytes are there"),
        (175, "cut in the middle of packet 2 at byte 100: 75 of 76 bytes are there"),
    ] {
        assert_eq!(error(&capture[..len]), message);
    }
    let capture = pcapng().enhanced(0, 1, &packet(60), 60, &[]).block(5, &[0; 12]).bytes;
    for (len, message) in [
        (50, "cut in the middle of the record after packet 0 at byte 48: 2 of 12 bytes are there"),
        (70, "cut in the middle of packet 1 at byte 48: 22 of 92 bytes are there"),
        (
            150,
            "cut in the middle of a block of type 0x5 after packet 1 at byte 140: 10 of 12 bytes are there",
        ),
        (
            163,
            "cut in the middle of a block of type 0x5 after packet 1 at byte 140: 23 of 24 bytes are there",
        ),
    ] {
        assert_eq!(error(&capture[..len]), message);
    }
}

/// A capture whose reading fails at its end.
struct Failing<'a>(&'a [u8]);

impl Read for Failing<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() { Err(io::Error::other("disk on fire")) } else { self.0.read(buffer) }
    }
}

#[test]
fn an_error_of_the_operating_system_comes_after_the_packets() {
    let capture = pcap().record(1, 1, &packet(60), 60).raw(&[0; 5]).bytes;
    let mut reader = CaptureReader::new(Failing(&capture)).unwrap();
    let mut burst = Burst::default();
    assert_eq!(reader.fill(&mut burst).unwrap(), 1);
    let error = reader.fill(&mut burst).unwrap_err();
    assert_eq!(error.to_string(), "cannot read after byte 105");
    assert_eq!(std::error::Error::source(&error).map(ToString::to_string), Some("disk on fire".to_owned()));
}

/// An output that accepts a limited number of bytes, then fails.
struct Full {
    taken: Vec<u8>,
    room: usize,
    kind: ErrorKind,
}

impl Write for &mut Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = bytes.len().min(self.room - self.taken.len());
        if len == 0 {
            return Err(self.kind.into());
        }
        self.taken.extend_from_slice(&bytes[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_that_fails_says_so_once_and_for_all() {
    let capture = (0..10_000).fold(pcap(), |pcap, i| pcap.record(i, 0, &packet(60), 60)).bytes;
    for (kind, message) in [
        (ErrorKind::BrokenPipe, "the reader of the output has closed it"),
        (ErrorKind::StorageFull, "cannot write after byte 24: no storage space"),
    ] {
        let mut full = Full { taken: Vec::new(), room: 300_000, kind };
        let mut reader = CaptureReader::new(&capture[..]).unwrap();
        let mut writer = CaptureWriter::new(&mut full, reader.header()).unwrap();
        let mut burst = Burst::default();
        let error = loop {
            assert!(reader.fill(&mut burst).unwrap() > 0, "the output has room for it all");
            if let Err(error) = writer.write(&burst, reader.records(), |_| true).and_then(|()| writer.flush())
            {
                break error;
            }
        };
        assert!(error.to_string().starts_with(&message[..20]), "{error}");
        assert_eq!(matches!(error, WriteError::BrokenPipe), kind == ErrorKind::BrokenPipe);
        assert!(matches!(writer.write(&burst, reader.records(), |_| true), Ok(()) | Err(WriteError::Failed)));
        assert!(matches!(writer.finish(reader.records()), Err(WriteError::Failed)));
        // The output is a prefix of the capture.
        assert_eq!(full.taken, capture[..300_000]);
    }
}

#[test]
fn an_output_that_takes_nothing_is_known_at_once() {
    let mut full = Full { taken: Vec::new(), room: 0, kind: ErrorKind::StorageFull };
    let capture = pcap().bytes;
    let reader = CaptureReader::new(&capture[..]).unwrap();
    assert!(matches!(CaptureWriter::new(&mut full, reader.header()), Err(WriteError::Io { offset: 0, .. })));
}

#[test]
fn what_was_written_before_an_error_is_a_readable_capture() {
    let good = pcapng().enhanced(0, 1, &packet(60), 60, &[]).bytes;
    let bad = Bytes::new(Order::Big).raw(&good).u32(6).u32(4).u32(4).bytes;
    assert_eq!(copy(&bad, 64, |_| true), good);
    // The same if the writer is only dropped.
    let mut out = Vec::new();
    let mut reader = CaptureReader::new(&bad[..]).unwrap();
    let mut writer = CaptureWriter::new(&mut out, reader.header()).unwrap();
    let mut burst = Burst::default();
    assert_eq!(reader.fill(&mut burst).unwrap(), 1);
    writer.write(&burst, reader.records(), |_| true).unwrap();
    assert!(reader.fill(&mut burst).is_err());
    drop(writer);
    assert_eq!(out, good);
}

#[test]
fn long_options_make_short_bursts() {
    // 2 MiB of options each: 64 MiB are stored with a burst, which is enough for 31 packets with their headers.
    let options = vec![0; 2 << 20];
    let capture =
        (0..40).fold(pcapng(), |capture, i| capture.enhanced(0, i, &packet(60), 60, &options)).bytes;
    let mut reader = CaptureReader::new(&capture[..]).unwrap();
    let mut burst = Burst::default();
    let mut counts = Vec::new();
    while let count @ 1.. = reader.fill(&mut burst).unwrap() {
        counts.push(count);
    }
    assert_eq!(counts.iter().sum::<usize>(), 40);
    assert!(counts.iter().all(|&count| count <= 32), "{counts:?}");
    assert!(copy(&capture, 64, |_| true) == capture);
}

#[test]
fn blocks_without_end_do_not_fill_the_memory() {
    /// A section, followed by an endless repetition of an unknown block of 64 KiB.
    struct Endless {
        start: Vec<u8>,
        block: Vec<u8>,
        at: usize,
    }
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if !self.start.is_empty() {
                let start = std::mem::take(&mut self.start);
                buffer[..start.len()].copy_from_slice(&start);
                return Ok(start.len());
            }
            let len = (&self.block[self.at..]).read(buffer)?;
            self.at = (self.at + len) % self.block.len();
            Ok(len)
        }
    }
    let block = Bytes::new(Order::Big).block(99, &[0; 65_524]).bytes;
    let mut reader = CaptureReader::new(Endless { start: pcapng().bytes, block, at: 0 }).unwrap();
    let error = reader.fill(&mut Burst::default()).unwrap_err();
    assert!(matches!(error, ReadError::Blocks { limit: 67_108_864, .. }), "{error}");
}
