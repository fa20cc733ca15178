//! The report of a run: targets of redirects and contents of maps, in one form with all options.

use std::fs;

use crate::common::{Folder, example, fixture, paceline};
use serde_json::{Value, json};

fn redirects(more: &[&str]) -> Value {
    let target = format!("{}:redirects", fixture("redirects.o"));
    paceline(["run", &target, "--json", "--count", "3"].into_iter().chain(more.iter().copied())).json()
}

#[test]
fn redirects_are_counted_by_where_they_lead() {
    let folder = Folder::new();
    let sockets = format!("sockets={}", folder.write("sockets.json", br#"{"1": 0, "2": 77}"#));
    assert_eq!(redirects(&[])["redirects"], json!([{"interface": 3, "packets": 3}]));
    let queue = redirects(&["--rx-queue", "2", "--map", &sockets]);
    assert_eq!(queue["redirects"], json!([{"map": "sockets", "key": 2, "packets": 3}]));
    let none = redirects(&["--rx-queue", "3", "--map", &sockets]);
    assert_eq!((&none["redirects"], &none["verdicts"]["drop"]), (&json!([]), &json!(3)));
    let target = format!("{}:redirects", fixture("redirects.o"));
    let text = paceline(["run", &target, "--count", "3", "--rx-queue", "2", "--map", &sockets]).ok();
    assert!(text.contains("\n  to sockets[2]: 3\n"), "{text}");
}

#[test]
fn all_that_maps_hold_is_shown_and_kept_and_no_zeros() {
    let folder = Folder::new();
    let sockets = format!("sockets={}", folder.write("sockets.json", br#"{"1": 0, "2": 77}"#));
    let file = folder.text("state.json");
    let json = redirects(&["--map", &sockets, "--maps", "--save-maps", &file]);
    assert_eq!(json["maps"]["sockets"], json!([{"key": 1, "value": 0}, {"key": 2, "value": 77}]));
    assert_eq!(json["maps"]["large"], json!([{"key": 999_999, "value": 3}]), "what is zero is left out");
    let again = redirects(&["--restore-maps", &file, "--maps", "--rx-queue", "2"]);
    assert_eq!(again["maps"]["sockets"], json["maps"]["sockets"]);
    assert_eq!(again["redirects"], json!([{"map": "sockets", "key": 2, "packets": 3}]));
    // To standard output, which then has nothing else.
    let target = format!("{}:redirects", fixture("redirects.o"));
    let done = paceline(["run", &target, "--map", &sockets, "--count", "3", "--save-maps", "-"]);
    assert_eq!(done.status, Some(0), "{}", done.err);
    assert_eq!(done.out, fs::read_to_string(&file).unwrap());
    assert!(done.err.contains("redirects: 3 packets"), "{}", done.err);
    assert!(!std::path::Path::new("-").exists());
    // Constants are not restored, and that is said.
    let report = folder.write("report.json", redirects(&["--maps"]).to_string());
    let done = paceline(["run", &target, "--restore-maps", &report]);
    let note = "note: --restore-maps: .rodata is left out: constants are the object's own; `--map .rodata=FILE` sets them";
    assert!(done.err.contains(note), "{}", done.err);
}

#[test]
fn keys_are_written_as_people_write_them() {
    let folder = Folder::new();
    let station = json!({"mac": "00:11:22:33:44:55", "v4": "192.0.2.1", "v6": "2001:db8::1"});
    let maps = [
        ("routes", json!({"10.0.0.0/8": 1})),
        ("routes6", json!([{"key": "2001:db8::/32", "value": 7}])),
        ("stations", json!([{"key": station, "value": 5}])),
    ];
    let files = maps.map(|(name, elements)| {
        format!("{name}={}", folder.write(&format!("{name}.json"), elements.to_string()))
    });
    let json = redirects(&["--map", &files[0], "--map", &files[1], "--map", &files[2], "--maps"]);
    assert_eq!(json["verdicts"]["tx"], 3, "10.1.2.3 is in 10.0.0.0/8");
    let key = json!({"length": 8, "address": [10, 0, 0, 0]});
    let routes = json!([{"key": key, "value": 1, "written": {"key": "10.0.0.0/8"}}]);
    assert_eq!(json["maps"]["routes"], routes);
    let length = u32::to_ne_bytes(32);
    let address = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let key: Vec<String> = length.iter().chain(&address).map(|byte| format!("{byte:#04x}")).collect();
    assert_eq!(json["maps"]["routes6"][0]["key"], json!(key));
    let station = &json["maps"]["stations"][0]["key"];
    assert_eq!(station["mac"], json!([0, 0x11, 0x22, 0x33, 0x44, 0x55]));
    assert_eq!(station["v4"], u32::from_ne_bytes([192, 0, 2, 1]));
    let wrong = folder.write("wrong.json", br#"{"10.0.0.0/33": 1}"#);
    let target = format!("{}:redirects", fixture("redirects.o"));
    paceline(["run", &target, "--map", &format!("routes={wrong}")]).fails(
        1,
        &format!("{wrong}: line 1"),
        &[],
    );
}

#[test]
fn json_has_one_form_whatever_else_is_asked_for() {
    let plain = paceline(["run", &example("counter.o"), "--maps", "--json"]).json();
    for more in [&["--stats"][..], &["--trace", "1"]] {
        let args = ["run", &example("counter.o"), "--maps", "--json"];
        let json = paceline(args.into_iter().chain(more.iter().copied())).json();
        for (name, value) in plain.as_object().unwrap() {
            let expected = if name == "seconds" { &json["seconds"] } else { value };
            assert_eq!(&json[name], expected, "{name} with {more:?}");
        }
    }
    let text = paceline(["run", &example("counter.o"), "--maps", "--stats"]).ok();
    assert!(!text.contains("maps of"), "{text}");
}

#[test]
fn failures_are_json_where_json_is_asked_for() {
    let missing = fixture("missing_file.o");
    for command in ["run", "verify", "inspect", "dump"] {
        let done = paceline([command, &missing, "--json"]);
        done.fails(1, &format!("{missing}: "), &[]);
        let json: Value = serde_json::from_str(&done.out).unwrap();
        assert!(json["error"].as_str().unwrap().starts_with(&missing), "{json}");
    }
    let refused = fixture("no_null_check.o");
    let done = paceline(["run", &refused, "--json"]);
    assert_eq!(done.status, Some(1));
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(json["refused"]["cause"]["kind"], "may_be_null", "{json}");
    assert!(json["hint"].as_str().unwrap().starts_with("`paceline run --unverified`"), "{json}");
    // An error in a report is not printed twice.
    let done = paceline(["run", &fixture("outside.o"), "--unverified", "--json"]);
    assert_eq!(done.status, Some(1), "{}", done.err);
    let json: Value = serde_json::from_str(&done.out).unwrap();
    assert!(json["error"].is_string() && json["packets"].is_number(), "{json}");
}

#[test]
fn a_packet_that_is_not_there_is_told() {
    let out = paceline(["run", &example("counter.o"), "--trace", "9999"]).ok();
    assert!(out.starts_with("packet 9999: there is none, 492 packets ran\n"), "{out}");
    let out = paceline(["run", &example("counter.o"), "--trace", "491-9999"]).ok();
    assert!(!out.contains("there is none"), "{out}");
}

#[test]
fn an_index_past_the_end_is_not_a_full_map() {
    let folder = Folder::new();
    let file = folder.write("sockets.json", br#"{"4": 1}"#);
    let target = format!("{}:redirects", fixture("redirects.o"));
    let done = paceline(["run", &target, "--map", &format!("sockets={file}")]);
    done.fails(1, &format!("{file}: line 1"), &["the index is out of range, the map has 4 entries"]);
}
