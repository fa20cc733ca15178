//! `paceline run` where all goes well.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use paceline::Engine;

use crate::common::{Folder, capture, command, example, fixture, paceline, packets};

#[test]
fn without_arguments_the_built_in_firewall_runs() {
    let done = paceline(["run"]);
    assert!(done.err.contains("built-in firewall"), "{}", done.err);
    let out = done.ok();
    for verdict in ["aborted", "drop", "pass", "tx", "redirect"] {
        assert!(out.contains(&format!("\n  {verdict:<8} ")), "{out}");
    }
    let (object, traffic) = (example("firewall.o"), example("traffic.pcap"));
    let own = paceline(["run", "--json", &object, "--in", &traffic]).json();
    let built_in = paceline(["run", "--json"]).json();
    assert_eq!(built_in["verdicts"], own["verdicts"]);
    assert_eq!(built_in["packets"], own["packets"]);
    assert!(own["packets"].as_u64() > Some(100));
}

#[test]
fn either_built_in_part_can_be_replaced() {
    let folder = Folder::new();
    let one = folder.capture("one.pcap", &[&[0; 60]]);
    let done = paceline(["run", "--in", &one]);
    assert!(done.err.contains("built-in firewall") && done.err.contains(&one), "{}", done.err);
    assert!(done.ok().contains(&format!("1 packet of {one}")));
    let counter = example("counter.o");
    let done = paceline(["run", &counter]);
    assert!(done.err.contains("built-in capture") && done.err.contains(&counter), "{}", done.err);
    done.ok();
}

/// Every verdict once or more, by the first byte.
const VERDICTS: [&[u8]; 8] = [b"\x00a", b"\x01b", b"\x02c", b"\x03d", b"\x04e", b"\x02f", b"\x07g", b"\x01h"];

#[test]
fn packets_go_where_their_verdicts_send_them() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &VERDICTS);
    let (out, drops) = (folder.text("out.pcap"), folder.text("drops.pcap"));
    let object = fixture("verdicts.o");
    let text = paceline(["run", &object, "--in", &input, "--out", &out, "--drops", &drops]).ok();
    assert_eq!(packets(&out), [b"\x02c", b"\x03d", b"\x04e", b"\x02f"]);
    assert_eq!(packets(&drops), [b"\x00a", b"\x01b", b"\x07g", b"\x01h"]);
    let after_time = text.split_once('\n').unwrap().1;
    let expected = "  aborted             2   25.0%
  drop                2   25.0%
  pass                2   25.0%
  tx                  1   12.5%
  redirect            1   12.5%
  of the aborted, 1 returned no verdict but another number
";
    assert_eq!(after_time, expected);
    assert!(text.starts_with(&format!("{object}: verdicts: 8 packets of {input}, 16 bytes, in ")), "{text}");
}

#[test]
fn json_has_numbers_for_everything_that_is_counted() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &VERDICTS);
    let json = paceline(["run", &fixture("verdicts.o:verdicts"), "--in", &input, "--json"]).json();
    assert_eq!(json["packets"], 8);
    assert_eq!(json["bytes"], 16);
    let verdicts = serde_json::json!({ "aborted": 2, "drop": 2, "pass": 2, "tx": 1, "redirect": 1 });
    assert_eq!(json["verdicts"], verdicts);
    assert_eq!(json["unknown_verdicts"], 1);
    assert_eq!(json["engine"], Engine::best().name());
    assert_eq!(json["program"], "verdicts");
    assert_eq!(json["capture"], input);
    assert!(json["seconds"].as_f64() > Some(0.0));
    assert!(json.get("maps").is_none() && json.get("error").is_none());
}

#[test]
fn a_count_ends_the_run_in_the_middle_of_a_burst() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &VERDICTS);
    let out = folder.text("out.pcap");
    let args = ["run", &fixture("verdicts.o"), "--in", &input, "--out", &out, "--count", "4", "--json"];
    assert_eq!(paceline(args).json()["packets"], 4);
    assert_eq!(packets(&out), [b"\x02c", b"\x03d"]);
    let args = ["run", &fixture("verdicts.o"), "--in", &input, "--count", "0", "--json"];
    assert_eq!(paceline(args).json()["packets"], 0);
}

