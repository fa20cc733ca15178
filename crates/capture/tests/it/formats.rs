//! All variants of both formats, read and written back.

use crate::common::{Bytes, ORDERS, Order, copy, error, packet, read, resized};
use paceline_capture::{ByteOrder, CaptureReader, CaptureWriter};
use paceline_frame::Burst;

const MICRO: u32 = 0xa1b2_c3d4;
const NANO: u32 = 0xa1b2_3c4d;
const MODIFIED: u32 = 0xa1b2_cd34;

fn pcap(order: Order, magic: u32) -> Vec<u8> {
    Bytes::new(order)
        .pcap(magic, 262_144, 1)
        .record(7, 123_456, &packet(60), 60)
        .record(8, 999_999, &packet(61), 1500)
        .record(4_000_000_000, 4_000_000_000, &packet(0), 0)
        .bytes
}

#[test]
fn pcap_in_either_order_and_resolution() {
    for order in ORDERS {
        for (magic, unit) in [(MICRO, 1_000), (NANO, 1)] {
            let capture = pcap(order, magic);
            let (packets, error) = read(&capture);
            assert!(error.is_none(), "{error:?}");
            let stamps: Vec<u64> = packets.iter().map(|(meta, _)| meta.timestamp_ns).collect();
            let s = 1_000_000_000;
            // The last fraction is more than a second. Such files exist, and the fraction is used as it is.
            assert_eq!(
                stamps,
                [7 * s + 123_456 * unit, 8 * s + 999_999 * unit, 4_000_000_000 * s + 4_000_000_000 * unit]
            );
            assert_eq!(packets[1].0.original_len, 1500);
            assert_eq!(packets[1].1, packet(61));
            assert_eq!(packets[2].1, packet(0));
            assert_eq!(copy(&capture, 64, |_| true), capture);
        }
    }
}

#[test]
fn modified_pcap_keeps_its_longer_record_headers() {
    for order in ORDERS {
        let head = |len: u32| Bytes::new(order).u32(1).u32(2).u32(len).u32(90).raw(b"ifc4PRtp").bytes;
        let capture = Bytes::new(order)
            .pcap(MODIFIED, 65_535, 1)
            .raw(&head(60))
            .raw(&packet(60))
            .raw(&head(33))
            .raw(&packet(33))
            .bytes;
        let (packets, error) = read(&capture);
        assert!(error.is_none(), "{error:?}");
        assert_eq!(packets.iter().map(|(_, p)| p.clone()).collect::<Vec<_>>(), [packet(60), packet(33)]);
        assert_eq!(copy(&capture, 64, |_| true), capture);
    }
}

#[test]
fn frame_check_sequence_bits_do_not_hide_ethernet() {
    let capture = Bytes::new(Order::Big).pcap(MICRO, 0, 0x2400_0001).record(1, 1, &packet(64), 64).bytes;
    assert_eq!(read(&capture).0.len(), 1);
    assert_eq!(copy(&capture, 1, |_| true), capture);
}

#[test]
fn snapshot_length_grows_where_it_would_cut_packets_that_grew() {
    let capture = Bytes::new(Order::Little).pcap(MICRO, 68, 1).bytes;
    let copied = copy(&capture, 1, |_| true);
    assert_eq!(copied, Bytes::new(Order::Little).pcap(MICRO, 262_144, 1).bytes);
}

/// Two interfaces, names, comments, and blocks of every kind around the packets.
fn pcapng(order: Order) -> Vec<u8> {
    let option = |code, value: &[u8]| Bytes::new(order).option(code, value).bytes;
    let end = option(0, &[]);
    let nano = [option(2, b"veth0"), option(9, &[9]), end.clone()].concat();
    let offset = [option(9, &[0x80 | 20]), option(14, &order.i64(100)), end.clone()].concat();
    let comment = [option(1, b"seen twice"), option(2, &order.u32(1)), end.clone()].concat();
    Bytes::new(order)
        .section(&[option(4, b"by hand"), end].concat())
        .interface(1, 262_144, &nano)
        .block(4, &[0; 4])
        .enhanced(0, 1_700_000_000_123_456_789, &packet(60), 60, &comment)
        .interface(1, 0, &offset)
        .enhanced(1, 3 << 19, &packet(61), 9000, &[])
        .block(0x0bad, b"\0\0\0\0copy")
        .packet_block(1, 5, 1 << 20, &packet(62), 62)
        .simple(63, &packet(63))
        .block(5, &[0; 12])
        .block(0x8000_0001, b"private.")
        .bytes
}

