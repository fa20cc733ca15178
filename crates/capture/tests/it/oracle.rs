//! Wireshark's tools as oracle: both find the same packets, in captures of other programs and of Paceline.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use crate::common::{Bytes, Order, copy, packet, read, resized};
use paceline_capture::{AnnotatedWriter, LinkType, Notes, ReadError};

/// Reports a skipped test; fails if `PACELINE_REQUIRE_ALL=1`.
fn skip(name: &str, reason: &str) {
    eprintln!("SKIP {name}: {reason}");
    let required = std::env::var("PACELINE_REQUIRE_ALL").is_ok_and(|value| value == "1");
    assert!(!required, "{name} must run (PACELINE_REQUIRE_ALL=1) but cannot: {reason}");
}

/// Real captures of Debian's `pathspider` package.
const PATHSPIDER: &str = "/usr/lib/python3/dist-packages/pathspider/tests/data";

fn captures_in(folder: &Path) -> Vec<PathBuf> {
    let mut captures: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "pcap" || e == "pcapng"))
        .collect();
    captures.sort();
    captures
}

fn shipped() -> Vec<PathBuf> {
    let captures = captures_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"));
    assert!(captures.len() >= 2);
    captures
}

/// A packet for the comparison: nanoseconds, captured length, original length, interface.
type Row = (u64, usize, u32, u32);

fn ours(capture: &[u8]) -> (Vec<Row>, Option<ReadError>) {
    let (packets, error) = read(capture);
    let row = |(meta, bytes): &(paceline_frame::FrameMeta, Vec<u8>)| {
        (meta.timestamp_ns, bytes.len(), meta.original_len, meta.interface)
    };
    (packets.iter().map(row).collect(), error)
}

/// Runs a tool and returns its output; `None` if it is not installed.
fn run(tool: &str, arguments: &[&str], file: &Path) -> Option<(String, bool)> {
    let output = Command::new(tool).args(arguments).arg(file).output().ok()?;
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success()))
}

/// Wireshark's result: the packets, and whether all of them are Ethernet.
fn theirs(file: &Path) -> Option<(Vec<Row>, bool)> {
    // Dissection of the payload is disabled, as it is expensive and not needed.
    const FIELDS: [&str; 16] = [
        "-n",
        "--disable-protocol",
        "eth",
        "-T",
        "fields",
        "-e",
        "frame.time_epoch",
        "-e",
        "frame.cap_len",
        "-e",
        "frame.len",
        "-e",
        "frame.interface_id",
        "-e",
        "frame.encap_type",
        "-r",
    ];
    let (text, _) = run("tshark", &FIELDS, file)?;
    let mut ethernet = true;
    let rows = text
        .lines()
        .map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let (seconds, fraction) = fields[0].split_once('.').unwrap_or((fields[0], ""));
            let nanoseconds: u64 = format!("{fraction:0<9}")[..9].parse().expect("a fraction");
            ethernet &= fields[4] == "1";
            (
                seconds.parse::<u64>().expect("seconds") * 1_000_000_000 + nanoseconds,
                fields[1].parse().expect("a length"),
                fields[2].parse().expect("a length"),
                fields[3].parse().unwrap_or(0),
            )
        })
        .collect();
    Some((rows, ethernet))
}

/// A temporary folder of one test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("paceline-port-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder for temporary files");
        Self(folder)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Reports the first packet that differs.
fn assert_same(ours: &[Row], theirs: &[Row], file: &Path) {
    for (number, (one, other)) in ours.iter().zip(theirs).enumerate() {
        assert_eq!(one, other, "{}, packet {}", file.display(), number + 1);
    }
    assert_eq!(ours.len(), theirs.len(), "packets of {}", file.display());
}