#[test]
fn packets_come_out_as_the_program_left_them() {
    let folder = Folder::new();
    let mut tagged = vec![0xaa; 12];
    tagged.extend([0x81, 0, 0, 5, 8, 0]);
    tagged.extend([0x55; 46]);
    let mut plain = tagged.clone();
    plain.drain(12..16);
    let input = folder.capture("in.pcap", &[&tagged, &plain]);
    let out = folder.text("out.pcap");
    paceline(["run", &example("vlan.o:vlan_pop"), "--in", &input, "--out", &out]).ok();
    assert_eq!(packets(&out), [plain.clone(), plain]);
}

#[test]
fn the_format_of_the_input_is_kept() {
    let folder = Folder::new();
    let traffic = fs::read(example("traffic.pcapng")).unwrap();
    let (input, out) = (folder.write("in.pcapng", &traffic), folder.text("out.pcapng"));
    paceline(["run", &example("counter.o"), "--in", &input, "--out", &out]).ok();
    assert_eq!(fs::read(out).unwrap()[..4], traffic[..4]);
}

#[test]
fn standard_input_and_output_carry_captures() {
    let mut child = command()
        .args(["run", &fixture("verdicts.o"), "--in", "-", "--out", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&capture(&VERDICTS)).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let folder = Folder::new();
    let written = folder.write("out.pcap", &output.stdout);
    assert_eq!(packets(written).len(), 4);
    let json: serde_json::Value = serde_json::from_slice(&output.stderr).expect("the summary goes to stderr");
    assert_eq!(json["packets"], 8);
}

#[test]
fn names_need_not_be_utf8_and_may_have_colons() {
    let folder = Folder::new();
    let at = |name: &[u8]| folder.path(OsStr::from_bytes(name));
    fs::copy(example("vlan.o"), at(b"v\xfflan.o")).unwrap();
    fs::copy(example("counter.o"), at(b"vlan.o:vlan_pop")).unwrap();
    fs::write(at(b"in\xff.pcap"), capture(&[&[0; 60]])).unwrap();
    let run = |object: Vec<u8>| {
        let args: [OsString; 7] = [
            "run".into(),
            folder
                .path("")
                .into_os_string()
                .into_vec()
                .into_iter()
                .chain(object)
                .collect::<Vec<_>>()
                .into_os(),
            "--in".into(),
            at(b"in\xff.pcap").into(),
            "--out".into(),
            at(b"out\xff.pcap").into(),
            "--json".into(),
        ];
        paceline(args).json()
    };
    assert_eq!(run(b"v\xfflan.o:vlan_push".to_vec())["program"], "vlan_push");
    assert_eq!(packets(at(b"out\xff.pcap")).len(), 1);
    assert_eq!(run(b"vlan.o:vlan_pop".to_vec())["program"], "counter", "the file of the whole name wins");
}

trait IntoOs {
    fn into_os(self) -> OsString;
}

impl IntoOs for Vec<u8> {
    fn into_os(self) -> OsString {
        OsString::from_vec(self)
    }
}

#[test]
fn devices_may_be_given_twice() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &VERDICTS);
    let args = ["run", &fixture("verdicts.o"), "--in", &input, "--out", "/dev/null", "--drops", "/dev/null"];
    paceline(args).ok();
}

#[test]
fn an_output_is_replaced_whole() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &VERDICTS);
    let out = folder.write("out.pcap", [b'x'; 10_000]);
    paceline(["run", &fixture("verdicts.o"), "--in", &input, "--out", &out]).ok();
    assert_eq!(packets(&out).len(), 4);
}

#[test]
fn whoever_stops_reading_ends_the_command_quietly() {
    for args in [
        vec!["dump".to_owned(), example("firewall.o")],
        vec![
            "run".to_owned(),
            example("counter.o"),
            "--in".into(),
            example("traffic.pcap"),
            "--out".into(),
            "-".into(),
        ],
    ] {
        let mut child = command().args(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (output.status.code(), String::from_utf8(output.stderr).unwrap()),
            (Some(0), String::new())
        );
    }
}

#[test]
fn an_interrupt_leaves_outputs_whole() {
    let folder = Folder::new();
    let out = folder.path("out.pcap");
    let mut child = command()
        .args(["run", &fixture("verdicts.o"), "--in", "-", "--json", "--out"])
        .arg(&out)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    input.write_all(&capture(&[b"\x02packet"])).unwrap();
    wait_for(&out);
    interrupt(&child);
    // It has its first packet already or gets it now, and then looks whether it was interrupted.
    let record = capture(&[b"\x02packet"]).split_off(24);
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.try_wait().unwrap().is_none() && Instant::now() < deadline {
        if input.write_all(&record).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["interrupted"], true);
    assert_eq!(json["packets"], packets(&out).len());
}

