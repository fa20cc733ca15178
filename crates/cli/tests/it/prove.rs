//! `paceline prove`: proofs, inputs with which properties do not hold, errors.

use std::fs;

use crate::common::{Folder, example, fixture, paceline};

#[test]
fn properties_are_proved() {
    let vlan = example("vlan.o");
    let done = paceline(["prove", &vlan, "arp implies verdict != drop"]).ok();
    assert!(done.contains("vlan_pop: proved for packets of 1 to 3520 bytes, "), "{done}");
    assert!(done.contains("vlan_push: proved for packets of 1 to 3520 bytes, "), "{done}");
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

/// A proof says what it holds for, as text and as JSON, and the length is the one that is asked for.
#[test]
fn proofs_have_their_bounds() {
    let bounds = |program: &str| format!("{}:{program}", fixture("bounds.o"));
    let prove = |program: &str, more: &[&str]| {
        paceline([&["prove", &bounds(program), "verdict != drop"], more].concat())
    };
    for program in ["longest", "classifier"] {
        assert_eq!(prove(program, &[]).status, Some(1), "{program}: packets of 1,515 bytes are dropped");
        let shorter = prove(program, &["--length", "1514"]).ok();
        assert!(shorter.contains("proved for packets of 1 to 1514 bytes"), "{shorter}");
    }
    assert_eq!(prove("fragments", &["--length", "65535"]).status, Some(1));
    let one = prove("fragments", &["--length", "4000"]).ok();
    assert!(one.contains("proved for packets of 1 to 4000 bytes in one buffer;"), "{one}");
    let clocks = prove("twice", &[]).ok();
    assert!(clocks.contains("bytes, clocks that do not go back;"), "{clocks}");
    let interface = prove("interface", &["--json"]).json();
    assert_eq!(
        interface["programs"][0]["bounds"],
        serde_json::json!({ "length": [1, 3520], "assumptions": ["interfaces with indices from 1"] })
    );
    assert_eq!(prove("longest", &["--length", "65536"]).status, Some(2));
}

/// A property that says nothing of any run is proved with a warning.
#[test]
fn a_premise_that_never_holds_is_told() {
    let vlan = format!("{}:vlan_pop", example("vlan.o"));
    let prove = |property: &str| {
        let json = paceline(["prove", &vlan, property, "--json"]).json();
        json["programs"][0]["vacuous"].clone()
    };
    assert_eq!(prove("arp and ipv4 implies verdict == drop"), serde_json::json!(["arp and ipv4"]));
    assert_eq!(prove("verdict == tx implies ipv4"), serde_json::json!(["verdict == tx"]));
    assert_eq!(prove("arp implies ipv4 implies verdict == tx"), serde_json::json!(["(arp) and (ipv4)"]));
    for property in
        ["arp implies verdict != drop", "verdict == drop implies not arp", "arp implies in.len > 20"]
    {
        assert_eq!(prove(property), serde_json::json!([]), "{property}");
    }
    let text = paceline(["prove", &vlan, "arp and ipv4 implies verdict == drop"]).ok();
    assert!(text.contains("  warning: this says nothing of any run: `arp and ipv4` never holds\n"), "{text}");
}

/// Nothing was proved of programs that are refused, lack a map or are of other types: they are told with the others, and the status is 1.
#[test]
fn only_what_was_proved_is_success() {
    let object = fixture("unmade.o");
    let causes = [
        "program without_map: map \"prefixes\"",
        "program refused is refused: ",
        "program other_type is in section",
    ];
    let commands: [&[&str]; 3] = [
        &["prove", &object, "verdict == pass"],
        &["generate", &object],
        &["diff", &object, &object, "--all"],
    ];
    for command in commands {
        let done = paceline(command.iter());
        assert_eq!(done.status, Some(1), "{command:?}");
        assert!(done.out.contains("good"), "{command:?}: {}", done.out);
        for cause in causes {
            assert!(done.err.contains(cause), "{command:?}: {}", done.err);
        }
        let json = paceline(command.iter().chain([&"--json"]));
        assert_eq!(json.status, Some(1), "{command:?}");
        let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
        let failed =
            json["programs"].as_array().unwrap().iter().filter(|program| program["error"].is_string());
        assert!(failed.count() >= 3, "{command:?}: {json:#}");
    }
    for program in ["without_map", "refused"] {
        let named = format!("{object}:{program}");
        for command in [
            &["prove", &named, "verdict == pass"][..],
            &["generate", &named],
            &["diff", &named, &named, "--all"],
        ] {
            let done = paceline(command.iter());
            assert_eq!(done.status, Some(1), "{command:?}");
            assert!(
                done.err.contains(&format!("program {program}")) && done.out.is_empty(),
                "{command:?}: {}",
                done.out
            );
        }
    }
    let good = format!("{object}:good");
    paceline(["prove", &good, "verdict == pass"]).ok();
    paceline(["generate", &good]).ok();
}
