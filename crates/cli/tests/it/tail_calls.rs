//! Programs that call others: the program arrays of objects, and their files.

use crate::common::{Done, Folder, example, fixture, paceline};
use serde_json::{Value, json};

/// Runs `protocols.o:dispatch` over the shipped capture, with this file for the array `protocols`.
fn dispatch(protocols: Option<&str>) -> Done {
    let folder = Folder::new();
    let mut args =
        ["run", &example("protocols.o:dispatch"), "--in", &example("traffic.pcap"), "--maps", "--json"]
            .map(str::to_owned)
            .to_vec();
    if let Some(text) = protocols {
        args.extend(["--map".to_owned(), format!("protocols={}", folder.write("protocols.json", text))]);
    }
    paceline(args)
}

/// How many packets came to the program of a number.
fn seen(json: &Value, place: usize) -> u64 {
    // Zero elements are left out.
    let seen = json["maps"]["seen"].as_array().unwrap();
    let place = seen.iter().find(|element| element["key"] == place);
    place.map_or(0, |element| element["values"][0]["value"].as_u64().unwrap())
}

const UDP: usize = 5;
const OTHER: usize = 6;

#[test]
fn the_programs_of_the_object_are_called() {
    let json = dispatch(None).json();
    assert_eq!(json["maps"]["networks"], json!([{"key": 0, "value": "ipv4"}, {"key": 1, "value": "ipv6"}]));
    assert_eq!(json["maps"]["protocols"].as_array().unwrap().len(), 3);
    let calls: Vec<u64> = (1..=UDP).map(|place| seen(&json, place)).collect();
    assert!(calls.iter().all(|&packets| packets > 0), "{calls:?}");
    assert_eq!(seen(&json, 0), json["packets"].as_u64().unwrap());
}

#[test]
fn entries_are_set_and_removed_by_name() {
    let before = dispatch(None).json();
    let drops = |json: &Value| json["verdicts"]["drop"].as_u64().unwrap();
    let dropped = dispatch(Some(r#"[{"key": 17, "value": "drop"}]"#)).json();
    assert_eq!(dropped["maps"]["protocols"][2], json!({"key": 17, "value": "drop"}));
    assert_eq!(seen(&dropped, UDP), 0);
    assert!(drops(&dropped) > drops(&before));
    let removed = dispatch(Some(r#"[{"key": 17, "value": null}]"#)).json();
    assert_eq!(removed["maps"]["protocols"].as_array().unwrap().len(), 2);
    assert_eq!(seen(&removed, OTHER), seen(&before, OTHER) + seen(&before, UDP));
    // The output can be given back.
    let again = dispatch(Some(&dropped["maps"]["protocols"].to_string())).json();
    assert_eq!(again["maps"], dropped["maps"]);
    assert_eq!(dispatch(Some(r#"{"17": "drop"}"#)).json()["maps"], dropped["maps"]);
}

#[test]
fn what_cannot_be_an_entry_is_told_with_its_place() {
    let fails = |text: &str, parts: &[&str]| dispatch(Some(text)).fails(1, "", parts);
    fails(
        r#"[{"key": 17, "value": "dorp"}]"#,
        &[
            "protocols.json: line 1, column 23: map protocols, element 1, value: no program dorp (available: ",
            "did you mean `drop`?",
        ],
    );
    fails(r#"[{"key": 256, "value": "drop"}]"#, &["index 256 is not below the map's 256 entries"]);
    fails(r#"[{"key": 256, "value": null}]"#, &["index 256 is not below the map's 256 entries"]);
    fails(r#"[{"key": 17, "value": 3}]"#, &["an entry of a program array is the name of a program, or null"]);
    fails(r#"[{"key": 17, "value": ["0x01", "0x00", "0x00", "0x00"]}]"#, &["is the name of a program"]);
    fails(r#"[{"key": 17}]"#, &["a list of elements"]);
}

#[test]
fn a_program_that_is_called_must_be_safe() {
    let folder = Folder::new();
    let object = fixture("tail_calls.o");
    let start = format!("{object}: program past_the_end is refused: r1: invalid access to packet");
    let entry = format!("{object}:entry");
    paceline(["run", &entry]).fails(1, &start, &["= note: map jump has it at index 2, to be tail called"]);
    // The object's own entry is not looked at once it is another.
    let null = folder.write("null.json", r#"[{"key": 2, "value": null}]"#);
    assert_eq!(
        paceline(["run", &entry, "--map", &format!("jump={null}"), "--json"]).json()["verdicts"]["drop"],
        0
    );
    let other = folder.write("other.json", r#"[{"key": 2, "value": "drop"}]"#);
    let json = paceline(["run", &entry, "--map", &format!("jump={other}"), "--json"]).json();
    assert_eq!(json["verdicts"]["drop"], json["packets"]);
    let unsafe_one = folder.write("unsafe.json", r#"[{"key": 1, "value": "past_the_end"}]"#);
    paceline(["run", &entry, "--map", &format!("jump={unsafe_one}")]).fails(
        1,
        &start,
        &["map jump has it at index 1"],
    );
}

#[test]
fn a_fault_is_that_of_the_program_that_was_called() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[0; 60]]);
    let object = fixture("tail_calls.o");
    let start =
        format!("{object}: program entry, packet 1 of {input}: read of 1 bytes at packet offset 1000");
    paceline(["run", &format!("{object}:entry"), "--unverified", "--in", &input]).fails(
        1,
        &start,
        &[
            "  in function read_at of program past_the_end, by a tail call\n",
            "tail_calls.bpf.c:30: return data[offset];\n",
            "  by instruction 3: r0 = *(u8 *)(r1 + 1000)",
        ],
    );
}
