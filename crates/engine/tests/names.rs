//! Names of generated code: by address, in `gdb`, in `perf`. The tools run this test binary itself.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::print_stderr, reason = "tests say there what they skip")]

use std::mem::transmute;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use paceline_engine::exec::{
    Arena, Code, CodeBlock, CodeMap, Domain, ExecError, Function, JitSymbols, SourceLine, find,
};

/// Reports a skipped test; fails if everything is required.
fn skip(test: &str, reason: &str) {
    eprintln!("SKIP {test}: {reason}");
    let required = env::var_os("PACELINE_REQUIRE_ALL").is_some_and(|value| value == "1");
    assert!(!required, "{test} must not be skipped: {reason}");
}

/// mov ecx, edi; 1: dec ecx; jnz 1b; nop; mov eax, 42; ret. Offsets 0 to 6 are slots 0 and 1, the rest is slot 2.
const LOOP: [u8; 13] = [0x89, 0xf9, 0xff, 0xc9, 0x75, 0xfc, 0x90, 0xb8, 42, 0, 0, 0, 0xc3];

fn function(name: &str) -> Function {
    let line = |slot, line| SourceLine { slot, file: "counter.bpf.c".into(), line };
    Function {
        name: name.to_owned(),
        start: 0,
        len: LOOP.len() as u32,
        map: CodeMap::new(vec![(0, 0), (2, 1), (6, 2)]),
        lines: [line(0, 11), line(1, 12), line(2, 14)].into(),
    }
}

fn install(arena: &Arena, name: &str) -> CodeBlock {
    arena.install(&Code::new(&LOOP).functions(vec![function(name)])).unwrap()
}

fn call(block: &CodeBlock, rounds: u32) -> u32 {
    // SAFETY: LOOP is a function of this type.
    let function = unsafe { transmute::<*const u8, extern "sysv64" fn(u32) -> u32>(block.as_ptr()) };
    function(rounds)
}

/// Name, offset, slot and line of an address.
fn describe(pc: usize) -> Option<(String, u32, Option<u32>, Option<u32>)> {
    find(pc, |at| (at.function.name.clone(), at.offset, at.slot, at.line.map(|line| line.line)))
}

#[test]
fn code_is_found_until_its_grace_period_is_over() {
    let arena = Arena::new(1 << 20, Domain::new()).unwrap();
    let mut reader = arena.domain().reader();
    let one = install(&arena, "one");
    let two = install(&arena, "two");
    assert_eq!(describe(two.address()), Some(("two".into(), 0, Some(0), Some(11))));
    assert_eq!(describe(one.address() + 5), Some(("one".into(), 5, Some(1), Some(12))));
    assert_eq!(describe(one.address() + 12), Some(("one".into(), 12, Some(2), Some(14))));
    assert_eq!(describe(one.address() + LOOP.len()), None, "a guard byte");
    assert_eq!(describe(one.address() - 1), None);
    assert_eq!(describe(describe as fn(usize) -> _ as usize), None);
    let (address, pin) = (one.address(), reader.pin());
    drop(one);
    arena.domain().collect();
    assert!(describe(address).is_some(), "a worker may still be in it");
    drop(pin);
    arena.domain().collect();
    assert_eq!(describe(address), None);
    assert!(describe(two.address()).is_some());
}

#[test]
fn functions_of_one_block_are_told_apart() {
    let arena = Arena::new(1 << 20, Domain::new()).unwrap();
    let part = |name: &str, start, len| Function { name: name.to_owned(), start, len, ..Function::default() };
    let parts = vec![part("first", 0, 6), part("second", 7, 6)];
    let block = arena.install(&Code::new(&LOOP).functions(parts)).unwrap();
    let names: Vec<_> = [0, 5, 6, 7, 12].map(|at| describe(block.address() + at).map(|found| found.0)).into();
    let expected = [Some("first"), Some("first"), None, Some("second"), Some("second")];
    assert_eq!(names, expected.map(|name| name.map(str::to_owned)));

    for (start, len) in [(0, 14), (14, 0), (u32::MAX, 1)] {
        let outside = vec![part("outside", start, len)];
        let error = arena.install(&Code::new(&LOOP).functions(outside)).unwrap_err();
        assert!(matches!(error, ExecError::FunctionRange { .. }), "{error}");
    }
}

#[test]
fn code_is_found_while_other_code_comes_and_goes() {
    let arena = Arena::new(16 << 20, Domain::new()).unwrap();
    let block = install(&arena, "stays");
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| (0..2000).for_each(|_| drop(install(&arena, "goes"))));
        }
        for _ in 0..20_000 {
            assert_eq!(describe(block.address() + 2).unwrap().0, "stays");
        }
    });
}

