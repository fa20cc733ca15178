//! Engines by name, and the native code of one of them.

use std::fs;
use std::process::Command;

use crate::common::{Folder, command, example, fixture, paceline};
use paceline::Engine;
use serde_json::Value;

/// Programs with what they need besides their object.
const PROGRAMS: [&str; 7] = [
    "firewall.o",
    "counter.o",
    "balancer.o",
    "vlan.o:vlan_pop",
    "reflector.o",
    "sampler.o:sample_every",
    "protocols.o:dispatch",
];

fn run(program: &str, engine: &str, out: &str) -> Value {
    let mut json = paceline([
        "run",
        &example(program),
        "--in",
        &example("traffic.pcap"),
        "--out",
        out,
        "--engine",
        engine,
        "--maps",
        "--json",
    ])
    .json();
    assert_eq!(json["engine"], engine);
    for varies in ["engine", "seconds"] {
        json.as_object_mut().unwrap().remove(varies);
    }
    json
}

#[test]
fn all_engines_come_to_the_same() {
    let folder = Folder::new();
    for program in PROGRAMS {
        let out = |engine: &str| folder.text(&format!("{engine}.pcap"));
        let plain = run(program, "plain", &out("plain"));
        for engine in Engine::ALL.iter().filter(|engine| engine.is_available()) {
            let name = engine.name();
            assert_eq!(run(program, name, &out(name)), plain, "{program} on {engine}");
            assert!(fs::read(out(name)).unwrap() == fs::read(out("plain")).unwrap(), "{program} on {engine}");
        }
    }
}

#[test]
fn what_nobody_verified_runs_where_all_is_checked() {
    let json = paceline(["run", &example("counter.o"), "--unverified", "--json"]).json();
    assert_eq!(json["engine"], "plain");
    let json = paceline(["run", &example("counter.o"), "--unverified", "--engine", "plain", "--json"]).json();
    assert_eq!(json["engine"], "plain");
}

#[test]
fn the_engine_for_tests_is_not_offered() {
    let short = paceline(["run", "-h"]).ok();
    assert!(short.contains("jit, threaded, plain"), "{short}");
    for help in [short, paceline(["run", "--help"]).ok()] {
        assert!(!help.contains("checked-jit"), "{help}");
    }
    paceline(["run", &example("counter.o"), "--engine", "checked-jit"]).fails(
        2,
        "invalid value 'checked-jit' for '--engine <NAME>'",
        &["[possible values: jit, threaded, plain]"],
    );
}

/// The native instructions of a program, as offset and bytes in hex.
fn native_insns(program: &Value) -> Vec<(u64, String)> {
    let functions = program["native"]["functions"].as_array().unwrap();
    let insns = functions.iter().flat_map(|function| function["instructions"].as_array().unwrap());
    insns.map(|insn| (insn["offset"].as_u64().unwrap(), insn["bytes"].as_str().unwrap().to_owned())).collect()
}

/// Disassembly of the same bytes by binutils.
fn objdump(folder: &Folder, insns: &[(u64, String)]) -> Option<Vec<(u64, String)>> {
    let last = insns.last().unwrap();
    // Space between functions is filled with one-byte instructions.
    let mut code = vec![0xcc; last.0 as usize + last.1.len() / 2];
    for (offset, hex) in insns {
        let bytes = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap());
        code[*offset as usize..].iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte);
    }
    let file = folder.write("code", &code);
    let output = Command::new("objdump")
        .args(["-D", "-b", "binary", "-m", "i386:x86-64", "-w", "--insn-width=16", &file])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let (offset, rest) = line.trim_start().split_once(":\t")?;
        let bytes = rest.split('\t').next()?.replace(' ', "");
        Some((u64::from_str_radix(offset, 16).ok()?, bytes))
    };
    Some(text.lines().filter_map(line).filter(|(_, bytes)| bytes != "cc").collect())
}