#[test]
fn pcapng_survives_in_either_order() {
    for order in ORDERS {
        let capture = pcapng(order);
        let (packets, error) = read(&capture);
        assert!(error.is_none(), "{error:?}");
        let metas: Vec<_> =
            packets.iter().map(|(m, p)| (m.timestamp_ns, m.original_len, m.interface, p.len())).collect();
        assert_eq!(
            metas,
            [
                (1_700_000_000_123_456_789, 60, 0, 60),
                (101_500_000_000, 9000, 1, 61),
                (101_000_000_000, 62, 1, 62),
                (0, 63, 0, 63)
            ]
        );
        for burst_len in [1, 2, 64] {
            assert_eq!(copy(&capture, burst_len, |_| true), capture, "bursts of {burst_len}");
        }
    }
}

#[test]
fn sections_of_different_byte_order_follow_one_another() {
    let capture = [pcapng(Order::Little), pcapng(Order::Big), pcapng(Order::Little)].concat();
    let (packets, error) = read(&capture);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(packets.len(), 12);
    let interfaces: Vec<u32> = packets.iter().map(|(meta, _)| meta.interface).collect();
    assert_eq!(interfaces, [0, 1, 1, 0, 2, 3, 3, 2, 4, 5, 5, 4]);
    assert_eq!(copy(&capture, 64, |_| true), capture);
}

#[test]
fn blocks_stay_when_no_packet_does() {
    let capture = pcapng(Order::Big);
    let copied = copy(&capture, 64, |_| false);
    let option = |code, value: &[u8]| Bytes::new(Order::Big).option(code, value).bytes;
    assert!(read(&copied).0.is_empty() && read(&copied).1.is_none());
    for name in [&b"veth0"[..], b"by hand", b"copy", b"private."] {
        assert!(copied.windows(name.len()).any(|window| window == name));
    }
    // No data of the packets remains.
    assert!(!copied.windows(8).any(|window| window == &option(1, b"seen twice")[..8]));
}

#[test]
fn a_capture_without_packets_stays_one() {
    for order in ORDERS {
        let empty = Bytes::new(order).pcap(NANO, 0, 1).bytes;
        assert_eq!(copy(&empty, 64, |_| true), empty);
        let option = Bytes::new(order).option(2, b"lo").bytes;
        let described = Bytes::new(order).section(&[]).interface(1, 0, &option).bytes;
        assert_eq!(copy(&described, 64, |_| true), described);
        let bare = Bytes::new(order).section(&[]).bytes;
        assert_eq!(copy(&bare, 64, |_| true), bare);
    }
}

#[test]
fn stamps_finer_than_a_nanosecond_are_written_as_they_were() {
    let option = |value: u8| Bytes::new(Order::Little).option(9, &[value]).bytes;
    for (resolution, stamp, nanoseconds) in [
        (12, 1_234_567_891, 1_234_567),
        (0x80 | 63, (1 << 63) + 1, 1_000_000_000),
        (19, u64::MAX, 1_844_674_407),
        (0, u64::MAX, u64::MAX),
    ] {
        let capture = Bytes::new(Order::Little)
            .section(&[])
            .interface(1, 0, &option(resolution))
            .enhanced(0, stamp, &packet(60), 60, &[])
            .bytes;
        assert_eq!(read(&capture).0[0].0.timestamp_ns, nanoseconds, "resolution {resolution}");
        assert_eq!(copy(&capture, 64, |_| true), capture);
    }
}

#[test]
fn what_editing_makes_untrue_is_left_out() {
    for order in ORDERS {
        let option = |code, value: &[u8]| Bytes::new(order).option(code, value).bytes;
        let (comment, end) = (option(1, b"kept"), option(0, &[]));
        let hash = option(3, &[2, 1, 2, 3, 4]);
        let private = option(19373, b"\0\0\0\0x");
        let with = [comment.clone(), hash, private, end.clone()].concat();
        let start = || Bytes::new(order).section(&[]).interface(1, 0, &[]);
        let not_to_be_copied = Bytes::new(order).block(0x4000_0bad, &[0; 4]).bytes;
        let capture = start().raw(&not_to_be_copied).enhanced(0, 1, &packet(60), 60, &with).bytes;
        let expected = start().enhanced(0, 1, &packet(60), 60, &[comment, end].concat()).bytes;
        assert_eq!(copy(&capture, 64, |_| true), expected);
    }
}

