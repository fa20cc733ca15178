//! Counts of lines are those that programs count themselves, in `.bss`.
//!
//! Stepping through the program tells which instructions increment which element of `C`, and the line that each of them has. The compiler
//! merges the ends of two ways, `K(3);` and `K(4);` say, to one increment by an address that it computes: this code is of no one line,
//! and what it does is not compared.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use paceline::coverage::{Counting, Report};
use paceline::{Burst, Engine, FrameMeta, Host, LoadOptions, Object, TimeSource};
use paceline_engine::Steer;
use paceline_isa::{Insn, decode};
use paceline_spec::ProgramSpec;
use paceline_testkit::compiled::{Compiler, compile_text, compilers};
use paceline_testkit::counted::{COUNTERS, CountedProgram, PACKET};

/// Packets whose bytes are small numbers, as the programs' conditions compare with these.
fn packets(seed: u64, count: usize) -> Vec<Vec<u8>> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut byte = || [rng.u8(..), rng.u8(..6), rng.u8(..12), 0][rng.usize(..4)];
    (0..count).map(|_| (0..PACKET).map(|_| byte()).collect()).collect()
}

fn host() -> Host {
    let mut host = Host::default();
    host.set_time(TimeSource::Packets);
    host
}

fn burst(packet: &[u8]) -> Burst {
    let mut burst = Burst::new(1);
    burst.push(packet, FrameMeta::default()).expect("room");
    burst
}

/// The report of a program's runs, and what is in `C` after them; the reason if it does not verify.
fn run(
    object: &Object,
    name: &str,
    engine: Engine,
    packets: &[Vec<u8>],
) -> Result<(Report, Vec<u64>), String> {
    let object = object.clone().with_coverage(Counting::Plain).map_err(|error| error.to_string())?;
    let collection =
        object.load(&LoadOptions::default().engine(engine)).map_err(|error| error.to_string())?;
    let program = collection.program(Some(name)).map_err(|error| error.to_string())?;
    let mut host = host();
    for packet in packets {
        let mut burst = burst(packet);
        program.run_burst(&mut burst, &mut host).expect("no fault");
    }
    let bss = collection.maps().iter().find(|map| map.spec().name.ends_with(".bss")).expect("variables");
    let value = bss.lookup(&[0; 4]).expect("one element");
    let counters = value.chunks_exact(8).map(|bytes| u64::from_ne_bytes(bytes.try_into().expect("8")));
    Ok((Report::new(&collection.coverage()), counters.collect()))
}

/// Slots that follow an entry of the line information, and that a jump from another line leads to: they are none of the entry's code.
fn slots_without_line(spec: &ProgramSpec) -> BTreeSet<usize> {
    let code = decode(&spec.insns).expect("valid");
    let line = |slot: usize| spec.line_of(slot).map_or((0, 0), |line| (line.slot, line.line));
    let mut without = BTreeSet::new();
    let mut known = None;
    while known != Some(without.len()) {
        known = Some(without.len());
        for (slot, insn) in code.iter() {
            let Some(target) = insn.jump_target(slot).map(|target| target as usize) else { continue };
            let entry = line(target);
            if entry.0 != target && (entry.1 != line(slot).1 || without.contains(&slot)) {
                without.extend((target..code.len()).take_while(|slot| line(*slot).0 == entry.0));
            }
        }
    }
    without
}

/// By line: how often instructions of the line increment which element of `C`; and the elements that are incremented by an instruction
/// that increments others too, or is of no line.
fn step(object: &Object, packets: &[Vec<u8>]) -> (BTreeMap<(u32, usize), u64>, BTreeSet<usize>) {
    let collection = object.load(&LoadOptions::default().engine(Engine::Plain)).expect("maps");
    let program = collection.program_unverified(Some("main_prog")).expect("it binds");
    let bss = collection.maps().iter().find(|map| map.spec().name.ends_with(".bss")).expect("variables");
    let base = bss.for_programs().direct_value(0).expect("one element").as_ptr() as u64;
    let mut increments: BTreeMap<(u32, usize), BTreeMap<usize, u64>> = BTreeMap::new();
    let mut lines: BTreeMap<(u32, usize), u32> = BTreeMap::new();
    let (mut without_line, mut computed) = (BTreeMap::new(), BTreeSet::new());
    let mut host = host();
    for packet in packets {
        let mut burst = burst(packet);
        let run = program.run_steered(&mut burst.frame_mut(0), &mut host, |observed| {
            if let Some(&Insn::Store { base: to, offset, .. }) = observed.insn() {
                let address = observed.registers[usize::from(to.number())].wrapping_add(offset as u64);
                let counter = (address.wrapping_sub(base) / 8) as usize;
                if counter < COUNTERS {
                    let (place, spec) = ((observed.program_id(), observed.slot), observed.program());
                    without_line.entry(place.0).or_insert_with(|| slots_without_line(spec));
                    *increments.entry(place).or_default().entry(counter).or_default() += 1;
                    // From the start of `C`: any other address is one that the compiler computes for several elements.
                    if offset as u64 != 8 * counter as u64 {
                        computed.insert(counter);
                    }
                    lines.insert(place, spec.line_of(observed.slot).map_or(0, |line| line.line));
                }
            }
            Steer::Follow
        });
        run.expect("no fault");
    }
    let (mut of_lines, mut merged) = (BTreeMap::new(), computed);
    for (place, of) in increments {
        if of.len() > 1 || without_line[&place.0].contains(&place.1) {
            merged.extend(of.keys().copied());
        }
        for (counter, times) in of {
            *of_lines.entry((lines[&place], counter)).or_default() += times;
        }
    }
    (of_lines, merged)
}

