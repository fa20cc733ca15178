//! `paceline prove`: proofs, inputs with which properties do not hold, errors.

use std::fs;

use crate::common::{Folder, example, paceline};

#[test]
fn properties_are_proved() {
    let vlan = example("vlan.o");
    let done = paceline(["prove", &vlan, "arp implies verdict != drop"]).ok();
    assert!(done.contains("vlan_pop: proved; "), "{done}");
    assert!(done.contains("vlan_push: proved; "), "{done}");
    let json = paceline(["prove", &vlan, "out.len <= in.len + 4", "--json"]).json();
    assert_eq!(json["property"], "out.len <= in.len + 4");
    assert!(json["programs"].as_array().unwrap().iter().all(|program| program["proved"] == true), "{json}");
}

/// The input that is told is a test of the program that passes.
#[test]
fn an_input_is_told_and_written() {
    let folder = Folder::new();
    let test = folder.text("found.test.toml");
    let program = format!("{}:vlan_push", example("vlan.o"));
    let done = paceline(["prove", &program, "out.len == in.len", "--test", &test]);
    assert_eq!(done.status, Some(1), "{}", done.err);
    assert!(done.out.contains("vlan_push: does not hold with "), "{}", done.out);
    assert!(done.out.contains("\n  pass: eth ") && done.out.contains("\n    out: eth "), "{}", done.out);
    let text = fs::read_to_string(&test).unwrap();
    assert!(text.starts_with("# An input with which this does not hold: out.len == in.len\n"), "{text}");
    let tested = paceline(["test", &test]).ok();
    assert!(tested.contains("1 passed, 0 failed"), "{tested}");
    // A proof leaves no file.
    let none = folder.text("none.test.toml");
    paceline(["prove", &program, "out.len >= in.len", "--test", &none]).ok();
    assert!(!fs::exists(&none).unwrap());
}

#[test]
fn what_is_given_up_is_told_and_no_proof() {
    let program = format!("{}:dispatch", example("protocols.o"));
    let done = paceline(["prove", &program, "verdict != aborted"]);
    assert_eq!(done.status, Some(1), "{}", done.err);
    assert!(done.out.contains("dispatch: not proved, and no input was found"), "{}", done.out);
    assert!(
        done.out.contains("[bpf_tail_call is not modelled where it leads to another program]"),
        "{}",
        done.out
    );
    let json = paceline(["prove", &program, "verdict != aborted", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["programs"][0]["proved"], false, "{json}");
    assert!(json["programs"][0]["left"][0]["reason"].is_string(), "{json}");
}

#[test]
fn properties_without_meaning_are_wrong_usage() {
    let wrong = paceline(["prove", &example("vlan.o"), "eth.typ == 1"]);
    assert_eq!(wrong.status, Some(2), "{}", wrong.err);
    assert!(wrong.err.contains("column 1: eth has no field `typ`"), "{}", wrong.err);
    let map = paceline(["prove", &example("vlan.o"), "changes(vlan)"]);
    assert_eq!(map.status, Some(1), "{}", map.err);
    assert!(map.err.contains("column 9: no map is named `vlan`"), "{}", map.err);
}
