//! The shipped objects and captures, changed at random: whatever is in them, every command comes to an end without a
//! panic.
//!
//! `PACELINE_MUTATIONS` is the number of mutants of objects and of captures; `PACELINE_SEED` makes others.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use fastrand::Rng;
use paceline::capture::{CaptureReader, CaptureWriter};
use paceline::diagnosis::{Diagnosis, refused, render};
use paceline::verifier::{Observer, Options};
use paceline::{
    Burst, Collection, FrameMeta, Host, LoadOptions, Object, Outputs, ProgramSpec, ReplayOptions, Tally,
    Verdict, replay,
};

use crate::commands::dump::Listing;
use crate::commands::inspect::{Survey, write_survey};
use crate::commands::test::test_file;
use crate::maps::{self, MapsAsJson};

const MUTANTS: u64 = 300;

/// No mutant takes this long, however slow the machine is.
const LONGEST: Duration = Duration::from_secs(10);

/// Values that have broken parsers before.
const TEMPTING: [u32; 10] = [0, 1, 7, 8, 0x7fff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, u32::MAX];

/// Enough for the programs that are shipped.
fn options() -> LoadOptions {
    LoadOptions::default().cpus(2).map_memory(16 << 20).budget(20_000).engine(paceline::Engine::Plain)
}

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).ok().map_or(otherwise, |text| text.parse().expect("a number"))
}

fn files(folder: &str, extension: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let paths = fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|e| e == extension)).collect();
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).expect("the file"))).collect()
}

/// Changes a few bytes, or cuts, or copies a piece elsewhere.
fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.usize(1..=6) {
        if bytes.is_empty() {
            return;
        }
        let at = rng.usize(..bytes.len());
        match rng.u8(..10) {
            0..4 => bytes[at] = rng.u8(..),
            4..6 => bytes[at] ^= 1 << rng.u8(..8),
            6..9 => {
                let value = rng.choice(TEMPTING).expect("there are some").to_ne_bytes();
                let width = rng.choice([1, 2, 4]).expect("there are some");
                let at = at / width * width;
                bytes.iter_mut().skip(at).take(width).zip(value).for_each(|(byte, new)| *byte = new);
            }
            _ if rng.u8(..4) == 0 => bytes.truncate(at),
            _ => {
                let len = rng.usize(1..=64).min(bytes.len() - at);
                let to = rng.usize(..=bytes.len() - len);
                bytes.copy_within(at..at + len, to);
            }
        }
    }
}

/// Mutates files in turn, and watches the clock.
fn for_each_mutant(files: &[(PathBuf, Vec<u8>)], seed: u64, mut check: impl FnMut(&[u8], &mut Rng)) {
    for mutant in 0..setting("PACELINE_MUTATIONS", MUTANTS) {
        let (path, original) = &files[mutant as usize % files.len()];
        let mut rng = Rng::with_seed(setting("PACELINE_SEED", seed).wrapping_add(mutant));
        let mut bytes = original.clone();
        mutate(&mut bytes, &mut rng);
        let start = Instant::now();
        let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&bytes, &mut rng)));
        assert!(checked.is_ok(), "mutant {mutant} of {} panics", path.display());
        assert!(start.elapsed() < LONGEST, "mutant {mutant} of {} hangs", path.display());
    }
}

#[test]
fn mutated_objects_end_every_command_without_a_panic() {
    let mut objects = files("../../examples", "o");
    objects.extend(files("tests/fixtures", "o"));
    assert!(objects.len() > 8);
    let (mut parsed, mut ran) = (0u64, 0u64);
    for_each_mutant(&objects, 1, |bytes, rng| {
        let Ok(object) = Object::parse(bytes) else { return };
        parsed += 1;
        look_at(&object);
        let Ok(collection) = object.load(&options()) else { return };
        ran += u64::from(run_all(&collection, rng));
        maps::write_text(&mut io::sink(), &collection).expect("a sink");
        serde_json::to_writer(io::sink(), &MapsAsJson(&collection, maps::Form::Both)).expect("a sink");
    });
    // Mutants that are all refused by the first check would test nothing else.
    assert!(parsed > 0 && ran > 0, "{parsed} mutants were objects, {ran} had programs that ran");
}

