//! libbpf as the oracle: for every fixture, every example and the XDP objects of Debian's xdp-tools and libxdp1, maps and relocated
//! instructions are those that libbpf passes to the kernel.
//!
//! Requires root, `cc` and libbpf-dev (`apt-get install gcc libbpf-dev`); prints SKIP without, or fails with
//! `PACELINE_REQUIRE_ALL=1`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::common::{examples, fixture, fixtures, objects_in, root, section, skip};
use paceline_btf::Btf;
use paceline_isa::RawInsn;
use paceline_object::{CoreProblem, LoadError, Object, ObjectOptions};
use paceline_spec::{MapFlags, MapSpec, ProgramSpec};

/// Objects that libbpf 1.1 or the kernel refuses, with reasons.
const REFUSED: &[(&str, &str)] = &[
    ("big_endian", "is refused by both"),
    ("core_ambiguous", "needs types that the kernel does not have"),
    ("core_local", "needs types that the kernel does not have"),
    ("core_unreachable", "needs types that the kernel does not have"),
    ("cross_section", "calls functions outside of .text"),
    ("iproute2_maps", "has maps that libbpf 1.0 dropped"),
    ("legacy_maps", "has maps that libbpf 1.0 dropped"),
    ("no_types", "has maps that libbpf 1.0 dropped"),
    ("kfuncs", "declares functions otherwise than this kernel has them"),
];

/// Opcode of a two-slot load, whose second slot is a map's number or value offset.
const LD_IMM64: u8 = 0x18;
/// Opcode of a call.
const CALL: u8 = 0x85;

/// The program that prints libbpf's results for an object; built once, because a file that is being written cannot be executed.
fn build_dump() -> Option<&'static PathBuf> {
    static DUMP: OnceLock<Option<PathBuf>> = OnceLock::new();
    DUMP.get_or_init(try_build_dump).as_ref()
}

fn try_build_dump() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/libbpf_dump.c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libbpf_dump");
    let built = Command::new("cc").arg("-o").arg(&program).arg(source).arg("-lbpf").output().ok()?;
    built.status.success().then_some(program)
}

/// libbpf's results for an object.
#[derive(Debug, Default, PartialEq)]
struct Loaded {
    /// Type, key size, value size, entries, flags.
    maps: Vec<[u32; 5]>,
    programs: Vec<(String, Vec<[u8; 8]>)>,
}

/// `None` if libbpf or the kernel refuses the object. `target` is a file with target types; without it, the kernel's are used.
fn libbpf(dump: &Path, object: &Path, target: Option<&Path>) -> Option<Loaded> {
    let out = Command::new(dump).arg(object).args(target).output().expect("the built program runs");
    if !out.status.success() {
        return None;
    }
    let text = String::from_utf8(out.stdout).expect("it prints text");
    let mut loaded = Loaded::default();
    for line in text.lines() {
        let mut words = line.split(' ');
        match words.next() {
            Some("map") => {
                let numbers: Vec<u32> = words.take(5).map(|w| w.parse().expect("a number")).collect();
                loaded.maps.push(numbers.try_into().expect("five numbers"));
            }
            Some("prog") => loaded.programs.push((words.next().expect("a name").to_owned(), Vec::new())),
            Some(hex) => {
                let bytes = u64::from_str_radix(hex, 16).expect("16 hex digits").to_be_bytes();
                loaded.programs.last_mut().expect("a program before").1.push(bytes);
            }
            None => {}
        }
    }
    Some(loaded)
}

/// Paceline's results, in libbpf's terms.
fn ours(object: &Object) -> Loaded {
    Loaded {
        maps: object.maps.iter().map(map_numbers).collect(),
        programs: object.programs.iter().map(|p| (p.name.clone(), slots(p))).collect(),
    }
}

fn map_numbers(map: &MapSpec) -> [u32; 5] {
    [map.kind.number(), map.key_size, map.value_size, map.max_entries, map.flags.0]
}

fn slots(program: &ProgramSpec) -> Vec<[u8; 8]> {
    let in_their_terms = |(slot, insn): (usize, &RawInsn)| match (insn.opcode, insn.src) {
        // By descriptor where Paceline's are by index: 1 for 5, 2 for 6; the number is the same.
        (LD_IMM64, src @ (5 | 6)) => RawInsn { src: src - 4, ..*insn },
        // libbpf 1.3 and later replace calls of missing weak functions; earlier versions call number 0.
        (CALL, 0) if program.poison_at(slot).is_some_and(|p| p.reason.contains("__weak")) => {
            RawInsn { src: 2, imm: 0, ..*insn }
        }
        _ => *insn,
    };
    program.insns.iter().enumerate().map(|insn| in_their_terms(insn).to_le_bytes()).collect()
}