/// Compares the packets read and, if `written`, those written when every third packet is dropped.
fn compare(file: &Path, scratch: &Scratch, written: bool) -> Option<usize> {
    let capture = fs::read(file).expect("a readable capture");
    let (wanted, ethernet) = theirs(file)?;
    let (rows, error) = ours(&capture);
    if !ethernet {
        let refused = matches!(error, Some(ReadError::LinkType(_) | ReadError::PacketLinkType { .. }));
        assert!(refused, "{}: {error:?}", file.display());
        return Some(0);
    }
    assert!(error.is_none(), "{}: {error:?}", file.display());
    assert_same(&rows, &wanted, file);
    if written {
        let out = scratch.file("out");
        fs::write(&out, copy(&capture, 64, |number| number % 3 != 1)).expect("room for a temporary file");
        let kept: Vec<Row> =
            wanted.iter().enumerate().filter(|(i, _)| i % 3 != 1).map(|(_, row)| *row).collect();
        assert_same(&theirs(&out)?.0, &kept, file);
    }
    let mut copied = copy(&capture, 64, |_| true);
    if !copied.starts_with(&[0x0a, 0x0d]) {
        // The snapshot length of a pcap file may be increased.
        copied[16..20].copy_from_slice(&capture[16..20]);
    }
    assert!(copied == capture, "{} does not survive", file.display());
    Some(rows.len())
}

#[test]
fn wireshark_reads_the_same_packets() {
    let name = "wireshark_reads_the_same_packets";
    let real = captures_in(Path::new(PATHSPIDER));
    if real.is_empty() {
        skip(name, "no captures of pathspider");
    }
    let files: Vec<_> = shipped().into_iter().chain(real).enumerate().collect();
    // Starting Wireshark dominates the test's time.
    let work = |part: &[(usize, PathBuf)]| -> Option<usize> {
        let scratch = Scratch::new(&format!("same {}", part[0].0));
        part.iter().map(|(number, file)| compare(file, &scratch, *number < 2 || number % 8 == 0)).sum()
    };
    let packets: Option<usize> = thread::scope(|scope| {
        let work = &work;
        let parts: Vec<_> =
            files.chunks(files.len().div_ceil(2)).map(|part| scope.spawn(move || work(part))).collect();
        parts.into_iter().map(|part| part.join().expect("the same packets")).sum()
    });
    match packets {
        Some(packets) => eprintln!("{packets} packets in {} captures", files.len()),
        None => skip(name, "no tshark"),
    }
}

#[test]
fn wireshark_writes_what_we_read() {
    let name = "wireshark_writes_what_we_read";
    let scratch = Scratch::new("written");
    let real = ["basic_ipv6_tcp.pcap", "tcp_http.pcap"].map(|file| Path::new(PATHSPIDER).join(file));
    let real = real.into_iter().filter(|file| file.exists());
    for file in real.chain(shipped()) {
        for (format, cut) in
            [("pcap", "0"), ("nsecpcap", "0"), ("modpcap", "0"), ("pcapng", "0"), ("pcapng", "60")]
        {
            let to = scratch.file("converted");
            let input = file.to_string_lossy();
            let Some(_) = run("editcap", &["-F", format, "-s", cut, &input], &to) else {
                return skip(name, "no editcap");
            };
            // A format that cannot represent the interfaces of a pcapng capture is refused.
            if to.exists() {
                let Some(count) = compare(&to, &scratch, true) else { return skip(name, "no tshark") };
                assert!(count > 0, "{format} of {input}");
                fs::remove_file(&to).expect("a file that was there");
            }
        }
    }
}

