//! Windows give the packets, the error and the copy that bursts give.

use fastrand::Rng;
use paceline_capture::{CaptureReader, CaptureWriter, Division, Header, Window};
use paceline_frame::{Burst, FrameMeta};

use crate::splits::{all, captures};

/// Packets of a capture, and the message of the error at its end.
type Read = (Vec<(FrameMeta, Vec<u8>)>, String);

fn writer<'a>(out: &'a mut Vec<u8>, reader: &CaptureReader<'_>) -> CaptureWriter<'a> {
    CaptureWriter::new(out, reader.header()).expect("a vector takes everything")
}

/// Reads up to so many packets by bursts, and copies those that are selected.
fn by_bursts(capture: &[u8], most: usize, select: fn(&[u8]) -> bool) -> (Read, Vec<u8>) {
    let (mut packets, mut out) = (Vec::new(), Vec::new());
    let mut reader = CaptureReader::for_filters(capture).expect("a header");
    let mut copy = writer(&mut out, &reader);
    let mut burst = Burst::default();
    let end = loop {
        match if packets.len() < most { reader.fill(&mut burst) } else { Ok(0) } {
            Ok(0) => break String::new(),
            Ok(_) => {
                burst.truncate(most - packets.len());
                packets.extend(burst.iter().map(|frame| (*frame.meta(), frame.packet().to_vec())));
                let copied = copy.write(&burst, reader.records(), |frame| select(frame.packet()));
                copied.expect("a vector takes everything");
            }
            Err(error) => break error.to_string(),
        }
    };
    copy.finish(reader.records()).expect("a vector takes everything");
    ((packets, end), out)
}

/// The packets of a window's groups, in the order of the capture.
fn merged(window: &Window, groups: usize, burst_len: usize) -> Vec<(FrameMeta, Vec<u8>)> {
    let of_group = |number| {
        let (mut group, mut burst, mut packets) = (window.group(number), Burst::new(burst_len), Vec::new());
        while group.fill(window, &mut burst).expect("records that were read before") > 0 {
            packets.extend(burst.iter().map(|frame| (*frame.meta(), frame.packet().to_vec())));
            burst.clear();
        }
        packets.into_iter()
    };
    let mut packets: Vec<_> = (0..groups).map(of_group).collect();
    let order = window.order().iter().map(|&group| packets[usize::from(group)].next());
    let merged = order.collect::<Option<Vec<_>>>().expect("a packet for each place");
    assert!(packets.iter_mut().all(|left| left.next().is_none()), "a place for each packet");
    merged
}

/// As [`by_bursts`], by windows that are divided into groups.
fn by_windows(capture: &[u8], most: usize, select: fn(&[u8]) -> bool, rng: &mut Rng) -> (Read, Vec<u8>) {
    let (mut packets, mut out) = (Vec::new(), Vec::new());
    let mut reader = CaptureReader::for_filters(capture).expect("a header");
    let mut copy = writer(&mut out, &reader);
    let (mut window, groups, burst_len) = (Window::default(), rng.usize(1..4), rng.usize(1..65));
    let end = loop {
        let left = most - packets.len();
        let most = if rng.bool() { left } else { rng.usize(0..=left) };
        let group_of = |packet: &[u8]| packet.len() % groups;
        let mut division = Division { groups, group_of, most: most.max(1).min(left), keep_records: true };
        match reader.fill_window(&mut window, &mut division) {
            Ok(0) => break String::new(),
            Ok(read) => {
                let of_window = merged(&window, groups, burst_len);
                assert_eq!(of_window.len(), read);
                let selected = of_window.iter().map(|(_, packet)| select(packet).then_some(&packet[..]));
                let records = window.records().expect("kept");
                copy.write_selected(selected, true, records).expect("a vector takes everything");
                packets.extend(of_window);
            }
            Err(error) => break error.to_string(),
        }
    };
    copy.finish(reader.records()).expect("a vector takes everything");
    ((packets, end), out)
}

#[test]
fn windows_give_what_bursts_give() {
    let mut rng = Rng::with_seed(0x817d0);
    let mut long = 0;
    for (name, capture) in all(&mut rng) {
        let select: fn(&[u8]) -> bool = |packet| packet.len() % 3 > 0;
        let whole = by_bursts(&capture, usize::MAX, select);
        let count = whole.0.0.len();
        long += usize::from(count > 64);
        for most in [usize::MAX, count, count.saturating_sub(1), rng.usize(0..=count), rng.usize(0..=64)] {
            let bursts = by_bursts(&capture, most, select);
            let windows = by_windows(&capture, most, select, &mut rng);
            assert!(bursts.0.1 == windows.0.1, "{name}, {most}: {} for {}", windows.0.1, bursts.0.1);
            assert!(bursts.0 == windows.0, "{name}, {most}: {} packets", windows.0.0.len());
            assert!(bursts.1 == windows.1, "{name}, {most}: the copies");
        }
    }
    assert!(long > 9, "captures of several bursts");
}

#[test]
fn a_window_keeps_records_only_when_asked() {
    let mut rng = Rng::with_seed(1);
    let (_, capture) = captures(&mut rng).remove(0);
    let mut reader = CaptureReader::for_filters(&capture[..]).expect("a header");
    assert!(matches!(reader.header(), Header::Pcap(_)));
    let mut window = Window::default();
    let mut division = Division { groups: 1, group_of: |_: &[u8]| 0, most: 10, keep_records: false };
    assert_eq!(reader.fill_window(&mut window, &mut division).expect("a capture"), 10);
    assert!(window.records().is_none());
    assert_eq!(reader.packets(), 10);
}
