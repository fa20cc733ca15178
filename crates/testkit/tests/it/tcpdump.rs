//! tcpdump as oracle for filters of captures: for every link type for which libpcap compiles expressions, in both byte
//! orders, the same expressions are refused and the same packets are written.

#![allow(clippy::print_stdout, reason = "says how much was compared")]

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use fastrand::Rng;
use paceline::capture::CaptureReader;
use paceline::filter::{
    CheckError, ConvertOptions, Filter, Libpcap, PacketFilter, Packets, Purpose, Rule, Rules, Select,
    Selection, SockFilter, Target, select, target_of,
};
use paceline::{Engine, Host};
use paceline_testkit::classic::{is_defined, steered};
use paceline_testkit::skip;
use tempfile::TempDir;

/// Link types are below this number; libpcap 1.10 supports no later ones.
const LINK_TYPES: u32 = 300;

/// This number of expressions is for every link type; each link type gets one in [`SHARE`] of the others.
const ALWAYS: usize = 8;

/// One in so many expressions is tried with a link type; `PACELINE_EXPRESSIONS` sets another number.
const SHARE: usize = 12;

/// Expressions for all link types, then those for most of them, then those for few.
const EXPRESSIONS: [&str; 48] = [
    "",
    "ip",
    "ip6",
    "link[0] = 1",
    "link[4:4] & 0xff00ff != 0 or link[2:2] > 7",
    "inbound",
    "ip broadcast",
    "len > 100",
    "greater 60 and less 150",
    "arp",
    "tcp port 80",
    "udp and not port 53",
    "host 10.0.0.1",
    "ip6 host ::1",
    "net 10.0.0.0/8 and ip[8] < 64",
    "tcp[tcpflags] & tcp-syn != 0",
    "ip protochain 6",
    "ip6 protochain 17",
    "protochain 6 or protochain 17",
    "icmp6 and ip6[40] = 1",
    "outbound",
    "ifindex 1",
    "broadcast",
    "multicast",
    "ip multicast",
    "ether host 1:2:3:4:5:6",
    "ether proto 0x88cc",
    "vlan 5 and ip",
    "mpls 100 and ip6",
    "pppoes 7 and ip",
    "geneve 5 and udp",
    "llc xid",
    "iso proto 1",
    "isis",
    "stp",
    "ipx or netbeui",
    "atalk or aarp",
    "wlan host 1:2:3:4:5:6",
    "type mgt subtype beacon",
    "dir fromds",
    "lane",
    "vci 5 and vpi 1",
    "fisu or lssu",
    "sio 3 and dpc > 5",
    "on eth0 and action pass",
    "rnr 1 and dir in",
    "carp or vrrp",
    "portrange 1-1023",
];

/// A capture of version 2.`minor` in one byte order.
fn capture(
    big_endian: bool,
    minor: u16,
    snaplen: u32,
    link_type: u32,
    packets: &[(Vec<u8>, u32)],
) -> Vec<u8> {
    let u32s = |numbers: &[u32]| -> Vec<u8> {
        let bytes = |number: &u32| if big_endian { number.to_be_bytes() } else { number.to_le_bytes() };
        numbers.iter().flat_map(bytes).collect()
    };
    let version = if big_endian { 2 << 16 | u32::from(minor) } else { u32::from(minor) << 16 | 2 };
    let mut capture = u32s(&[0xa1b2_c3d4, version, 0, 0, snaplen, link_type]);
    for (number, (packet, wire_len)) in (0..).zip(packets) {
        let (captured, wire_len) = (packet.len() as u32, *wire_len);
        // Version 2.3 exchanged the two lengths, and some programs wrote that version without the change.
        let last = minor < 3 || minor == 3 && number % 2 == 0;
        let lengths = if last { [wire_len, captured] } else { [captured, wire_len] };
        capture.extend(u32s(&[number, 7, lengths[0], lengths[1]]));
        capture.extend(packet);
    }
    capture
}

/// Said of programs that read a word of memory before they write it, which libpcap makes for some expressions with `geneve`.
const UNDEFINED: &str = "the program is undefined";

/// A capture in a file, for tcpdump.
struct Given {
    folder: TempDir,
    bytes: Vec<u8>,
}

impl Given {
    fn new(bytes: Vec<u8>) -> Self {
        let folder = TempDir::new().expect("a folder for temporary files");
        fs::write(folder.path().join("in.pcap"), &bytes).expect("room for a temporary file");
        Self { folder, bytes }
    }