/// Lines whose counts were compared: those that differ, and the number of all.
#[derive(Debug, Default)]
struct Compared {
    differ: Vec<String>,
    all: usize,
}

impl Compared {
    fn lines(&mut self, what: &str, report: &Report, lines: &[(u32, usize)], counters: &[u64]) {
        let file = report.files.values().next().expect("one file");
        for &(line, counter) in lines {
            // The compiler merges lines with others, which leaves them without code.
            let Some(found) = file.lines.get(&line) else { continue };
            self.all += 1;
            if found.count != counters[counter] {
                let (count, text, right) = (found.count, &found.text, counters[counter]);
                self.differ.push(format!("{what}: line {line}, {text}: {count}, and not {right}"));
            }
        }
    }
}

/// A program in C with counters of its own, on every engine; and the sides of branches that no packet took.
#[test]
fn counts_of_lines_are_those_of_a_program_in_c() {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/counted");
    let source = std::fs::read_to_string(fixture.with_extension("bpf.c")).expect("its source");
    let of_line = |(number, text): (u32, &str)| {
        Some((number, text.trim().strip_prefix("K(")?.strip_suffix(");")?.parse().expect("a number")))
    };
    let lines: Vec<(u32, usize)> = (1..).zip(source.lines()).filter_map(of_line).collect();
    let object = Object::open(fixture.with_extension("o")).expect("an object");
    for engine in [Engine::Jit, Engine::Threaded, Engine::Plain] {
        let mut compared = Compared::default();
        let (report, counters) = run(&object, "counted", engine, &packets(3, 400)).expect("it verifies");
        compared.lines(&engine.to_string(), &report, &lines, &counters);
        // Two of 16 are merged.
        assert_eq!((compared.all, compared.differ), (14, Vec::new()));
    }
    let (report, _) = run(&object, "counted", Engine::Jit, &[vec![0; 64]]).expect("it verifies");
    let file = report.files.values().next().expect("one file");
    let missing = |text: &str| -> Vec<String> {
        let line = file.lines.values().find(|line| line.text.trim() == text).expect("the line");
        line.missing_sides().collect()
    };
    let number = |text: &str| (1..).zip(source.lines()).find(|(_, line)| line.trim() == text).expect("it").0;
    let never = format!("the branch never leads to line {}", number("K(4);"));
    assert_eq!(missing("if (x > 100)"), [never]);
}

/// Random C over loops, inlined and own functions, callbacks and a tail call, by each compiler and level.
#[test]
fn counts_of_lines_are_those_of_the_program() {
    const TEST: &str = "counts_of_lines_are_those_of_the_program";
    let versions: Vec<u32> =
        compilers().iter().copied().filter(|version| [14, 19].contains(version)).collect();
    if versions.is_empty() {
        paceline_testkit::skip(TEST, &"no clang-14 or clang-19");
        return;
    }
    let first: u64 = std::env::var("PACELINE_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    let programs: u64 = std::env::var("PACELINE_COUNTED").map_or(4, |count| count.parse().expect("a number"));
    let folder = tempfile::tempdir().expect("a folder");
    let (mut counted, mut computed, mut refused) =
        (Compared::default(), Compared::default(), BTreeMap::new());
    let mut merged_lines = 0;
    for seed in first..first + programs {
        let program = CountedProgram::generate(seed);
        for (&version, level) in versions.iter().flat_map(|version| [1, 2, 3].map(|level| (version, level))) {
            let compiler = Compiler { version, cpu: 3, level };
            let what = format!("program {seed}, clang-{version} -O{level}");
            let object = compile_text(&program.text, compiler, folder.path()).expect("it compiles");
            let engine = [Engine::Jit, Engine::Threaded, Engine::Plain][seed as usize % 3];
            let packets = packets(seed, 200);
            let (report, counters) = match run(&object, "main_prog", engine, &packets) {
                Ok(done) => done,
                Err(reason) => {
                    refused.insert(what, reason);
                    continue;
                }
            };
            let (stepped, merged) = step(&object, &packets);
            let of_one_line = |(line, counter): &&(u32, usize)| {
                let by_others = stepped.keys().any(|(other, of)| of == counter && other != line);
                !merged.contains(counter) && !by_others
            };
            let lines: Vec<_> = program.lines.iter().filter(of_one_line).copied().collect();
            merged_lines += program.lines.len() - lines.len();
            for line in &lines {
                let steps = stepped.get(line).copied().unwrap_or(0);
                assert_eq!(steps, counters[line.1], "{what}, line {}: both count the same", line.0);
            }
            counted.lines(&what, &report, &lines, &counters);
            computed.lines(&what, &report, &program.computations, &counters);
        }
    }
    eprintln!(
        "{} lines with a counter, {} differ; {merged_lines} are merged",
        counted.all,
        counted.differ.len()
    );
    eprintln!("{} lines with a computation, {} differ", computed.all, computed.differ.len());
    eprintln!("{} refused: {:?}", refused.len(), refused.iter().next());
    let show = std::env::var("PACELINE_SHOW").is_ok();
    counted.differ.iter().chain(computed.differ.iter().filter(|_| show)).for_each(|line| eprintln!("{line}"));
    assert!(counted.differ.is_empty(), "{:#?}", counted.differ);
    assert!(counted.all >= 10 * merged_lines, "{merged_lines} of {} lines are merged", counted.all);
    assert!(computed.all >= 50 * computed.differ.len(), "{:#?}", computed.differ);
    assert!(refused.len() * 4 < programs as usize * versions.len() * 3, "{refused:?}");
}
