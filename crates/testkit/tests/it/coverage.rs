//! Counts of coverage are those of an interpreter that sees each instruction, on every engine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use paceline::coverage::{BranchCount, Counting, Report};
use paceline::isa::{AluOp, Code, Condition, Insn, Operand, Reg, Size, Width, decode};
use paceline::{Burst, Engine, FrameMeta, Host, LoadOptions, Object, ProgramKind, ProgramSpec, TimeSource};
use paceline_testkit::AnyEngine;
use paceline_testkit::generate::{Generated, Mix};
use paceline_testkit::object_runs::{files_below, packets_of, pool};
use paceline_testkit::random::{self, Purpose};

const ENGINES: [AnyEngine; 4] = AnyEngine::ALL;

fn host() -> Host {
    let mut host = Host::default();
    host.seed(7);
    host.set_time(TimeSource::Packets);
    host.set_trace(std::io::sink());
    host
}

fn burst(bytes: &[u8]) -> Burst {
    let mut burst = Burst::new(1);
    burst
        .push(bytes, FrameMeta { timestamp_ns: 1_000, original_len: bytes.len() as u32, interface: 0 })
        .expect("room");
    burst
}

/// How often each slot ran and each jump went each way, as an observer sees it.
struct Observed {
    insns: Vec<u64>,
    taken: Vec<u64>,
}

fn observe(object: &Object, name: &str, packets: &[Vec<u8>]) -> Observed {
    let collection = object.load(&LoadOptions::default().engine(Engine::Plain)).expect("maps");
    let program = collection.program_unverified(Some(name)).expect("it binds");
    let slots = program.spec().insns.len();
    let (mut insns, mut taken) = (vec![0; slots], vec![0; slots]);
    let mut host = host();
    for packet in packets {
        let mut burst = burst(packet);
        host.arrive(&burst);
        let mut before = None;
        let run = program.run_observed(&mut burst.frame_mut(0), &mut host, |observed| {
            insns[observed.slot] += 1;
            if let Some((slot, insn)) = before.replace((observed.slot, *observed.insn().expect("one")))
                && let Insn::JumpIf { .. } = insn
                && insn.jump_target(slot) == Some(observed.slot as i64)
            {
                taken[slot] += 1;
            }
        });
        run.expect("no fault");
    }
    Observed { insns, taken }
}

/// Checks the counts of one program; false if it does not load.
fn check(what: &str, object: &Object, name: &str, packets: &[Vec<u8>]) -> bool {
    let loaded = object.load(&LoadOptions::default());
    if !loaded.is_ok_and(|collection| collection.program(Some(name)).is_ok()) {
        return false;
    }
    let seen = observe(object, name, packets);
    for counting in [Counting::Plain, Counting::Atomic] {
        let with_counters =
            object.clone().with_coverage(counting).unwrap_or_else(|error| panic!("{what}: {error}"));
        for engine in ENGINES {
            let collection = engine.collection(&with_counters, LoadOptions::default()).expect("maps");
            let program = engine
                .program(&collection, name)
                .unwrap_or_else(|error| panic!("{what} on {engine}: {error}"));
            let mut host = host();
            for packet in packets {
                let mut burst = burst(packet);
                host.arrive(&burst);
                program.run_burst(&mut burst, &mut host).expect("no fault");
            }
            let counts = collection.coverage();
            let counts = counts.iter().find(|counts| counts.program.name == name).expect("its counts");
            let code = decode(&counts.program.insns).expect("valid");
            for (slot, insn) in code.iter() {
                assert_eq!(
                    counts.insns[slot], seen.insns[slot],
                    "{what} on {engine}: instruction {slot}, {insn}"
                );
            }
            for BranchCount { slot, taken, not_taken } in &counts.branches {
                // A jump to the next instruction takes both sides to one place.
                if code.get(*slot).and_then(|insn| insn.jump_target(*slot)) != Some(*slot as i64 + 1) {
                    let expected = (seen.taken[*slot], seen.insns[*slot] - seen.taken[*slot]);
                    assert_eq!((*taken, *not_taken), expected, "{what} on {engine}: jump {slot}");
                }
            }
        }
    }
    true
}

fn check_all(files: &[PathBuf], packets: &[Vec<u8>]) -> usize {
    let mut checked = 0;
    for path in files {
        let Ok(object) = Object::open(path) else { continue };
        let names: Vec<_> = object.programs().iter().map(|program| program.name.clone()).collect();
        checked += names
            .iter()
            .filter(|name| check(&format!("{} {name}", path.display()), &object, name, packets))
            .count();
    }
    checked
}

fn packets(count: usize) -> Vec<Vec<u8>> {
    packets_of(pool(), 5, count).into_iter().map(|input| input.data).collect()
}

