//! Any number of workers and parts gives what one pass gives.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;

use fastrand::Rng;
use flate2::Compression;
use flate2::write::GzEncoder;
use paceline::Engine;
use paceline::capture::ReadAt;
use paceline::filter::{ConvertOptions, Filter, PacketFilter, Purpose, Rules, text};
use paceline::with_causes;
use paceline_archive::{Error, Opened, Part, Report, Rows, Source, Wanted, Worker, parts, scan, set_filters};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

use crate::{example, in_memory};

/// `tcp` of IPv4, as tcpdump compiles it.
const TCP: &str = "ldh [12]\n jne #0x800, drop\n ldb [23]\n jne #6, drop\n ret #262144\n drop: ret #0";

fn tcp() -> PacketFilter {
    let filter = Filter::new(text::parse(TCP).expect("a program"), Purpose::UserSpace).expect("a filter");
    let options = ConvertOptions::default().rules(Rules::Libpcap);
    PacketFilter::new("tcp", filter, &options, Engine::best()).expect("a filter that can run")
}

/// The records of the example capture so many times, with bytes of the rounds in them.
fn long(times: u32) -> Vec<u8> {
    let capture = std::fs::read(example("traffic.pcap")).expect("the example");
    let (header, mut records) = capture.split_at(24);
    let mut bytes = header.to_vec();
    let mut one = Vec::new();
    while let Some(len) = records.get(8..12) {
        let len = 16 + u32::from_le_bytes(len.try_into().expect("four bytes")) as usize;
        one.push(records[..len].to_vec());
        records = &records[len..];
    }
    for round in 0..times {
        for record in &mut one {
            let last = record.len() - 4;
            record[last..].copy_from_slice(&round.to_le_bytes());
            bytes.extend_from_slice(record);
        }
    }
    bytes
}

/// Packets with capture, offset and time.
type Packets = Vec<(usize, u64, u64, Vec<u8>)>;

fn run(captures: &[Opened], parts: Vec<(usize, Part)>, workers: usize) -> Result<(Packets, Report), Error> {
    let workers = (0..workers).map(|_| Worker::default()).collect();
    let mut packets = Vec::new();
    let report = scan(captures, parts, workers, Wanted { input: false, data: true }, |rows: Rows| {
        for index in 0..rows.len() {
            let data = rows.data.get(index).to_vec();
            packets.push((rows.capture, rows.offsets[index], rows.times[index], data));
        }
        ControlFlow::Continue(())
    })?;
    Ok((packets, report))
}

fn whole(captures: &[Opened]) -> (Packets, Report) {
    let parts = (0..captures.len()).map(|index| (index, Part::WHOLE)).collect();
    run(captures, parts, 1).expect("captures")
}

fn opened(source: Source) -> Opened {
    Opened::open(source, Some(tcp())).expect("a capture")
}

#[test]
fn workers_give_what_one_pass_gives() {
    let mut rng = Rng::with_seed(21);
    let mut damaged = long(40);
    for _ in 0..12 {
        let at = rng.usize(24..damaged.len() - 64);
        damaged[at..at + 64].fill(rng.u8(..));
    }
    let captures = [
        opened(in_memory("long", long(60))),
        opened(Source::open(example("traffic.pcap")).expect("the example")),
        opened(in_memory("damaged", damaged)),
    ];
    let (packets, report) = whole(&captures);
    assert_eq!(report.captures[0].read.packets, 60 * 492);
    assert!(!report.captures[2].lost.is_empty());
    for workers in 1..4 {
        for count in [1, 2, 7, 40] {
            let cut = |(index, capture): (usize, &Opened)| {
                let parts = capture.parts(count, rng.bool()).expect("parts");
                parts.into_iter().map(move |part| (index, part)).collect::<Vec<_>>()
            };
            let parts: Vec<_> = captures.iter().enumerate().flat_map(cut).collect();
            assert!(count == 1 || parts.len() > captures.len());
            let (found, counts) = run(&captures, parts, workers).expect("captures");
            assert!(found == packets, "{workers} workers, {count} parts");
            assert_eq!(counts, report, "{workers} workers, {count} parts");
        }
    }
}