#[test]
fn a_known_section_length_becomes_unknown() {
    let mut capture = pcapng(Order::Little);
    let expected = capture.clone();
    capture[16..24].copy_from_slice(&1234i64.to_le_bytes());
    assert_eq!(copy(&capture, 64, |_| true), expected);
    // The same for a section that is not the first.
    assert_eq!(copy(&[&expected[..], &capture].concat(), 64, |_| true), expected.repeat(2));
}

#[test]
fn a_packet_that_changed_its_length_has_both_lengths_changed() {
    for order in ORDERS {
        let pcap = Bytes::new(order).pcap(MICRO, 262_144, 1).record(1, 2, &packet(61), 1500).bytes;
        let interface = |snaplen| Bytes::new(order).section(&[]).interface(1, snaplen, &[]);
        let enhanced = interface(0).enhanced(0, 5, &packet(61), 1500, &[]).bytes;
        for (delta, captured, original) in [(4, 65, 1504), (-7, 54, 1493)] {
            for capture in [&pcap, &enhanced] {
                let (packets, error) = read(&resized(capture, delta));
                assert!(error.is_none(), "{error:?}");
                assert_eq!((packets[0].1.len(), packets[0].0.original_len), (captured, original));
                assert_eq!(packets[0].0.timestamp_ns, read(capture).0[0].0.timestamp_ns);
            }
            // A Simple Packet Block cannot represent this; an Enhanced Packet Block replaces it.
            let simple = interface(61).simple(1500, &packet(61)).bytes;
            let (packets, error) = read(&resized(&simple, delta));
            assert!(error.is_none(), "{error:?}");
            assert_eq!((packets[0].1.len(), packets[0].0.original_len), (captured, original));
        }
    }
}

/// The lengths of a record were swapped in version 2.3, but some programs wrote that version with the old order.
#[test]
fn versions_before_2_4_are_read_and_written_as_2_4() {
    let file = |order, version: (u16, u16), lengths: [[u32; 2]; 2]| {
        let mut capture = Bytes::new(order).u32(MICRO).u16(version.0).u16(version.1).raw(&[0; 8]);
        capture = capture.u32(262_144).u32(1);
        for ([first, last], captured) in lengths.into_iter().zip([40, 50]) {
            capture = capture.u32(1).u32(2).u32(first).u32(last).raw(&packet(captured));
        }
        capture.bytes
    };
    let (now, before) = ([[40, 90], [50, 50]], [[90, 40], [50, 50]]);
    for order in ORDERS {
        let expected = file(order, (2, 4), now);
        for (version, lengths) in [
            ((2, 0), before),
            ((2, 2), before),
            ((543, 0), before),
            ((2, 3), now),
            ((2, 3), before),
            ((2, 4), now),
        ] {
            let capture = file(order, version, lengths);
            let (packets, error) = read(&capture);
            assert!(error.is_none(), "{error:?}");
            let found: Vec<_> = packets.iter().map(|(m, p)| (m.original_len, p.clone())).collect();
            assert_eq!(found, [(90, packet(40)), (50, packet(50))], "{version:?}");
            assert_eq!(copy(&capture, 64, |_| true), expected, "{version:?}");
        }
    }
}

