//! Truncated and randomly changed objects: an error or a result, without panics, in bounded time and memory.
//!
//! `PACELINE_MUTATIONS` sets the number of changed copies of each fixture and example, 150 by default, and `PACELINE_MUTATE`
//! selects files by a part of their path. The seed is fixed, and a failure names the copy.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::common::{examples, fixture, fixtures, section};
use paceline_btf::Btf;
use paceline_object::{Object, ObjectOptions};
use paceline_spec::InitialValue;

/// Maximum time for one object, in a debug build on a busy machine.
const LONGEST: Duration = Duration::from_secs(60);
/// Maximum memory of the whole test in KiB.
const MOST_MEMORY: u64 = 1 << 20;

/// Everything that a caller does with an object.
fn exercise(bytes: &[u8], target: Option<&Btf>) {
    let _ = Object::needs(bytes);
    let options = ObjectOptions::default().target_btf(target).variables(true);
    let Ok(object) = Object::parse_with(bytes, &options) else { return };
    for program in &object.programs {
        assert!(program.functions.is_sorted_by_key(|f| f.start), "functions are in order");
        assert!(program.lines.is_sorted_by(|a, b| a.slot < b.slot), "lines are in order, one for each slot");
        assert!(program.lines.iter().all(|l| l.slot < program.insns.len()), "lines are within the code");
        let variables = &program.variables;
        assert!(variables.is_sorted_by_key(|v| v.slots.start), "variables are in order");
        assert!(variables.iter().all(|v| v.slots.end <= program.insns.len()), "they are within the code");
        assert!(program.poisoned.iter().all(|p| p.slot < program.insns.len()), "poison is within the code");
    }
    let Some(btf) = &object.btf else { return };
    for map in &object.maps {
        for (_, value) in &map.contents {
            match value {
                InitialValue::Bytes(bytes) => drop(btf.decode(map.value_type, bytes)),
                InitialValue::Map(index) => {
                    assert!(*index < object.maps.len(), "maps hold maps that are there")
                }
                InitialValue::Program(_) => {}
            }
        }
        if let Ok(size) = btf.size_of(map.value_type)
            && size <= 1 << 16
            && let Ok(value) = btf.decode(map.value_type, &vec![0x5a; size as usize])
        {
            let _ = btf.encode(map.value_type, &value);
            let _ = value.to_string();
        }
    }
}

/// Runs `exercise` on bytes; a panic or timeout is an error that names the case.
fn check(name: &str, case: &str, bytes: &[u8], target: Option<&Btf>) {
    let start = Instant::now();
    let result = catch_unwind(AssertUnwindSafe(|| exercise(bytes, target)));
    assert!(result.is_ok(), "{name}, {case}: panics");
    let took = start.elapsed();
    assert!(took < LONGEST, "{name}, {case}: takes {took:?}");
}

/// Peak memory of this process in KiB; `None` if the system does not report it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().trim_end_matches(" kB").parse().ok()
}

/// Mutates up to four positions: single bytes, words set to boundary values of lengths and offsets, parts copied over others.
fn mutate(bytes: &mut [u8], random: &mut fastrand::Rng) {
    const WORDS: [u32; 10] = [0, 1, 7, 8, 0xff, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, u32::MAX];
    for _ in 0..random.usize(1..=4) {
        let at = random.usize(..bytes.len());
        match random.u8(..4) {
            0 => bytes[at] = random.u8(..),
            1 => bytes[at] ^= 1 << random.u8(..8),
            2 => {
                let word = match random.bool() {
                    true => WORDS[random.usize(..WORDS.len())],
                    false => random.u32(..bytes.len() as u32 * 2),
                };
                let at = at / 4 * 4;
                if let Some(place) = bytes.get_mut(at..at + 4) {
                    place.copy_from_slice(&word.to_le_bytes());
                }
            }
            _ => {
                let count = random.usize(1..=64).min(bytes.len() - at);
                let from = random.usize(..=bytes.len() - count);
                bytes.copy_within(from..from + count, at);
            }
        }
    }
}

fn target() -> Btf {
    let object = Object::parse(&fixture("core.clang19.o")).expect("the fixture is good");
    Btf::clone(&object.btf.expect("it has types"))
}

#[test]
fn objects_cut_off_anywhere_are_refused_or_read() {
    // Every length for some small objects, some lengths for all.
    for name in ["sections.clang14.o", "externs.clang19.o", "iproute2_maps.clang14.o", "core.clang14.o"] {
        let bytes = fixture(name);
        for end in 0..bytes.len() {
            check(name, &format!("cut at {end}"), &bytes[..end], None);
        }
    }
    for path in fixtures() {
        let bytes = std::fs::read(&path).expect("a fixture");
        for end in (0..bytes.len()).step_by(61) {
            check(&path.display().to_string(), &format!("cut at {end}"), &bytes[..end], None);
        }
        // The section headers are at the end: without them the file is invalid.
        let cut = Object::parse(&bytes[..bytes.len() - 1]);
        assert!(cut.is_err(), "{}: without its last byte", path.display());
    }
}

#[test]
fn objects_changed_at_random_are_refused_or_read() {
    let count = std::env::var("PACELINE_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    let target = target();
    let mut slowest = (Duration::ZERO, String::new());
    let part = std::env::var("PACELINE_MUTATE").unwrap_or_default();
    let chosen = |path: &PathBuf| path.to_string_lossy().contains(&part);
    for path in fixtures().into_iter().chain(examples()).filter(chosen) {
        let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
        let bytes = std::fs::read(&path).expect("a fixture");
        for case in 0..count {
            let mut random = fastrand::Rng::with_seed(case);
            let mut changed = bytes.clone();
            mutate(&mut changed, &mut random);
            let start = Instant::now();
            check(&name, &format!("copy {case}"), &changed, Some(&target).filter(|_| case % 2 == 0));
            slowest = slowest.max((start.elapsed(), format!("{name}, copy {case}")));
        }
    }
    eprintln!("slowest {slowest:?}, most memory {:?} KiB", peak_memory());
    assert!(peak_memory().is_none_or(|peak| peak < MOST_MEMORY), "takes {:?} KiB", peak_memory());
}

#[test]
fn target_types_that_lie_are_refused_or_used() {
    let object = fixture("core.clang19.o");
    let types = section(&object, ".BTF").expect("it has types");
    let count = std::env::var("PACELINE_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(150);
    for case in 0..count {
        let mut changed = types.clone();
        mutate(&mut changed, &mut fastrand::Rng::with_seed(case));
        if let Ok(target) = Btf::parse(&changed) {
            check("core.clang19.o", &format!("types {case}"), &object, Some(&target));
        }
    }
}
