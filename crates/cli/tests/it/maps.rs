//! Maps: filled from files, printed by their types.

use crate::common::{Done, Folder, example, fixture, paceline};
use serde_json::{Value, json};

const RULES: &str = r#"[
  {"key": {"address": [192, 0, 2, 1], "port": 80},
   "value": {"action": "DENY", "log": true, "name": "web", "balance": -1000, "halves": [1, 2], "low": 5, "high": 17}},
  {"key": {"address": [10, 0, 0, 1], "port": "0x50"}, "value": {"action": 0, "limit": 65536}}
]"#;

/// Runs `types.o` over one packet of 60 bytes, with these maps.
fn types(maps: &[(&str, &str)], more: &[&str]) -> Done {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[0; 60]]);
    let mut args = vec!["run".to_owned(), fixture("types.o"), "--in".to_owned(), input];
    for (number, (map, text)) in maps.iter().enumerate() {
        let file = folder.write(&format!("{number}.json"), text);
        args.extend(["--map".to_owned(), format!("{map}={file}")]);
    }
    args.extend(more.iter().map(|&arg| arg.to_owned()));
    paceline(args)
}

const ALL: [(&str, &str); 4] = [
    ("rules", RULES),
    ("shares", r#"{"5": 7, "6": 8}"#),
    (
        "untyped",
        r#"[{"key": 0, "value": ["0x01", "0x02", "0x03", "0x04", "0x05", "0xff"]},
                    {"key": ["0x01", "0x00", "0x00", "0x00"], "value": [1, 2, 3, 4, 5, 6]}]"#,
    ),
    (".rodata", r#"{"factor": 10, "verdict": "DENY"}"#),
];

#[test]
fn maps_are_shown_as_c_by_their_types() {
    let out = types(&ALL, &["--maps"]).ok();
    let maps = out.split_once("\n\n").unwrap().1;
    let expected = r#"rules (hash, at most 4 entries)
  [{ .address = 10.0.0.1, .port = 80, .reserved = 0 }] = {
      .action = ALLOW,
      .log = false,
      .name = "",
      .balance = 0,
      .limit = 65536,
      .halves = { 0, 1 },
      .low = 0,
      .high = 0,
  }
  [{ .address = 192.0.2.1, .port = 80, .reserved = 0 }] = {
      .action = DENY,
      .log = true,
      .name = "web",
      .balance = -400,
      .limit = 131073,
      .halves = { 1, 2 },
      .low = 5,
      .high = 17,
  }

untyped (array, at most 4 entries)
  [0] = 01 02 03 04 05 00
  [1] = 01 02 03 04 05 06
  the other 2 are zero

shares (percpu_hash, at most 4 entries)
  [5] = 67
  [6] = 8

.rodata
  factor = 10
  verdict = DENY

.bss
  seen = 1
"#;
    assert_eq!(maps, expected);
}

#[test]
fn what_json_shows_can_be_given_back() {
    let first = types(&ALL, &["--json", "--maps", "--count", "0"]).json()["maps"].clone();
    assert_eq!(
        first["shares"],
        json!([{"key": 5, "values": [{"cpu": 0, "value": 7}]},
                                       {"key": 6, "values": [{"cpu": 0, "value": 8}]}])
    );
    assert_eq!(first[".rodata"], json!({"factor": 10, "verdict": "DENY"}));
    assert_eq!(first["rules"][1]["value"]["balance"], -1000);
    let texts: Vec<(String, String)> =
        first.as_object().unwrap().iter().map(|(name, value)| (name.clone(), value.to_string())).collect();
    let maps: Vec<_> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert_eq!(maps.len(), 5);
    let second = types(&maps, &["--json", "--maps", "--count", "0"]).json()["maps"].clone();
    assert_eq!(second, first);
}

#[test]
fn what_bpftool_prints_is_taken() {
    let formatted = r#"[{"key": ["0x05","0x00"], "values": [{"cpu": 0, "value": ["0x07","0x00","0x00","0x00"]}],
                         "formatted": {"key": 5, "values": [{"cpu": 0, "value": 7}]}}]"#;
    let bytes =
        r#"[{"key": ["0x05","0x00"], "values": [{"cpu": 0, "value": ["0x07","0x00","0x00","0x00"]}]}]"#;
    for text in [formatted, bytes] {
        let maps = types(&[("shares", text)], &["--json", "--maps", "--count", "0"]).json()["maps"].clone();
        assert_eq!(maps["shares"], json!([{"key": 5, "values": [{"cpu": 0, "value": 7}]}]));
    }
    let section = r#"[{"value": {".rodata": [{"factor": 3}, {"verdict": 7}]}}]"#;
    let maps = types(&[(".rodata", section)], &["--json", "--maps"]).json()["maps"].clone();
    assert_eq!(maps[".rodata"], json!({"factor": 3, "verdict": "DENY"}));
}