#[test]
fn compressed_captures_are_the_same_captures() {
    let bytes = long(3);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&bytes).expect("memory");
    let mut several = gzip.finish().expect("memory");
    // A member behind another, and frames with one that readers skip.
    let (front, back) = bytes.split_at(bytes.len() / 3);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(front).expect("memory");
    let mut members = gzip.finish().expect("memory");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(back).expect("memory");
    members.extend(gzip.finish().expect("memory"));
    let frame = |bytes: &[u8]| compress_to_vec(bytes, CompressionLevel::Fastest);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
    let frames = [frame(front), skippable, frame(back)].concat();
    let plain = whole(&[opened(in_memory("", bytes.clone()))]);
    for compressed in [several.clone(), members, frames.clone()] {
        let captures = [opened(in_memory("", compressed))];
        let parts = parts(&captures, 3, false).expect("parts");
        assert!(run(&captures, parts, 3).expect("a capture") == plain);
    }
    // Damage ends a compressed capture and is told; the packets before it are there.
    several.truncate(several.len() / 2);
    let mut wrong = frames.clone();
    let last = wrong.len() - 9;
    wrong[last] ^= 0x55;
    // The window of a frame that is cut is not lost.
    let cut = frame(&bytes)[..frame(&bytes).len() / 2].to_vec();
    for damaged in [several, wrong, cut] {
        let (packets, report) = whole(&[opened(in_memory("", damaged))]);
        assert_eq!(report.totals().lost.len(), 1, "{:?}", report.totals().lost);
        assert!(!packets.is_empty() && plain.0.starts_with(&packets));
    }
}

#[test]
fn a_part_alone_tells_that_its_end_is_no_boundary() {
    let captures = [opened(in_memory("capture", long(3)))];
    let mut cut = captures[0].parts(2, false).expect("parts");
    let first = cut.first_mut().expect("a part");
    first.split.as_mut().expect("a split").end -= 1;
    first.is_alone = true;
    let error = run(&captures, vec![(0, cut[0].clone())], 1).expect_err("no boundary");
    assert!(error.to_string().contains("is no boundary"), "{error}");
    // Together the part is read on.
    cut[0].is_alone = false;
    let parts = cut.into_iter().map(|part| (0, part)).collect();
    assert!(run(&captures, parts, 2).expect("a capture") == whole(&captures));
}

/// Bytes that cannot be read from some offset on.
struct Broken(Vec<u8>, u64);

impl ReadAt for Broken {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
        if offset >= self.1 {
            return Err(std::io::Error::other("broken"));
        }
        let len = buffer.len().min((self.1 - offset) as usize);
        self.0.as_slice().read_at(offset, &mut buffer[..len])
    }
}

#[test]
fn packets_before_an_error_are_given() {
    let bytes = long(100);
    let limit = bytes.len() as u64 / 2;
    let source = Source::new("broken", Arc::new(Broken(bytes, limit)), limit).expect("a source");
    let captures = [Opened::open(source, None).expect("a capture")];
    let mut packets = 0;
    let parts = vec![(0, Part::WHOLE)];
    let error = scan(&captures, parts, vec![Worker::default()], Wanted::default(), |rows| {
        packets += rows.len();
        ControlFlow::Continue(())
    });
    assert!(error.expect_err("an error").to_string().contains("broken"));
    // All up to the record that the error is in.
    assert!((50 * 492 - 1..=50 * 492).contains(&packets), "{packets}");
}

#[test]
fn a_scan_can_be_ended() {
    let captures = [opened(in_memory("", long(200)))];
    for workers in [1, 2] {
        let cut = captures[0].parts(8, false).expect("parts").into_iter().map(|part| (0, part)).collect();
        let workers = (0..workers).map(|_| Worker::default()).collect();
        let report = scan(&captures, cut, workers, Wanted::default(), |_| ControlFlow::Break(()));
        let report = report.expect("a capture");
        assert!(report.interrupted && report.totals().read.packets < 200 * 492);
    }
}

#[test]
fn a_filter_is_compiled_once_for_each_link() {
    let traffic = || Source::open(example("traffic.pcap")).expect("the example");
    let mut captures: Vec<_> = (0..3).map(|_| Opened::open(traffic(), None).expect("a capture")).collect();
    let mut compiled = 0;
    let done = set_filters(&mut captures, |_| {
        compiled += 1;
        Ok::<_, ()>(tcp())
    });
    assert!(done.is_ok() && captures.iter().all(|capture| capture.filter.is_some()));
    assert_eq!(compiled, 1);
}

#[test]
fn sources_that_are_no_captures_are_named() {
    let error = Source::open("no such file").expect_err("an error");
    assert!(with_causes(&error).starts_with("no such file: No such file"), "{error}");
    let error = Source::open(example("")).expect_err("an error");
    assert!(with_causes(&error).ends_with("it is no file, in which bytes can be read anywhere"), "{error}");
    for bytes in [&b""[..], b"x", b"not a capture at all, but long enough"] {
        let error = Opened::open(in_memory("name", bytes.to_vec()), None).expect_err("an error");
        assert!(with_causes(&error).starts_with("name: "), "{error}");
    }
}