    /// The file that tcpdump writes, or its error.
    fn theirs(&self, expression: &str) -> Result<Vec<u8>, String> {
        let (input, output) = (self.folder.path().join("in.pcap"), self.folder.path().join("out.pcap"));
        written(&input, &output, expression)
    }

    /// The file that the library writes, or its error.
    fn ours(&self, libpcap: &Libpcap, expression: &str) -> Result<Vec<u8>, String> {
        let mut reader = CaptureReader::for_filters(&self.bytes[..]).expect("a capture");
        let insns = libpcap.compile(expression, target_of(reader.link())).map_err(|error| error.message)?;
        let filter = match Filter::new(insns, Purpose::UserSpace) {
            Ok(filter) => filter,
            Err(CheckError::Insn { rule: Rule::MemoryUnset(_), .. }) => return Err(UNDEFINED.to_owned()),
            Err(error) => panic!("{expression}: libpcap makes good programs: {error}"),
        };
        let options = ConvertOptions::default().rules(Rules::Libpcap);
        let filter = PacketFilter::new("filter", filter, &options, Engine::best())
            .unwrap_or_else(|error| panic!("{expression}: {error}"));
        let mut out = Vec::new();
        let writer = paceline::capture::CaptureWriter::new(&mut out, reader.header()).expect("memory");
        let mut selections = [Selection::new(filter, Some(writer))];
        let go_on = |_| std::ops::ControlFlow::Continue(());
        let (_, ended) = select(&mut reader, &mut selections, &mut Host::default(), Select::default(), go_on);
        ended.unwrap_or_else(|error| panic!("{expression}: {error}"));
        drop(selections);
        Ok(out)
    }

    /// The same in this machine's byte order, in which tcpdump writes all captures.
    fn native(&self, ours: &[u8]) -> Vec<u8> {
        let (input, output) = (self.folder.path().join("ours.pcap"), self.folder.path().join("native.pcap"));
        fs::write(&input, ours).expect("room for a temporary file");
        written(&input, &output, "").unwrap_or_else(|error| panic!("what we write: {error}"))
    }

    /// Compares both outputs; returns the number of bytes if neither side refuses.
    fn compare(&self, libpcap: &Libpcap, expression: &str, what: &str) -> Option<u64> {
        match (self.theirs(expression), self.ours(libpcap, expression)) {
            // tcpdump runs them on what the stack holds.
            (Ok(_), Err(ours)) if ours == UNDEFINED => None,
            (Ok(theirs), Ok(ours)) => {
                let same = ours == theirs || self.native(&ours) == theirs;
                assert!(same, "{what}: {expression}: {} and {} bytes", ours.len(), theirs.len());
                Some(ours.len() as u64)
            }
            (Err(theirs), Err(ours)) => {
                assert_eq!(ours, theirs, "{what}: {expression}");
                None
            }
            (Ok(_), Err(ours)) => panic!("{what}: {expression}: only ours refuses it: {ours}"),
            (Err(theirs), Ok(_)) => panic!("{what}: {expression}: only tcpdump refuses it: {theirs}"),
        }
    }
}

/// The file that tcpdump writes, or its message.
fn written(input: &Path, output: &Path, expression: &str) -> Result<Vec<u8>, String> {
    let _ = fs::remove_file(output);
    let Output { status, stderr, .. } = Command::new("tcpdump")
        // Its optimizer matches other packets for some expressions, and refuses others.
        .arg("-O")
        .arg("-r")
        .arg(input)
        .arg("-w")
        .arg(output)
        .arg(expression)
        .output()
        .expect("tcpdump was there");
    if status.success() {
        return Ok(fs::read(output).expect("tcpdump wrote it"));
    }
    let text = String::from_utf8_lossy(&stderr);
    let error = text.lines().find_map(|line| line.strip_prefix("tcpdump: "));
    Err(error.unwrap_or(&text).to_owned())
}

/// libpcap, if tcpdump is installed too.
fn oracle(test: &str) -> Option<Libpcap> {
    if let Err(error) = Command::new("tcpdump").arg("--version").output() {
        skip(test, &format!("tcpdump: {error}"));
        return None;
    }
    Libpcap::open().map_err(|reason| skip(test, &reason)).ok()
}