/// Packets for filters are truncated as by libpcap, those for programs are not.
#[test]
fn what_is_longer_than_the_snapshot_length_is_cut_for_filters() {
    let filters = |capture: &[u8]| {
        let mut reader = CaptureReader::for_filters(capture).unwrap();
        let mut burst = Burst::default();
        let mut out = Vec::new();
        let mut writer = CaptureWriter::new(&mut out, reader.header()).unwrap();
        while reader.fill(&mut burst).unwrap() > 0 {
            writer.write(&burst, reader.records(), |_| true).unwrap();
        }
        writer.finish(reader.records()).unwrap();
        (reader.link(), out)
    };
    for order in ORDERS {
        let file = |magic, len| Bytes::new(order).pcap(magic, 50, 1).record(1, 2, &packet(len), 90);
        let capture = file(MICRO, 60).bytes;
        let cut = Bytes::new(order).pcap(MICRO, 50, 1).record(1, 2, &packet(60)[..50], 90).bytes;
        let (link, written) = filters(&capture);
        assert_eq!((link.snaplen, written), (50, cut));
        assert_eq!(link.order, if order == Order::Big { ByteOrder::Big } else { ByteOrder::Little });
        assert_eq!(read(&capture).0[0].1, packet(60));
        // Programs can make packets longer, so the written snapshot length is increased.
        let roomy = Bytes::new(order).pcap(MICRO, 262_144, 1).record(1, 2, &packet(60), 90).bytes;
        assert_eq!(copy(&capture, 64, |_| true), roomy);
        // Modified captures of Ethernet may have headers that the snapshot length does not include.
        let capture = Bytes::new(order).pcap(MODIFIED, 50, 1).bytes;
        assert_eq!(filters(&capture).0.snaplen, 64);
    }
    for (said, taken) in [(0, 262_144), (1 << 31, 262_144), (u32::MAX, 262_144), (1 << 30, 1 << 30)] {
        let capture = Bytes::new(Order::Little).pcap(MICRO, said, 1).bytes;
        assert_eq!(
            filters(&capture),
            (paceline_capture::Link { snaplen: taken, ..filters(&capture).0 }, capture)
        );
    }
    // USB packets may be longer.
    let capture = Bytes::new(Order::Little).pcap(MICRO, 0, 249).bytes;
    assert_eq!(filters(&capture).0.snaplen, 1 << 20);
}

#[test]
fn simple_packets_are_cut_by_the_snapshot_length() {
    let capture = Bytes::new(Order::Big)
        .section(&[])
        .interface(1, 33, &[])
        .simple(1500, &packet(33))
        .simple(20, &packet(20))
        .bytes;
    let (packets, error) = read(&capture);
    assert!(error.is_none(), "{error:?}");
    assert_eq!(
        packets.iter().map(|(m, p)| (m.original_len, p.len())).collect::<Vec<_>>(),
        [(1500, 33), (20, 20)]
    );
    // With a larger snapshot length, only an Enhanced Packet Block can represent a truncated packet.
    let expected = Bytes::new(Order::Big)
        .section(&[])
        .interface(1, 262_144, &[])
        .enhanced(0, 0, &packet(33), 1500, &[])
        .simple(20, &packet(20))
        .bytes;
    assert_eq!(copy(&capture, 64, |_| true), expected);
}

#[test]
fn long_packets_are_read_up_to_the_limit() {
    let long = packet(262_144);
    let capture = Bytes::new(Order::Little).pcap(MICRO, 0, 1).record(0, 0, &long, 262_144).bytes;
    assert_eq!(read(&capture).0[0].1, long);
    assert_eq!(copy(&capture, 64, |_| true), capture);
    let capture = Bytes::new(Order::Little).pcap(MICRO, 0, 1).record(0, 0, &packet(262_145), 0).bytes;
    assert_eq!(error(&capture), "packet 1 at byte 24 claims 262145 captured bytes, more than 262144");
}

/// From a pipe, available packets are delivered without waiting for more.
#[test]
fn a_short_burst_goes_on_at_once() {
    use std::io::Write;
    let (mut from, to) = std::io::pipe().unwrap();
    let (source, mut feed) = std::io::pipe().unwrap();
    let capture = pcap(Order::Little, MICRO);
    feed.write_all(&capture[..30]).unwrap();
    let mut reader = CaptureReader::new(source).unwrap();
    let mut writer = CaptureWriter::new(to, reader.header()).unwrap();
    // The first packet, and a part of the second.
    feed.write_all(&capture[30..120]).unwrap();
    let mut burst = Burst::default();
    assert_eq!(reader.fill(&mut burst).unwrap(), 1);
    writer.write(&burst, reader.records(), |_| true).unwrap();
    let mut seen = [0; 100];
    std::io::Read::read_exact(&mut from, &mut seen).unwrap();
    assert_eq!(seen, capture[..100]);
}

#[test]
fn a_reader_of_one_layout_and_a_writer_of_another_do_not_mix() {
    let (pcap, pcapng) = (pcap(Order::Little, MICRO), pcapng(Order::Little));
    let header = CaptureReader::new(&pcap[..]).unwrap().header().clone();
    let mut reader = CaptureReader::new(&pcapng[..]).unwrap();
    let mut writer = CaptureWriter::new(Vec::new(), &header).unwrap();
    let mut burst = Burst::default();
    reader.fill(&mut burst).unwrap();
    let error = writer.write(&burst, reader.records(), |_| true).unwrap_err();
    assert_eq!(error.to_string(), "packets of a pcapng capture cannot go into a pcap capture");
}