#[test]
fn variables_that_are_not_given_keep_their_values() {
    let json = types(&[(".rodata", r#"{"verdict": "DENY"}"#)], &["--json", "--maps"]).json();
    assert_eq!(json["maps"][".rodata"], json!({"factor": 2, "verdict": "DENY"}));
    assert_eq!(json["verdicts"]["drop"], 1, "the program saw the new value");
}

#[test]
fn the_maps_of_the_examples_can_be_filled() {
    let map = |map: &str, file: &str| format!("{map}={}", example(file));
    let rules = map("rules", "firewall-rules.json");
    let blocked = map("blocked_v4", "firewall-blocked-v4.json");
    let json = paceline(["run", "--map", &rules, "--map", &blocked, "--json", "--maps"]).json();
    let keys = |name: &str| json["maps"][name].as_array().map(Vec::len);
    assert_eq!((keys("rules"), keys("blocked_v4")), (Some(3), Some(2)));

    let (vips, backends) = (map("vips", "balancer-vips.json"), map("backends", "balancer-backends.json"));
    let object = example("balancer.o");
    let json = paceline(["run", &object, "--map", &vips, "--map", &backends, "--json"]).json();
    assert!(json["verdicts"]["tx"].as_u64() > Some(0), "{json}");
}

#[track_caller]
fn fails(map: &str, text: &str, cause: &str) {
    let done = types(&[(map, text)], &[]);
    let message = done.err.split_once("0.json: ").map_or(done.err.as_str(), |(_, message)| message);
    assert_eq!((done.status, message.lines().next()), (Some(1), Some(cause)), "{}", done.err);
    assert_eq!(done.out, "");
}

#[test]
fn mistakes_are_shown_by_line_column_map_and_member() {
    fails("rules", "[{\"key\": 1,\n,}]", "line 2, column 1: key must be a string");
    fails("rules", "", "line 1, column 0: the text ends within a value");
    fails(
        "rules",
        "[\n  {\"key\": {\"address\": [1, 2], \"port\": 70000}, \"value\": {}}]",
        "line 2, column 11: map rules, element 1, key: .port: 70000 does not fit into `__u16` (0 to 65535)",
    );
    fails(
        "rules",
        r#"[{"key": {}, "value": {"acton": 1}}]"#,
        "line 1, column 23: map rules, element 1, value: `struct rule` has no member `acton`; did you mean `action`?",
    );
    fails(
        "rules",
        r#"[{"key": {}, "value": {"action": "DENI"}}]"#,
        "line 1, column 23: map rules, element 1, value: .action: `DENI` is not a value of `enum action`; did you mean `DENY`?",
    );
    fails(
        "rules",
        r#"[{"key": {}, "value": null}]"#,
        "line 1, column 23: map rules, element 1, value: null is not a value",
    );
    fails(
        "rules",
        r#"[{"key": {}, "vaule": {}}]"#,
        "line 1, column 23: map rules, element 1: unknown member `vaule`; an element has `key` and `value` or `values`",
    );
    fails(
        "rules",
        r#"[{"key": {}}]"#,
        "line 1, column 2: map rules, element 1: a map is filled by a list of elements {\"key\": ..., \"value\": ...}",
    );
    fails(
        "rules",
        r#"[{"key": {}, "values": []}]"#,
        "line 1, column 24: map rules, element 1: only per-CPU maps have `values`, this one has a `value`",
    );
    let five: Vec<Value> = (0..5).map(|port| json!({ "key": { "port": port }, "value": {} })).collect();
    let five = serde_json::to_string_pretty(&five).unwrap();
    fails("rules", &five, "line 26, column 3: map rules, element 5: the map is full: it holds 4 entries");
    fails(
        "shares",
        r#"[{"key": 1, "values": [{"cpu": 3, "value": 5}]}]"#,
        "line 1, column 24: map shares, element 1: there is no cpu 3: CPUs are numbered from 0, and the run has 1",
    );
    fails(
        "untyped",
        r#"[{"key": 9, "value": [1, 2, 3, 4, 5, 6]}]"#,
        "line 1, column 2: map untyped, element 1: the index is out of range, the map has 4 entries",
    );
    fails(
        "untyped",
        r#"[{"key": 1, "value": [1, 2, 3]}]"#,
        "line 1, column 22: map untyped, element 1, value: the map has no types, so this must be a list of 6 bytes, such as [\"0x0a\", \"0x00\"]",
    );
    fails(
        ".rodata",
        r#"{"factor": -3}"#,
        "line 1, column 12: map .rodata, variable factor: -3 does not fit into `__u32` (0 to 4294967295)",
    );
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    fails(
        "rules",
        &format!("[{{\"key\": {deep}}}]"),
        "line 1, column 2: map rules, element 1: a map is filled by a list of elements {\"key\": ..., \"value\": ...}",
    );
    fails(
        ".rodata",
        &format!("{{\"factor\": {deep}}}"),
        "line 1, column 12: map .rodata, variable factor: it is nested too deep",
    );
}

#[test]
fn names_that_are_not_there_are_told_with_a_suggestion() {
    types(&[("rulez", "[]")], &[]).fails(1, "", &["the object has no map `rulez`", "did you mean `rules`?"]);
    types(&[("zzz", "[]")], &[]).fails(
        1,
        "",
        &["no map `zzz`", "hint: it has rules, untyped, shares, .rodata, .bss"],
    );
    let unknown = types(&[(".rodata", r#"{"facto": 3}"#)], &[]);
    unknown.fails(1, "", &["section .rodata has no variable `facto`", "did you mean `factor`?"]);
    let missing = paceline(["run", "--map", "rules=/nowhere/rules.json"]);
    missing.fails(1, "/nowhere/rules.json: No such file or directory", &[]);
}

/// Addresses, prefixes and numbers in network byte order, in text and beside their numbers in JSON, which can be given again.
#[test]
fn addresses_are_shown_as_people_write_them() {
    let folder = Folder::new();
    let services = r#"[{"key": "htons(22)", "value": {"address": "10.0.0.1", "port": "htons(8080)", "number": 80,
        "mac": "02:00:00:00:00:09", "pad": [1, 2, 3, 4, 5, 6], "many": ["10.0.0.1", "10.0.0.2"], "gateway": "192.0.2.1", "addr6": "2001:db8::1"}}]"#;
    let given = [
        ("blocked", r#"[{"key": "10.9.1.0/24", "value": 1}, {"key": "10.9.1.1", "value": 2}]"#),
        ("blocked6", r#"{"2001:db8::/32": 1}"#),
        ("no_addresses", r#"[{"key": {"length": 3, "port": "htons(8)"}, "value": 1}]"#),
        ("services", services),
        ("tenants", r#"[{"key": 5, "value": {"10.0.0.9": 3}}]"#),
    ];
    let input = folder.capture("in.pcap", &[&[0; 60]]);
    let object = format!("{}:written", fixture("written.o"));
    let run = |maps: &[(&str, String)], more: &[&str]| {
        let mut args = vec!["run".to_owned(), object.clone(), "--in".to_owned(), input.clone()];
        for (map, text) in maps {
            args.extend([
                "--map".to_owned(),
                format!("{map}={}", folder.write(&format!("{map}.json"), text)),
            ]);
        }
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        paceline(args)
    };
    let given = given.map(|(map, text)| (map, text.to_owned()));
    let text = run(&given, &["--maps"]).ok();
    for part in [
        "  [10.9.1.0/24] = 1\n  [10.9.1.1/32] = 2\n",
        "  [2001:db8::/32] = 1\n",
        "  [{ .length = 3, .port = htons(8), .tag = htons(0) }] = 1\n",
        "  [htons(22)] = {\n      .address = 10.0.0.1,\n      .port = htons(8080),\n      .number = 80,\n      .mac = 02:00:00:00:00:09,\n",
        "      .pad = { 1, 2, 3, 4, 5, 6 },\n      .many = { 10.0.0.1, 10.0.0.2 },\n      .gateway = 192.0.2.1,\n      .addr6 = 2001:db8::1,\n",
        "  [5] = { [10.0.0.9] = 3 }\n",
        "  passed_port = htons(443)\n",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
    let json = run(&given, &["--maps", "--json"]).json();
    let first = &json["maps"]["blocked"][0];
    let address = u32::from_ne_bytes([10, 9, 1, 0]);
    let key = json!({"length": 24, "address": address});
    assert_eq!(*first, json!({"key": key, "value": 1, "written": {"key": "10.9.1.0/24"}}));
    let port = u16::from_ne_bytes([1, 0xbb]);
    assert_eq!(
        json["maps"][".rodata"],
        json!({"passed_port": port, ".written": {"passed_port": "htons(443)"}})
    );
    // Both forms are taken again.
    let names = json["maps"].as_object().unwrap().iter().filter(|(_, map)| **map != json!([]));
    let as_printed: Vec<_> = names.clone().map(|(name, map)| (name.as_str(), map.to_string())).collect();
    let written = |element: &Value| {
        let mut element = element.clone();
        let written = element.as_object_mut().unwrap().remove("written").unwrap_or(json!({}));
        written.as_object().unwrap().iter().for_each(|(name, value)| element[name] = value.clone());
        element
    };
    let as_written: Vec<_> = names
        .map(|(name, map)| match map {
            Value::Array(elements) => {
                (name.as_str(), elements.iter().map(written).collect::<Value>().to_string())
            }
            variables => (name.as_str(), variables[".written"].to_string()),
        })
        .collect();
    for again in [as_printed, as_written] {
        assert_eq!(run(&again, &["--maps", "--json"]).json()["maps"], json["maps"], "{again:?}");
    }
}