#[test]
fn counts_are_those_of_an_observer_on_every_engine() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let examples = files_below(&[root.join("examples")], &["o"]);
    assert!(check_all(&examples, &packets(60)) >= 14);
}

/// Programs whose registers are all in use; and those of every feature.
#[test]
fn counts_of_random_programs_are_those_of_an_observer() {
    let programs = std::env::var("PACELINE_COVERAGE").map_or(150, |count| count.parse().expect("a number"));
    let packets = packets(4);
    let mut checked = [0, 0];
    for seed in 0..programs {
        let generated = Generated::new(seed, &Mix::default(), 1);
        let mut object = Object::of_program(generated.program());
        object.specs_mut().maps = generated.maps();
        checked[0] += u64::from(check(&format!("generated {seed}"), &object, "generated", &packets));

        let Some(program) = random::candidate(seed, Purpose::Run).program() else { continue };
        let mut object = Object::of_program(program);
        object.specs_mut().maps = random::maps();
        object.specs_mut().btf = Some(Arc::new(random::btf().clone()));
        checked[1] += u64::from(check(&format!("random {seed}"), &object, "candidate", &packets));
    }
    assert!(checked.iter().all(|checked| *checked > programs / 2), "{checked:?} of {programs}");
}

/// Engines count, so neither the program nor its proof grows: a jump may be as long as one can be.
#[test]
fn a_program_with_a_jump_as_long_as_possible_is_counted() {
    let (width, dst, condition) = (Width::W64, Reg::R2, Condition::Eq);
    let jump = |imm, offset| Insn::JumpIf { width, condition, dst, src: Operand::Imm(imm), offset };
    let set = |dst, imm| Insn::Alu { width, op: AluOp::Mov, dst, src: Operand::Imm(imm) };
    let queue = Insn::Load { size: Size::W, signed: false, dst, base: Reg::R1, offset: 16 };
    let mut code: Code = [set(Reg::R0, 2), set(Reg::R3, 1), queue, jump(77, 32_760)].into_iter().collect();
    for block in 0..4_095 {
        code.push(jump(100 + block, 6));
        (0..7).for_each(|_| code.push(set(Reg::R3, 1)));
    }
    code.push(Insn::Exit);
    let spec = ProgramSpec::new("far", ProgramKind::ALL[0], code.encode().expect("encodings"));
    let object = Object::of_program(spec);
    assert!(check("far", &object, "far", &packets(2)));
    let work = |object: &Object| {
        let collection = object.load(&LoadOptions::default()).expect("maps");
        *collection.program(None).expect("it verifies").verified().stats()
    };
    assert_eq!(work(&object), work(&object.clone().with_coverage(Counting::Plain).expect("counters")));
}

#[test]
fn lines_and_branches_of_an_example_are_counted() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/firewall.o");
    let object = Object::open(path).expect("an object").with_coverage(Counting::Plain).expect("counters");
    let collection = object.load(&LoadOptions::default()).expect("maps");
    let program = collection.program(None).expect("it verifies");
    let arp = paceline::packet::build("eth / arp").expect("a packet");
    for _ in 0..3 {
        program.run_burst(&mut burst(&arp), &mut host()).expect("no fault");
    }
    let report = Report::new(&collection.coverage());
    let file = &report.files["./examples/firewall.bpf.c"];
    let line = |number: u32| file.lines[&number].count;
    // The function's first line, the look-up of the counter; the denied services, which no ARP packet comes to.
    assert_eq!((line(400), line(408), line(189)), (3, 3, 0));
    assert_eq!((file.functions["firewall"].count, file.functions["is_denied"].count), (3, 0));
    let mut lcov = Vec::new();
    report.write_lcov(&mut lcov, "t").expect("memory");
    let lcov = String::from_utf8(lcov).expect("text");
    for part in [
        "TN:t\nSF:./examples/firewall.bpf.c\n",
        "FNDA:3,firewall\n",
        "DA:408,3\n",
        "DA:189,0\n",
        "end_of_record\n",
    ] {
        assert!(lcov.contains(part), "no {part:?} in {lcov}");
    }
}

/// Lines and branches as clang counts them natively: (line, count) and (line, [count, count]), from a tracefile.
type Counted = (BTreeMap<u32, u64>, BTreeMap<u32, Vec<u64>>);

fn counted(tracefile: &str) -> Counted {
    let (mut lines, mut branches) = Counted::default();
    for line in tracefile.lines() {
        let numbers = |text: &str| -> Vec<u64> { text.split(',').map(|n| n.parse().unwrap_or(0)).collect() };
        if let Some(rest) = line.strip_prefix("DA:") {
            lines.insert(numbers(rest)[0] as u32, numbers(rest)[1]);
        } else if let Some(rest) = line.strip_prefix("BRDA:") {
            branches.entry(numbers(rest)[0] as u32).or_default().push(numbers(rest)[3]);
        }
    }
    (lines, branches)
}

