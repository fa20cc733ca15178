//! Contents of maps, saved and restored between runs.

use std::fs;

use crate::common::{Done, Folder, example, fixture, paceline};
use serde_json::{Value, json};

/// Runs `state.o` over some packets, with more arguments.
fn run(folder: &Folder, packets: usize, more: &[&str]) -> Done {
    let packets: Vec<Vec<u8>> = (0..packets).map(|i| vec![0; 60 + i]).collect();
    let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    let input = folder.capture("in.pcap", &packets);
    let mut args = vec!["run".to_owned(), fixture("state.o"), "--in".to_owned(), input];
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    paceline(args)
}

fn maps(done: Done) -> Value {
    let mut maps = done.json()["maps"].clone();
    // It has no list of what is in it.
    maps.as_object_mut().unwrap().remove("seen");
    maps
}

#[test]
fn a_run_goes_on_where_the_last_one_ended() {
    let folder = Folder::new();
    let file = folder.text("state.json");
    let prefixes = folder.write("prefixes.json", r#"[{"key": {"length": 8, "address": [10]}, "value": 0}]"#);
    let prefixes = format!("prefixes={prefixes}");
    let first = run(&folder, 3, &["--map", &prefixes, "--save-maps", &file, "--maps", "--json"]);
    assert!(
        first.err.contains("map seen is left out: what is in a bloom_filter cannot be listed"),
        "{}",
        first.err
    );
    let first = maps(first);
    assert_eq!(first["queue"], json!([{"value": 1}, {"value": 2}, {"value": 3}]));
    assert_eq!(first["outer"], json!([{"key": 1, "value": "left"}]));
    assert_eq!(first["prefixes"][0]["value"], 3);
    let restored = run(&folder, 3, &["--count", "0", "--restore-maps", &file, "--maps", "--json"]);
    assert_eq!(maps(restored), first, "nothing is lost on the way");
    // The same file, in and out.
    run(&folder, 3, &["--restore-maps", &file, "--save-maps", &file]).ok();
    let both = maps(run(&folder, 3, &["--count", "0", "--restore-maps", &file, "--maps", "--json"]));
    assert_eq!(both[".bss"]["packets"], 6);
    assert_eq!((&both["prefixes"][0]["value"], &both["left"][0]["value"]), (&json!(6), &json!(6)));
    assert_eq!(both["queue"].as_array().unwrap().len(), 4, "the oldest went");
    assert_eq!(
        both["flows"][0],
        json!({"key": {"address": 60, "port": 7, "protocol": 0, "flags": 0}, "value": 2})
    );
    let lengths = both["lengths"].as_array().unwrap();
    assert!(lengths.contains(&json!({"key": 60, "values": [{"cpu": 0, "value": 2}]})), "{lengths:?}");
    assert!(lengths.len() < 10, "what is zero is left out: {lengths:?}");
    assert_eq!(folder.names(), ["in.pcap", "prefixes.json", "state.json"], "no file is left beside it");
    // Zeros of arrays and constants are not there, and each element has a line of its own.
    let text = fs::read_to_string(folder.path("state.json")).unwrap();
    assert!(!text.contains(".rodata") && !text.contains("\"seen\""), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("\"cpu\":0")).count(), 6, "{text}");
}

#[test]
fn what_the_file_does_not_say_is_gone() {
    let folder = Folder::new();
    let file = folder.write(
        "state.json",
        r#"{"maps": {"outer": [], "lengths": [{"key": 5, "value": 9}], "stack": [{"value": 8}, {"value": 7}],
            ".bss": {"packets": 40}}, "packets": 3}"#,
    );
    let maps = maps(run(&folder, 1, &["--restore-maps", &file, "--maps", "--json"]));
    assert_eq!(maps["outer"], json!([]), "the object's own entry");
    assert_eq!(maps["left"], json!([]), "what is zero is left out");
    assert_eq!(maps["lengths"][0], json!({"key": 5, "values": [{"cpu": 0, "value": 9}]}));
    assert_eq!(maps["stack"], json!([{"value": 8}, {"value": 7}, {"value": 41}]));
    assert_eq!(maps[".bss"]["packets"], 41);
    // A file of --map comes on top.
    let more = format!("lengths={}", folder.write("more.json", r#"{"6": 1}"#));
    let maps = self::maps(run(
        &folder,
        1,
        &["--restore-maps", &file, "--map", &more, "--maps", "--json", "--count", "0"],
    ));
    assert_eq!(
        (&maps["lengths"][0]["values"][0]["value"], &maps["lengths"][1]["values"][0]["value"]),
        (&json!(9), &json!(1))
    );
}

#[test]
fn objects_of_a_chain_keep_their_own_maps_and_share_those_they_pin() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[0; 60]]);
    let (object, file) = (fixture("state.o"), folder.text("state.json"));
    let chain = |more: &[&str]| {
        let args = ["run", &object, &object, "--in", &input, "--order", "given"];
        paceline(args.iter().chain(more))
    };
    chain(&["--save-maps", &file]).ok();
    let saved: Value = serde_json::from_str(&fs::read_to_string(folder.path("state.json")).unwrap()).unwrap();
    let second = format!("{object}#2");
    for name in [object.as_str(), &second] {
        assert_eq!(saved["maps"][name][".bss"]["packets"], 1, "{saved}");
        assert_eq!(saved["maps"][name]["shared"], json!([{"key": 0, "value": 2}]), "both count in one map");
    }
    chain(&["--restore-maps", &file, "--save-maps", &file]).ok();
    let saved: Value = serde_json::from_str(&fs::read_to_string(folder.path("state.json")).unwrap()).unwrap();
    assert_eq!(saved["maps"][&second][".bss"]["packets"], 2);
    assert_eq!(saved["maps"][&second]["shared"][0]["value"], 4);
    let counter = example("counter.o");
    paceline(["run", &object, &counter, "--in", &input, "--restore-maps", &file]).fails(
        1,
        &folder.text("state.json"),
        &["saved maps of several objects are an object {\"maps\": {OBJECT: {NAME: ...}}}"],
    );
}