/// Returns the number of programs compared.
fn assert_same(name: &str, object: &Object, mut theirs: Loaded) -> usize {
    // libbpf sets a flag that lets user space map global data, which Paceline does not.
    for map in &mut theirs.maps {
        map[4] &= !MapFlags::MMAPABLE.0;
    }
    let mut ours = ours(object);
    // Programs in sections whose names libbpf 1.0 dropped have no type in libbpf.
    ours.programs.retain(|(name, _)| theirs.programs.iter().any(|(theirs, _)| theirs == name));
    for ((name_a, a), (name_b, b)) in ours.programs.iter().zip(&theirs.programs) {
        assert_eq!(name_a, name_b, "{name}: order of programs");
        for (slot, (a, b)) in a.iter().zip(b).enumerate() {
            assert_eq!(a, b, "{name}: {name_a}, slot {slot}: ours, theirs");
        }
    }
    assert_eq!(ours, theirs, "{name}");
    ours.programs.len()
}

#[test]
fn maps_and_instructions_are_libbpfs() {
    let Some(dump) = build_dump() else { return skip("cc and libbpf-dev") };
    let Ok(kernel) = std::fs::read("/sys/kernel/btf/vmlinux") else { return skip("the kernel's BTF") };
    if !root() {
        return skip("root");
    }
    let kernel = Btf::parse(&kernel).expect("the kernel's BTF is good");
    let options = ObjectOptions::default().target_btf(&kernel);
    let mut compared = 0;
    let debian = objects_in(Path::new("/usr/lib/x86_64-linux-gnu/bpf"));
    for path in fixtures().into_iter().chain(examples()).chain(debian) {
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name").to_owned();
        let refused = REFUSED.iter().any(|(prefix, _)| name.starts_with(prefix));
        let theirs = libbpf(dump, &path, None);
        assert_eq!(theirs.is_none(), refused, "{name}: whether libbpf refuses it");
        let Some(theirs) = theirs else { continue };
        let bytes = std::fs::read(&path).expect("a file that is there");
        let object = Object::parse_with(&bytes, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
        compared += assert_same(&name, &object, theirs);
    }
    eprintln!("compared {compared} programs");
    assert!(compared >= 40, "only {compared} programs were compared");
}

/// Target types that differ from the object's on purpose: members moved, of other sizes and signs, bitfields across words, flavors
/// that agree and flavors that do not.
#[test]
fn core_relocations_are_libbpfs() {
    let Some(dump) = build_dump() else { return skip("cc and libbpf-dev") };
    if !root() {
        return skip("root");
    }
    for target in ["core_target.clang14.o", "core_target.clang19.o"] {
        let types = section(&fixture(target), ".BTF").expect("it has types");
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(target).with_extension("btf");
        std::fs::write(&file, &types).expect("a file can be written");
        let types = Btf::parse(&types).expect("they are good");
        let options = ObjectOptions::default().target_btf(&types);
        for path in fixtures() {
            let name = path.file_name().and_then(|n| n.to_str()).expect("a name").to_owned();
            if !name.starts_with("core_") || name.starts_with("core_target") {
                continue;
            }
            let bytes = std::fs::read(&path).expect("a fixture");
            match (Object::parse_with(&bytes, &options), libbpf(dump, &path, Some(&file))) {
                (Ok(object), Some(theirs)) => assert!(assert_same(&name, &object, theirs) > 1),
                (Err(LoadError::Core { problem, .. }), None) => {
                    assert!(
                        matches!(
                            (name.as_str(), problem),
                            (
                                "core_ambiguous.clang19.o",
                                CoreProblem::OffsetAmbiguity { first: 0, second: 64 }
                            ) | ("core_unreachable.clang19.o", CoreProblem::OutOfRange)
                        ),
                        "{name}"
                    );
                }
                (ours, theirs) => panic!("{name}: ours {}, theirs {}", ours.is_ok(), theirs.is_some()),
            }
        }
    }
}