fn command(program: &str, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    command
}

fn done(mut command: Command) -> Option<Vec<u8>> {
    let done = command.output().ok()?;
    assert!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Some(done.stdout)
}

/// The same source and packets, compiled for this machine with clang's own coverage.
#[test]
fn counts_are_those_of_clangs_source_coverage() {
    const TEST: &str = "counts_are_those_of_clangs_source_coverage";
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/source/coverage.c");
    let source = source.to_str().expect("a name");
    let bpf = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-c", source, "-o", "program.o"];
    let native =
        ["-O2", "-DNATIVE", "-fprofile-instr-generate", "-fcoverage-mapping", source, "-o", "native"];
    let tools = ["clang-19", "llvm-profdata-19", "llvm-cov-19"];
    if let Some(tool) = tools.iter().find(|tool| Command::new(tool).arg("--version").output().is_err()) {
        paceline_testkit::skip(TEST, &format!("no {tool}"));
        return;
    }
    // clang may be there without the headers, or without the runtime library of its coverage.
    for arguments in [&bpf[..], &native] {
        let built = command("clang-19", arguments, folder).output().expect("it starts");
        if !built.status.success() {
            let errors = String::from_utf8_lossy(&built.stderr);
            paceline_testkit::skip(TEST, &errors.lines().next().unwrap_or("clang-19 fails"));
            return;
        }
    }

    let mut rng = fastrand::Rng::with_seed(1);
    let byte = |rng: &mut fastrand::Rng| [rng.u8(..), rng.u8(..8), 9][rng.usize(..3)];
    let packets: Vec<Vec<u8>> =
        (0..2_000).map(|_| (0..[20, 32, 40, 64][rng.usize(..4)]).map(|_| byte(&mut rng)).collect()).collect();
    let input: Vec<u8> = packets
        .iter()
        .flat_map(|packet| [&(packet.len() as u32).to_le_bytes()[..], packet].concat())
        .collect();
    std::fs::write(folder.join("packets"), input).expect("a file");
    let mut run = command("./native", &[], folder);
    run.stdin(std::fs::File::open(folder.join("packets")).expect("a file")).env("LLVM_PROFILE_FILE", "raw");
    let verdicts = done(run).expect("it starts");
    done(command("llvm-profdata-19", &["merge", "-o", "profile", "raw"], folder));
    let export = ["export", "-format=lcov", "-instr-profile=profile", "native"];
    let theirs =
        counted(&String::from_utf8_lossy(&done(command("llvm-cov-19", &export, folder)).expect("it starts")));

    let object = Object::open(folder.join("program.o"))
        .expect("an object")
        .with_coverage(Counting::Plain)
        .expect("counters");
    let collection = object.load(&LoadOptions::default()).expect("maps");
    let program = collection.program(None).expect("it verifies");
    let mut codes = String::new();
    for packet in &packets {
        let mut burst = burst(packet);
        program.run_burst(&mut burst, &mut host()).expect("no fault");
        codes += &format!("{}\n", burst.frame(0).code());
    }
    assert_eq!(codes.as_bytes(), verdicts, "both do the same");
    let mut tracefile = Vec::new();
    Report::new(&collection.coverage()).write_lcov(&mut tracefile, "").expect("memory");
    let ours = counted(&String::from_utf8_lossy(&tracefile));
    let text = std::fs::read_to_string(source).expect("the source");
    let mut compared = (0, 0);
    for (number, text) in (1..).zip(text.lines()).take_while(|(_, text)| !text.contains("#include")) {
        // The compiler neither removes nor merges these lines; others it may move, as the condition of a loop to its end.
        if text.trim().starts_with("EFFECT(") {
            assert_eq!(ours.0.get(&number), theirs.0.get(&number), "line {number}: {text}");
            compared.0 += 1;
        }
        let sorted = |counts: &Counted| {
            let mut counts = counts.1.get(&number).cloned().unwrap_or_default();
            counts.sort_unstable();
            counts
        };
        // The compiler chooses the side that jumps.
        let (ours, theirs) = (sorted(&ours), sorted(&theirs));
        if text.trim().starts_with("if (") && ours.len() == theirs.len() && ours.len() == 2 {
            assert_eq!(ours, theirs, "branches of line {number}: {text}");
            compared.1 += 1;
        }
    }
    assert!(compared.0 >= 13 && compared.1 >= 5, "{compared:?} lines and branches are compared");
}