/// Packets that exceed the snapshot length of their capture after a change are read whole.
#[test]
fn libpcap_reads_packets_that_grew() {
    let scratch = Scratch::new("grown");
    let cut = || Bytes::new(Order::Little);
    let pcap = cut().pcap(0xa1b2_c3d4, 64, 1).record(1, 1, &packet(64), 1500).bytes;
    let enhanced = cut().section(&[]).interface(1, 64, &[]).enhanced(0, 1, &packet(64), 1500, &[]).bytes;
    let simple = cut().section(&[]).interface(1, 64, &[]).simple(1500, &packet(64)).bytes;
    for capture in [pcap, enhanced, simple] {
        let out = scratch.file("out");
        fs::write(&out, resized(&capture, 36)).expect("room for a temporary file");
        let Some((text, success)) = run("tcpdump", &["-nn", "-t", "-e", "-XX", "-r"], &out) else {
            return skip("libpcap_reads_packets_that_grew", "no tcpdump");
        };
        assert!(success && text.contains("length 1536"), "{text}");
        // The last line of the dump starts at byte 0x60, and the packet ends with byte 100.
        assert!(
            text.lines().any(|line| line.trim() == "0x0060:  0000 0000                                ...."),
            "{text}"
        );
    }
}

/// tcpdump reads the written captures completely.
#[test]
fn libpcap_reads_what_we_write() {
    let name = "libpcap_reads_what_we_write";
    let scratch = Scratch::new("libpcap");
    for file in shipped() {
        let capture = fs::read(&file).expect("a readable capture");
        let out = scratch.file("out");
        fs::write(&out, copy(&capture, 64, |number| number % 2 == 0)).expect("room for a temporary file");
        let Some((text, success)) = run("tcpdump", &["-nn", "-q", "-t", "-#", "-r"], &out) else {
            return skip(name, "no tcpdump");
        };
        assert!(success, "{}", file.display());
        let count =
            text.lines().filter(|line| line.starts_with(|c: char| c == ' ' || c.is_ascii_digit())).count();
        assert!(count >= read(&capture).0.len() / 2, "{}: {count}", file.display());
    }
}

#[test]
fn wireshark_reads_the_notes_of_packets() {
    let name = "wireshark_reads_the_notes_of_packets";
    let scratch = Scratch::new("notes");
    let (path, packet) = (scratch.file("notes"), [7; 61]);
    let mut writer = AnnotatedWriter::new(fs::File::create(&path).expect("a file"), "test").expect("a file");
    let interfaces =
        ["xdp:a", "tap:b"].map(|name| writer.add_interface(name, LinkType::ETHERNET).expect("room"));
    let notes = Notes { comment: "dropped, \u{fc}", packet_id: Some(5), queue: Some(3), verdict: Some(1) };
    writer.push(interfaces[1], 1_700_000_000_123_456_789, &packet, 100, &notes).expect("room");
    writer.push(interfaces[0], 1, &packet[..60], 60, &Notes::default()).expect("room");
    writer.finish(1_700_000_001_000_000_000, 9).expect("room");
    let fields = [
        "frame.comment",
        "frame.packet_id",
        "frame.interface_queue",
        "frame.interface_name",
        "frame.time_epoch",
        "frame.len",
        "frame.cap_len",
        "frame.verdict.ebpf_xdp",
    ];
    let mut tshark = Command::new("tshark");
    tshark.args(["-T", "fields", "-E", "separator=|", "-r"]).arg(&path);
    for field in fields {
        tshark.args(["-e", field]);
    }
    let Ok(output) = tshark.output() else { return skip(name, "no tshark") };
    let text = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(lines[0], "dropped, \u{fc}|5|3|tap:b|1700000000.123456789|100|61|1");
    assert_eq!(lines[1], "||||0.000000001|60|60|".replacen("||||", "|||xdp:a|", 1));
    // Our own reader takes it, too.
    let bytes = fs::read(&path).expect("a file");
    let mut reader = paceline_capture::CaptureReader::new(bytes.as_slice()).expect("a header");
    let mut burst = paceline_frame::Burst::default();
    assert_eq!(reader.fill(&mut burst).expect("whole records"), 2);
    assert_eq!((burst.frame(0).packet(), burst.frame(0).meta().interface), (&packet[..], 1));
    assert_eq!(burst.frame(0).meta().timestamp_ns, 1_700_000_000_123_456_789);
}