/// The workload for the tools: `PACELINE_EXEC_TEST_BURN` milliseconds in generated code.
#[test]
fn burn() {
    let Some(time) = env::var("PACELINE_EXEC_TEST_BURN").ok().and_then(|time| time.parse().ok()) else {
        return;
    };
    JitSymbols::from_env().unwrap().announce().unwrap();
    let arena = Arena::global().unwrap();
    let first = install(arena, "paceline_replaced");
    let address = first.address();
    drop(first);
    arena.domain().collect();
    let block = install(arena, "paceline_counter");
    assert_eq!(block.address(), address, "two names, one after the other, for one address");
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(time) {
        assert_eq!(call(&block, 1_000_000), 42);
    }
}

/// The breakpoint at which `gdb` stops.
#[test]
fn trap() {
    if env::var_os("PACELINE_EXEC_TEST_TRAP").is_none() {
        return;
    }
    JitSymbols::from_env().unwrap().announce().unwrap();
    let code = [0x90, 0xcc, 0x90, 0xb8, 42, 0, 0, 0, 0xc3]; // nop; int3; nop; mov eax, 42; ret
    let line = |slot, line| SourceLine { slot, file: "trap.bpf.c".into(), line };
    let function = Function {
        name: "paceline_trap".to_owned(),
        start: 0,
        len: code.len() as u32,
        map: CodeMap::new(vec![(0, 0), (1, 1), (3, 2)]),
        lines: [line(0, 7), line(1, 8), line(2, 300)].into(),
    };
    let block = Arena::global().unwrap().install(&Code::new(&code).functions(vec![function])).unwrap();
    assert_eq!(call(&block, 0), 42);
}

/// A command that runs one of the tests above in this binary, and writes its files to `folder`.
fn testing(mut tool: Command, test: &str, folder: &Path) -> Command {
    tool.arg(env::current_exe().unwrap()).args(["--exact", test, "--test-threads=1"]);
    tool.env("PACELINE_EXEC_TEST_BURN", "300").env("PACELINE_EXEC_TEST_TRAP", "1");
    tool.env("JITDUMPDIR", folder).env("HOME", folder).current_dir(folder);
    tool
}

fn exists(tool: &str) -> bool {
    Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success())
}

#[test]
fn gdb_names_code_and_its_line() {
    if !exists("gdb") {
        return skip("gdb_names_code_and_its_line", "no gdb");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut gdb = Command::new("gdb");
    gdb.args(["-nx", "-batch", "-ex", "run", "-ex", "backtrace", "-ex", "info symbol $pc", "--args"]);
    let output = testing(gdb, "trap", folder.path()).env("PACELINE_JIT_NAMES", "gdb").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("received signal SIGTRAP"), "{text}");
    assert!(text.contains(" in paceline_trap () at trap.bpf.c:8\n#1 "), "{text}");
    let callers = text.split("#1 ").nth(1).unwrap_or_default();
    assert!(callers.contains("names::call") && callers.contains("tests/names.rs:"), "{text}");
    assert!(text.contains("paceline_trap + 2 in section .text"), "{text}");
}

/// `perf record` of [`burn`], without hardware counters; the error output on failure.
fn perf_record(names: &str, folder: &Path) -> Result<(), String> {
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-k", "mono", "-e", "cpu-clock", "-o", "perf.data", "--"]);
    let output = testing(perf, "burn", folder).env("PACELINE_JIT_NAMES", names).output().unwrap();
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}

fn perf(folder: &Path, arguments: &[&str]) -> String {
    let output =
        Command::new("perf").args(arguments).env("HOME", folder).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a check on the recording of `perf`.
fn with_perf(test: &str, names: &str, check: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    if !exists("perf") {
        return skip(test, "no perf");
    }
    match perf_record(names, folder.path()) {
        Ok(()) => check(folder.path()),
        Err(reason) => skip(test, reason.trim()),
    }
}

#[test]
fn perf_names_code_by_the_map() {
    with_perf("perf_names_code_by_the_map", "perf-map", |folder| {
        let report = perf(folder, &["report", "-i", "perf.data", "--stdio", "--sort", "symbol"]);
        assert!(report.contains("[.] paceline_counter"), "{report}");
        assert!(!report.contains("paceline_replaced"), "{report}");
        let process = perf(folder, &["script", "-i", "perf.data", "-F", "pid"]);
        let process = process.split_ascii_whitespace().next().unwrap();
        fs::remove_file(format!("/tmp/perf-{process}.map")).unwrap();
    });
}

#[test]
fn perf_names_code_and_lines_by_jitdump() {
    with_perf("perf_names_code_and_lines_by_jitdump", "jitdump", |folder| {
        perf(folder, &["inject", "--jit", "-i", "perf.data", "-o", "jit.data"]);
        let report = perf(folder, &["report", "-i", "jit.data", "--stdio", "--sort", "symbol"]);
        assert!(report.contains("[.] paceline_counter"), "{report}");
        assert!(!report.contains("paceline_replaced"), "{report}");
        let lines = perf(folder, &["script", "-i", "jit.data", "-F", "ip,sym,srcline"]);
        assert!(lines.contains("counter.bpf.c:12"), "{lines}");
    });
}