#[test]
fn native_code_is_what_binutils_reads() {
    if !Engine::Jit.is_available() {
        return;
    }
    let folder = Folder::new();
    for object in ["firewall.o", "vlan.o", "protocols.o", "sampler.o", "balancer.o"] {
        let json = paceline(["dump", &example(object), "--jit", "--json"]).json();
        for program in json["programs"].as_array().unwrap() {
            let ours = native_insns(program);
            match objdump(&folder, &ours) {
                Some(theirs) => assert_eq!(ours, theirs, "{object}: {}", program["name"]),
                None if std::env::var("PACELINE_REQUIRE_ALL").is_ok_and(|value| value == "1") => {
                    panic!("objdump must be there")
                }
                None => eprintln!("SKIP native_code_is_what_binutils_reads: no objdump"),
            }
        }
    }
}

#[test]
fn native_code_stands_beside_its_origin() {
    if !Engine::Jit.is_available() {
        return;
    }
    let vlan = example("vlan.o:vlan_pop");
    let out = paceline(["dump", &vlan, "--jit"]).ok();
    for part in [
        "bytes of native code\n",
        "; int vlan_pop(struct xdp_md *ctx)\n<vlan_pop>:\n",
        "; switch (pop_outer(ctx)) { @ ./examples/vlan.bpf.c:109\n",
        ";     9: call pop_outer  ; no code of its own\n",
        ";    53: r1 = map[vlans] ll",
        "$map_value[vlans] + 0,%rdx\n",
        " ret\n",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    // Every instruction is there, with code or without, those of the function that is inlined too.
    let bpf = paceline(["dump", &vlan, "--json"]).json();
    for insn in bpf["programs"][0]["instructions"].as_array().unwrap() {
        let line = format!("\n;{:6}: {}", insn["slot"].as_u64().unwrap(), insn["text"].as_str().unwrap());
        assert!(out.contains(&line), "no {line:?} in {out}");
    }
    let with_bytes = paceline(["dump", &vlan, "--jit", "--opcodes"]).ok();
    assert!(with_bytes.contains(": c3                             ret\n"), "{with_bytes}");
    let json = paceline(["dump", &vlan, "--jit", "--json"]).json();
    let native = &json["programs"][0]["native"];
    let names: Vec<&str> =
        native["functions"].as_array().unwrap().iter().map(|f| f["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["vlan_pop", "vlan_pop.burst"]);
    assert!(native["address"].as_str().unwrap().starts_with("0x"));
}

#[test]
fn look_ups_ahead_are_shown_and_change_no_result() {
    if !Engine::Jit.is_available() {
        return;
    }
    let dump =
        |program: &str, when: &str| paceline(["dump", "--jit", "--look-ahead", when, &example(program)]).ok();
    let heading = "; that runs over a burst before firewall: look-ups ahead";
    assert!(dump("firewall.o", "always").contains(heading));
    assert!(!dump("firewall.o", "never").contains("ahead"));
    assert!(!dump("firewall.o", "auto").contains("ahead"), "its maps are small");
    assert!(
        dump("sampler.o:sample_every", "always").contains("; no look-ups ahead of sample_every: no look-up")
    );
    let run = |when| {
        let traffic = example("traffic.pcap");
        let firewall = example("firewall.o");
        let mut json =
            paceline(["run", &firewall, "--in", &traffic, "--look-ahead", when, "--maps", "--json"]).json();
        json.as_object_mut().unwrap().remove("seconds");
        json
    };
    assert_eq!(run("always"), run("never"));
}

#[test]
fn a_dispatcher_names_the_programs_it_jumps_to() {
    if !Engine::Jit.is_available() {
        return;
    }
    let vlan = example("vlan.o");
    let out = paceline(["dump", &vlan, "--dispatcher"]).ok();
    let jumps: Vec<&str> =
        out.lines().filter_map(|line| line.split_once(" je ").map(|(_, target)| target.trim())).collect();
    for program in ["vlan_push", "vlan_pop"] {
        assert!(jumps.contains(&program), "no jump to {program} in {out}");
    }
    assert!(out.contains("<dispatcher>:\n") && out.contains("<dispatcher.burst>:\n"), "{out}");
    assert!(out.contains(" jmp    *%rcx\n"), "the way out: {out}");
    assert!(!out.contains("int3"), "what fills the space is no code: {out}");
    let hardened = paceline(["dump", &vlan, "--dispatcher=retpoline"]).ok();
    assert!(hardened.contains("lfence") && !hardened.contains("*%rcx"), "{hardened}");
    let json = paceline(["dump", &vlan, "--dispatcher", "--json"]).json();
    assert_eq!(json["dispatcher"]["functions"][0]["name"], "dispatcher");
}

#[test]
fn the_form_is_shown_before_and_after_passes() {
    let vlan = example("vlan.o:vlan_pop");
    let raw = paceline(["dump", &vlan, "--ir=raw"]).ok();
    for part in [
        "; program vlan_pop, section xdp\n\nfunction 0 \"vlan_pop\" (r1)",
        "block0(v0: i64 context):\n",
        "function 1 \"pop_outer\" (",
        ": packet = context_load.u32 v",
        "= call function 1(v",
        "= call bpf_xdp_adjust_head(v",
    ] {
        assert!(raw.contains(part), "no {part:?} in {raw}");
    }
    let optimized = paceline(["dump", &vlan, "--ir"]).ok();
    assert!(optimized.lines().count() < raw.lines().count(), "{optimized}");
    let json = paceline(["dump", &vlan, "--ir", "--json"]).json();
    let text = json["programs"][0]["ir"].as_str().unwrap();
    assert!(optimized.ends_with(text), "{text}");
    paceline(["dump", &vlan, "--ir", "--jit"]).fails(2, "the argument", &["cannot be used with"]);
}

#[test]
fn only_verified_programs_have_native_code() {
    let object = fixture("no_bounds_check.o");
    paceline(["dump", &object, "--jit"]).fails(1, &object, &["is refused"]);
}

#[test]
fn names_of_native_code_are_written_where_they_are_asked_for() {
    let run =
        |names: &str| command().args(["run", "--engine", "jit"]).env("PACELINE_JIT_NAMES", names).spawn();
    let mut child = run("perf-map").expect("the command starts");
    let map = format!("/tmp/perf-{}.map", child.id());
    assert!(child.wait().expect("the command ends").success());
    let text = fs::read_to_string(&map).expect("perf finds the map there");
    fs::remove_file(&map).expect("it is a file of ours");
    assert!(text.lines().any(|line| line.ends_with("firewall")), "{text}");

    let done = command().args(["run"]).env("PACELINE_JIT_NAMES", "perf-map,qemu").output();
    let done = crate::common::Done::from(done.expect("the command starts"));
    done.fails(1, "PACELINE_JIT_NAMES: unknown \"qemu\"", &["perf-map, jitdump and gdb"]);
}

/// The commands of docs/DEBUGGING.md.
#[test]
#[cfg(target_arch = "x86_64")]
fn gdb_stops_at_a_line_of_the_source() {
    if Command::new("gdb").arg("--version").output().is_err() {
        let required = std::env::var_os("PACELINE_REQUIRE_ALL").is_some_and(|value| value == "1");
        assert!(!required, "no gdb");
        return;
    }
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let source = fs::read_to_string(example("firewall.bpf.c")).unwrap();
    let line = source.lines().position(|line| line.contains("cursor.end - cursor.pos;")).unwrap() + 1;
    let stop = format!("hbreak firewall.bpf.c:{line}");
    let mut gdb = Command::new("gdb");
    gdb.current_dir(root).env("PACELINE_JIT_NAMES", "gdb").args(["-nx", "-batch"]);
    for command in ["set breakpoint pending on", &stop, "run", "info line *$pc"] {
        gdb.args(["-ex", command]);
    }
    let (object, capture) = ("examples/firewall.o", "examples/traffic.pcap");
    gdb.args(["--args", env!("CARGO_BIN_EXE_paceline"), "run", object, "--in", capture]);
    let output = gdb.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains(&format!("firewall.burst () at ./examples/firewall.bpf.c:{line}")), "{text}");
    assert!(text.contains(&format!("Line {line} of \"./examples/firewall.bpf.c\" starts at")), "{text}");
}