/// Packets steered through compiled expressions, without packets for which tcpdump does not end or has no defined result.
fn packets(rng: &mut Rng, programs: &[Vec<SockFilter>]) -> Vec<(Vec<u8>, u32)> {
    let mut packets: Vec<Vec<u8>> = Vec::new();
    for program in programs {
        packets.extend((0..6).map(|_| steered(rng, program)));
    }
    packets.retain(|packet| programs.iter().all(|program| is_defined(program, packet)));
    let with_wire_len = |packet: Vec<u8>| {
        let wire_len = packet.len() as u32 + rng.u32(..2) * 60;
        (packet, wire_len)
    };
    packets.into_iter().map(with_wire_len).collect()
}

/// Counts of comparisons.
#[derive(Default)]
struct Tally {
    link_types: AtomicU64,
    expressions: AtomicU64,
    bytes: AtomicU64,
}

/// Compares both on packets of a link type, steered through libpcap's programs for all expressions.
fn compare_link_type(libpcap: &Libpcap, link_type: u32, big_endian: bool, share: usize, tally: &Tally) {
    const SNAPLEN: u32 = 160;
    let what = format!("link type {link_type}, {}-endian", if big_endian { "big" } else { "little" });
    if Given::new(capture(big_endian, 4, SNAPLEN, link_type, &[])).compare(libpcap, "", &what).is_none() {
        return;
    }
    let source = Packets::Capture { big_endian };
    let target = Target { link_type, snaplen: SNAPLEN, packets: source, ..Target::default() };
    let compile = |expression: &&str| libpcap.compile(expression, target).ok();
    let programs: Vec<_> = EXPRESSIONS.iter().filter_map(compile).collect();
    let mut rng = Rng::with_seed((link_type * 2 + u32::from(big_endian)).into());
    let given = Given::new(capture(big_endian, 4, SNAPLEN, link_type, &packets(&mut rng, &programs)));
    // If `ip` is refused for a link type, so are most other expressions.
    let knows_ip = compile(&"ip").is_some();
    let turn = rng.usize(..share);
    for (index, expression) in EXPRESSIONS.iter().enumerate() {
        if index >= ALWAYS && !(knows_ip && index % share == turn) {
            continue;
        }
        let bytes = given.compare(libpcap, expression, &what).unwrap_or_default();
        tally.bytes.fetch_add(bytes, Ordering::Relaxed);
        tally.expressions.fetch_add(1, Ordering::Relaxed);
    }
    tally.link_types.fetch_add(1, Ordering::Relaxed);
}

#[test]
fn filters_take_what_tcpdump_takes_in_every_link_type() {
    let Some(libpcap) = oracle("filters_take_what_tcpdump_takes_in_every_link_type") else { return };
    let share = env::var("PACELINE_EXPRESSIONS").map_or(SHARE, |share| share.parse().expect("a number"));
    let (next, tally) = (AtomicU32::new(0), Tally::default());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number / 2 >= LINK_TYPES {
                break;
            }
            compare_link_type(&libpcap, number / 2, number % 2 == 1, share, &tally);
        }
    };
    // Most of the time is the start of tcpdump.
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let Tally { link_types, expressions, bytes } = tally;
    let bytes = bytes.into_inner();
    println!("{expressions:?} expressions in {link_types:?} link types and orders, {bytes} bytes written");
    assert!(bytes > 1_000_000, "{bytes} bytes are too few to show anything");
}

/// Records longer or shorter than the header's snapshot length, and versions before 2.4.
#[test]
fn cut_records_and_old_versions_are_read_as_libpcap_reads_them() {
    let Some(libpcap) = oracle("cut_records_and_old_versions_are_read_as_libpcap_reads_them") else { return };
    let expressions =
        ["", "tcp port 80", "ip6 protochain 17", "len > 100", "link[90] >= 0", "not link[90] >= 0"];
    let programs: Vec<_> =
        expressions.iter().map(|e| libpcap.compile(e, Target::default()).expect("it is one")).collect();
    let packets = packets(&mut Rng::with_seed(1), &programs);
    for big_endian in [false, true] {
        for minor in 0..=4 {
            for snaplen in [0, 1, 14, 60, 91, 200, 65_535, 300_000, 1 << 31] {
                let given = Given::new(capture(big_endian, minor, snaplen, 1, &packets));
                for expression in expressions {
                    let what = format!("2.{minor}, snapshot length {snaplen}");
                    assert!(given.compare(&libpcap, expression, &what).is_some(), "{expression}: {what}");
                }
            }
        }
    }
}
