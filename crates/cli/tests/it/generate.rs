//! `paceline generate`: inputs as tests that pass, as a capture, as JSON.

use std::fs;

use crate::common::{Folder, example, fixture, paceline};

#[test]
fn generated_tests_pass() {
    for name in ["vlan.o", "sampler.o", "reflector.o"] {
        let folder = Folder::new();
        let tests = folder.text("tests");
        paceline(["generate", &example(name), "--tests", &tests]).ok();
        let files = fs::read_dir(&tests).unwrap().count();
        assert!(files > 0, "{name}");
        let tested = paceline(["test", &tests]).ok();
        assert!(tested.contains(" passed, 0 failed"), "{name}: {tested}");
    }
}

#[test]
fn the_capture_says_what_its_packets_are_for() {
    let folder = Folder::new();
    let out = folder.text("inputs.pcapng");
    let object = example("counter.o");
    let text = paceline(["generate", &object, "--out", &out]).ok();
    assert!(text.contains("counter: 56 branch sides: 49 reached by"), "{text}");
    assert!(text.contains("7 unreachable, 0 given up"), "{text}");
    let capture = String::from_utf8_lossy(&fs::read(&out).unwrap()).into_owned();
    assert!(capture.contains("pass: counter.bpf.c:"), "{capture}");
    // It is a capture of the packets.
    let run = paceline(["run", &object, "--in", &out, "--json"]);
    assert!(run.json()["packets"].as_u64().unwrap() > 5);
}

#[test]
fn json_has_all_sides() {
    let object = example("vlan.o");
    let json = paceline(["generate", &object, "--json"]).json();
    let program = &json["programs"][0];
    let count = |key: &str| program[key].as_array().unwrap().len();
    assert_eq!(count("failed") + count("given_up"), 0, "{program}");
    let side = &program["reached"][0];
    assert!(side["place"].as_str().unwrap().starts_with("vlan.bpf.c:"), "{side}");
    assert!(side["packet"].as_str().unwrap().len() > 1, "{side}");
    assert_eq!(paceline(["generate", &object, "--json"]).json(), json, "inputs differ");
}

#[test]
fn a_refused_program_is_told() {
    let done = paceline(["generate", &fixture("no_bounds_check.o")]);
    assert_eq!(done.status, Some(1));
    assert!(done.err.contains("no_bounds_check.bpf.c"), "{}", done.err);
}