fn wait_for(path: &Path) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !fs::metadata(path).is_ok_and(|m| m.len() >= 24) {
        assert!(Instant::now() < deadline, "no output was created");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn interrupt(child: &Child) {
    let status =
        std::process::Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status().unwrap();
    assert!(status.success());
}

#[test]
fn packets_are_printed_with_their_verdicts_and_reasons() {
    let (traffic, firewall) = (example("traffic.pcap"), example("firewall.o"));
    let run = |more: &[&str]| paceline(["run", &firewall, "--in", &traffic, "--print"].iter().chain(more));
    let done = run(&[]);
    assert!(done.err.contains("  drop  "), "the report goes aside: {}", done.err);
    let out = done.ok();
    let json = paceline(["run", &firewall, "--in", &traffic, "--json"]).json();
    let of = |out: &str, verdict: &str| {
        out.lines().filter(|line| line.split_whitespace().nth(2) == Some(verdict)).count()
    };
    for verdict in ["drop", "pass"] {
        assert_eq!(json["verdicts"][verdict], of(&out, verdict), "{verdict}");
    }
    let first = "     1  22:13:20.000000 pass     ARP, Request who-has 192.0.2.1 tell 192.0.2.30, length 46";
    assert_eq!(out.lines().next(), Some(first));
    // The number is that of `why`, and so is the sentence.
    let out = run(&["--why"]).ok();
    let line = out.lines().find(|line| line.contains(" drop ")).expect("a dropped packet");
    let number = line.split_whitespace().next().unwrap();
    let why = paceline(["why", &firewall, "--in", &traffic, "--packet", number, "--brief"]).ok();
    let (_, sentence) = why.trim_end().split_once(": ").unwrap();
    assert!(line.ends_with(&format!("  [{sentence}]")), "{line}: {sentence}");
    let scanned = paceline(["scan", "", &traffic, "--print", "--program", &firewall]).ok();
    assert_eq!(scanned.lines().count(), out.lines().count());
    let dropped = |line: &&str| line.split_whitespace().nth(1) == Some("drop");
    assert_eq!(scanned.lines().filter(dropped).count(), of(&out, "drop"));
    run(&["--json"]).fails(2, "", &["cannot be used with"]);
    run(&["--out", "-"]).fails(1, "--print", &["is the same file as"]);
}

#[test]
fn variables_are_set_one_by_one() {
    let (object, folder) = (fixture("types.o"), Folder::new());
    let input = folder.capture("in.pcap", &[&[0; 60]]);
    let rodata = folder.write("rodata.json", r#"{"factor": 3}"#);
    let run =
        |more: &[&str]| paceline(["run", &object, "--in", &input, "--maps", "--json"].iter().chain(more));
    let given = format!(".rodata={rodata}");
    let json = run(&["--map", &given, "--set", "factor=10", "--set", "verdict=DENY"]).json();
    assert_eq!(json["maps"][".rodata"], serde_json::json!({ "factor": 10, "verdict": "DENY" }));
    let written =
        ["run", &fixture("written.o:written"), "--in", &input, "--maps", "--set", "passed_port=htons(80)"];
    assert!(paceline(written).ok().contains("  passed_port = htons(80)\n"));
    run(&["--set", "facto=1"]).fails(
        1,
        "--set facto: there is no global variable",
        &["did you mean `factor`?"],
    );
    run(&["--set", "factor=x"]).fails(1, "--set: map .rodata, variable factor: ", &["a number"]);
    run(&["--set", "factor"]).fails(2, "", &["NAME=VALUE"]);
    let tests = folder.text("tests");
    paceline(["generate", &fixture("types.o"), "--few", "--set", "factor=7", "--tests", &tests]).ok();
    let names = fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().path());
    let file = names.into_iter().find(|name| name.to_string_lossy().ends_with(".test.toml")).unwrap();
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("maps.\".rodata\" = { \"factor\" = 7 }\n"), "{text}");
    assert!(paceline(["test", &tests]).ok().contains(" 0 failed"));
}