#[test]
fn a_run_that_fails_leaves_the_file_as_it_was() {
    let folder = Folder::new();
    let before = r#"{"maps": {}}"#;
    let file = folder.write("state.json", before);
    let whole = fs::read(folder.path(common_capture(&folder))).unwrap();
    let cut = folder.write("cut.pcap", &whole[..whole.len() - 7]);
    let done =
        paceline(["run", &fixture("state.o"), "--in", &cut, "--restore-maps", &file, "--save-maps", &file]);
    done.fails(1, &cut, &[]);
    assert_eq!(fs::read_to_string(folder.path("state.json")).unwrap(), before);
    assert_eq!(folder.names(), ["cut.pcap", "state.json", "whole.pcap"]);
    let input = folder.text("whole.pcap");
    let same = paceline(["run", &fixture("state.o"), "--in", &input, "--save-maps", &input]);
    same.fails(1, "--save-maps", &["is the same file as the capture"]);
    let nowhere = folder.text("nowhere/state.json");
    paceline(["run", &fixture("state.o"), "--in", &input, "--save-maps", &nowhere]).fails(
        1,
        &nowhere,
        &["No such file"],
    );
    let link = folder.path("link.json");
    std::os::unix::fs::symlink(folder.path("state.json"), &link).unwrap();
    paceline(["run", &fixture("state.o"), "--in", &input, "--save-maps", &folder.text("link.json")]).ok();
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_ne!(fs::read_to_string(folder.path("state.json")).unwrap(), before);
}

fn common_capture(folder: &Folder) -> &'static str {
    folder.capture("whole.pcap", &[&[0; 60], &[0; 60]]);
    "whole.pcap"
}

#[track_caller]
fn fails(text: &str, cause: &str) {
    let folder = Folder::new();
    let file = folder.write("state.json", text);
    let done = run(&folder, 1, &["--restore-maps", &file]);
    let message = done.err.split_once("state.json: ").map_or(done.err.as_str(), |(_, message)| message);
    assert_eq!((done.status, message.lines().next()), (Some(1), Some(cause)), "{}", done.err);
}

#[test]
fn mistakes_in_saved_maps_are_shown_where_they_are() {
    fails("{\"maps\":\n {\"flows\": 1,}}", "line 2, column 14: key must be a string");
    fails("[]", "line 1, column 1: map : saved maps are an object {\"maps\": {NAME: ...}}");
    fails("{\"maps\": {\"flow\": []}}", "the object has no map `flow`");
    fails(
        "{\"maps\": {\n\"lengths\": [{\"key\": 1000, \"value\": 1}]}}",
        "line 2, column 13: map lengths, element 1: the index is out of range, the map has 1000 entries",
    );
    fails(
        "{\"maps\": {\"prefixes\": [{\"key\": {\"length\": 33}, \"value\": 1}]}}",
        "line 1, column 24: map prefixes, element 1: the length of the prefix exceeds the bits of the key",
    );
    fails(
        "{\"maps\": {\"flows\":\n [{\"key\": {\"port\": 65536}, \"value\": 1}]}}",
        "line 2, column 11: map flows, element 1, key: .port: 65536 does not fit into `__u16` (0 to 65535)",
    );
    fails(
        "{\"maps\": {\"queue\": [{\"value\": 1}, {\"value\": 1}, {\"value\": 1}, {\"value\": 1}, {\"value\": 1}]}}",
        "line 1, column 77: map queue, element 5: the map is full: it holds 4 entries",
    );
    fails(
        "{\"maps\": {\"outer\": [{\"key\": 1, \"value\": \"flows\"}]}}",
        "line 1, column 41: map outer, element 1, value: map flows cannot be an entry: the type of inner maps is 2, of this one 1",
    );
    fails(
        "{\"maps\": {\"outer\": [{\"key\": 1, \"value\": \"lef\"}]}}",
        "line 1, column 41: map outer, element 1, value: the object has no map `lef`",
    );
    fails(
        "{\"maps\": {\"outer\": [{\"key\": 1, \"value\": 3}]}}",
        "line 1, column 41: map outer, element 1, value: an entry of a map of maps is the name of a map of the object, a list of elements, or null",
    );
    fails(
        "{\"maps\": {\".bss\": {\"packet\": 1}}}",
        "line 1, column 30: map .bss, variable packet: section .bss has no variable `packet`",
    );
}

#[test]
fn maps_take_no_more_memory_than_they_may() {
    let folder = Folder::new();
    run(&folder, 1, &["--map-memory", "1M"]).ok();
    run(&folder, 1, &["--map-memory", "4K"]).fails(
        1,
        "",
        &[
            "state.o: program state: map \"lengths\": 1000 entries need 8064 bytes, the limit is 4096",
            "--map-memory SIZE sets the limit",
        ],
    );
    run(&folder, 1, &["--map-memory", "much"]).fails(2, "", &["it must be a number of bytes"]);
}
