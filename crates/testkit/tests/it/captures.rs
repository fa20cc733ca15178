//! tcpdump's expressions over third-party captures: matches must be those of libpcap's `bpf_filter`, on every engine and for
//! every link type.
//!
//! The captures are in the folders of `PACELINE_CAPTURES` (separated by `:`), and in Debian's
//! golang-github-google-gopacket-dev if it is installed. Debian's tcpdump sources have the most:
//!
//! ```sh
//! apt-get source tcpdump    # needs deb-src in the list of sources
//! PACELINE_CAPTURES=tcpdump-4.99.3/tests cargo test --release -p paceline-testkit --test it captures::
//! ```

#![allow(clippy::print_stdout, reason = "says how much was compared")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use paceline::capture::{ByteOrder, CaptureReader, Link};
use paceline::{Burst, FrameMeta, Host};
use paceline_classic::{ConvertOptions, Filter, Purpose, Rules};
use paceline_engine::Program;
use paceline_testkit::AnyEngine;
use paceline_testkit::classic::{self, Libpcap, Target};
use paceline_testkit::skip;
use paceline_verifier::{Options, verify};

const GOPACKET: &str = "/usr/share/gocode/src/github.com/google/gopacket";

/// Bytes after this offset are outside of a packet (docs/FILTERS.md): longer packets are omitted.
const LONGEST: usize = 65_535;

/// Packets with their wire length.
type Packets = BTreeSet<(Vec<u8>, u32)>;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn captures_in(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            captures_in(&path, found);
        } else if path.extension().is_some_and(|e| e == "pcap" || e == "pcapng" || e == "cap") {
            found.push(path);
        }
    }
}

/// The distinct packets of captures, by link type and byte order. Many captures are deliberately broken: packets before the
/// error are used.
fn packets(captures: &[PathBuf]) -> BTreeMap<(u32, bool), Packets> {
    let mut packets: BTreeMap<(u32, bool), Packets> = BTreeMap::new();
    let mut burst = Burst::default();
    for path in captures {
        let file = File::open(path).expect("it was listed");
        let Ok(mut reader) = CaptureReader::for_filters(file) else { continue };
        let Link { link_type, order, .. } = reader.link();
        let link = (link_type.0, order == ByteOrder::Big);
        while reader.fill(&mut burst).is_ok_and(|read| read > 0) {
            let packet = |frame: paceline::FrameRef<'_>| (frame.packet().to_vec(), frame.meta().original_len);
            let short = burst.iter().filter(|frame| frame.len() <= LONGEST);
            packets.entry(link).or_default().extend(short.map(packet));
        }
    }
    packets
}

#[test]
fn expressions_match_what_libpcap_says_in_captures_of_others() {
    let test = "expressions_match_what_libpcap_says_in_captures_of_others";
    let libpcap = match Libpcap::open() {
        Ok(libpcap) => libpcap,
        Err(reason) => return skip(test, &reason),
    };
    let folders = std::env::var("PACELINE_CAPTURES").unwrap_or_default();
    let folders = folders.split(':').filter(|folder| !folder.is_empty()).chain([GOPACKET]);
    let mut captures = Vec::new();
    folders.for_each(|folder| captures_in(Path::new(folder), &mut captures));
    if captures.is_empty() {
        return skip(
            test,
            &"no captures: install golang-github-google-gopacket-dev, or set PACELINE_CAPTURES",
        );
    }
    captures_in(&root().join("examples"), &mut captures);
    let packets = packets(&captures);
    let text = fs::read_to_string(root().join("tests/classic/expressions.txt")).expect("it is there");
    let expressions: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();

    let (mut programs, mut compared, mut matched) = (0u64, 0u64, 0u64);
    for ((link_type, big_endian), packets) in &packets {
        for expression in &expressions {
            let source = classic::Packets::Capture { big_endian: *big_endian };
            let target = Target { link_type: *link_type, packets: source, ..Target::default() };
            // Some link types do not support an expression.
            let Ok(insns) = libpcap.compile(expression, target) else { continue };
            let Ok(filter) = Filter::new(insns, Purpose::UserSpace) else { continue };
            programs += 1;
            let expected = libpcap.prepare(&filter);
            let expected: Vec<_> = packets.iter().map(|(p, wire_len)| expected.run(p, *wire_len)).collect();
            matched += expected.iter().filter(|value| **value != 0).count() as u64;
            for (name, program) in engines(&filter) {
                check(&program, packets, &expected).unwrap_or_else(|(packet, value)| {
                    let expected = expected[packet];
                    panic!("{expression}, link type {link_type}, packet {packet}, {name}: {value}, not {expected}")
                });
                compared += expected.len() as u64;
            }
        }
    }
    let (files, link_types) = (captures.len(), packets.len());
    println!(
        "{programs} programs of {} expressions over {files} captures of {link_types} link types, \
         {matched} matches, {compared} results compared",
        expressions.len()
    );
    assert!(matched > 0, "nothing matched, which shows nothing");
}

/// The XDP program on all engines.
fn engines(filter: &Filter) -> Vec<(AnyEngine, Program)> {
    let options = ConvertOptions::default().rules(Rules::Libpcap);
    let spec = filter.to_xdp("filter", &options).expect("libpcap's programs for files can be converted");
    let verified = verify(&spec, &[], None, &Options::default()).expect("what is converted is safe");
    let load = |engine: AnyEngine| match engine.load(&verified, Vec::new()) {
        Ok(program) => (engine, program),
        Err(error) => panic!("{engine}: {error}"),
    };
    AnyEngine::available().map(load).collect()
}

/// Runs a program over packets; returns the first packet with another result, and the results.
fn check(program: &Program, packets: &Packets, expected: &[u32]) -> Result<(), (usize, u64)> {
    let (mut burst, mut host) = (Burst::new(1), Host::default());
    for (index, ((packet, wire_len), expected)) in packets.iter().zip(expected).enumerate() {
        burst.clear();
        burst.push(packet, FrameMeta::default()).expect("it fits");
        let mut frame = burst.frame_mut(0);
        frame.set_metadata(&wire_len.to_ne_bytes()).expect("four bytes are metadata");
        let value = program.run_raw(&mut frame, &mut host).expect("it is safe");
        if value != u64::from(*expected) {
            return Err((index, value));
        }
    }
    Ok(())
}