fn look_at(object: &Object) {
    let survey = Survey::of("mutant", object, &options());
    write_survey(&mut io::sink(), &survey).expect("a sink");
    let _ = survey.to_json();
    for program in object.programs() {
        let listing = Listing::new(object, program, None);
        listing.write_text(&mut io::sink(), true).expect("a sink");
        let _ = listing.to_json();
        judge(object, program);
    }
}

/// Verifies a program, and renders why it is refused if it is.
fn judge(object: &Object, program: &ProgramSpec) {
    struct Quiet;
    impl Observer for Quiet {}
    let options = Options::default().max_instructions(10_000);
    if let Err(refusal) = object.verify_observed(program, &options, &mut Quiet) {
        let diagnosis = Diagnosis::new("mutant", object, &refusal);
        for color in [false, true] {
            assert!(render(&diagnosis, color).contains("mutant"), "{diagnosis}");
        }
        let _ = refused(&diagnosis, Duration::ZERO);
    }
}

/// Runs every program over a few packets; whether there was one that could run.
fn run_all(collection: &Collection, rng: &mut Rng) -> bool {
    let mut any = false;
    let mut host = Host::default();
    host.set_trace(io::sink());
    for spec in collection.object().programs() {
        let Ok(program) = collection.program_unverified(Some(&spec.name)) else { continue };
        any = true;
        let mut burst = Burst::default();
        for len in [14, 60, 100, 1500] {
            let packet: Vec<u8> = (0..len).map(|_| rng.u8(..)).collect();
            burst.push(&packet, FrameMeta::default()).expect("there is room");
        }
        let _ = program.run_burst(&mut burst, &mut host);
    }
    any
}

#[test]
fn mutated_test_files_are_read_or_refused_with_a_place() {
    let tests = files("../../examples/tests", "toml");
    assert!(tests.len() > 8);
    let (mut read, mut refused) = (0, 0);
    for_each_mutant(&tests, 3, |bytes, _| match test_file(&String::from_utf8_lossy(bytes)) {
        Ok(()) => read += 1,
        Err(message) => {
            let place = message.strip_prefix("mutant:").and_then(|rest| rest.split_once(": "));
            let place = place.and_then(|(place, _)| place.split_once(':'));
            let numbers = place
                .and_then(|(line, column)| Some((line.parse::<u32>().ok()?, column.parse::<u32>().ok()?)));
            assert!(numbers.is_some_and(|(line, column)| line > 0 && column > 0), "{message}");
            refused += 1;
        }
    });
    assert!(read > 0 && refused > 0, "{read} mutants were read, {refused} refused");
}

#[test]
fn mutated_captures_are_run_up_to_where_they_are_bad() {
    let mut captures = files("../../examples", "pcap");
    captures.extend(files("../../examples", "pcapng"));
    assert_eq!(captures.len(), 2);
    let object = Object::open(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/verdicts.o"))
        .expect("verdicts");
    let collection = object.load(&options()).expect("verdicts");
    let program = collection.program_unverified(None).expect("verdicts");
    let mut packets = 0;
    for_each_mutant(&captures, 2, |bytes, _| {
        let Ok(mut reader) = CaptureReader::new(bytes) else { return };
        let (mut passed, mut dropped) = (Vec::new(), Vec::new());
        let header = reader.header().clone();
        let outputs = Outputs {
            passed: Some(CaptureWriter::new(&mut passed, &header).expect("memory")),
            dropped: Some(CaptureWriter::new(&mut dropped, &header).expect("memory")),
        };
        let observe = |_: &Tally| ControlFlow::Continue(());
        let (tally, _) =
            replay(&program, &mut Host::default(), &mut reader, outputs, ReplayOptions::default(), observe);
        packets += tally.packets;
        let lost = tally.of(Verdict::Drop) + tally.of(Verdict::Aborted);
        assert_eq!(count(&dropped), lost, "what was dropped can be read again");
        assert_eq!(count(&passed), tally.packets - lost, "what was passed can be read again");
    });
    assert!(packets > 0);
}

/// The packets of a capture, which must be whole.
fn count(bytes: &[u8]) -> u64 {
    let mut reader = CaptureReader::new(bytes).expect("a header");
    let mut burst = Burst::default();
    while reader.fill(&mut burst).expect("whole packets") > 0 {}
    reader.packets()
}
