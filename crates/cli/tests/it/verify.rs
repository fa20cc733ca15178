//! `paceline verify`, and that `run` verifies.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Done, Folder, command, example, fixture, paceline};

/// Programs with one mistake each, in `fixtures/`; `refusals/` has what is said about them.
const MISTAKES: [&str; 16] = [
    "no_bounds_check",
    "wrong_pointer",
    "no_null_check",
    "variable_offset",
    "stale_pointer",
    "unbounded_loop",
    "uninitialized",
    "leak",
    "leak_socket",
    "packet_loop",
    "deep_stack",
    "wrong_helper",
    "in_function",
    "no_license",
    "off_by_one",
    "unoptimized",
];

fn tests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests")
}

/// Runs in the folder of the fixtures, so that messages have short names.
fn verify(args: &[&str]) -> Done {
    let mut command = command();
    command.current_dir(tests().join("fixtures")).arg("verify").args(args);
    command.output().expect("the command starts").into()
}

/// With `PACELINE_BLESS=1` in the environment the kept texts are written instead of compared.
#[test]
fn refusals_are_told_as_they_were() {
    for name in MISTAKES {
        let done = verify(&[&format!("{name}.o")]);
        assert_eq!((done.status, done.out.as_str()), (Some(1), ""), "{name}: {}", done.err);
        let kept = tests().join(format!("refusals/{name}.txt"));
        if std::env::var_os("PACELINE_BLESS").is_some() {
            fs::write(&kept, &done.err).unwrap();
        }
        assert_eq!(done.err, fs::read_to_string(&kept).unwrap_or_default(), "{name}");
    }
}

#[test]
fn refusals_in_json_have_place_cause_and_path() {
    let done = verify(&["--json", "wrong_pointer.o"]);
    assert_eq!(done.status, Some(1), "{}", done.err);
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(json["object"], "wrong_pointer.o");
    let program = &json["programs"][0];
    let expected = serde_json::json!({
        "name": "wrong_pointer",
        "verdict": "refused",
        "unsupported": false,
        "slot": 6,
        "line": 17,
        "column": 10,
        "source": "if (ip->protocol == 6)",
        "instruction": "r1 = *(u8 *)(r1 + 23)",
    });
    for (member, value) in expected.as_object().unwrap() {
        assert_eq!(&program[member], value, "{member} in {program}");
    }
    assert!(program["file"].as_str().unwrap().ends_with("wrong_pointer.bpf.c"));
    assert_eq!(program["cause"]["kind"], "out_of_bounds");
    assert!(program["cause"]["text"].as_str().unwrap().starts_with("r1: invalid access to packet"));
    assert_eq!(program["registers"]["r1"], "pointer to packet, 14 bytes checked");
    assert_eq!(program["hint"]["kind"], "short_bounds_check");
    assert!(program["hint"]["example"].as_str().unwrap().contains("> data_end)"));
    assert_eq!(program["path"].as_array().unwrap().len(), 1);
    assert_eq!(program["path"][0]["taken"], false);
    assert_eq!(program["path"][0]["line"], 15);
    assert_eq!(program["marks"][0]["line"], 11);
    assert!(program["stats"]["seconds"].as_f64() > Some(0.0));
}

#[test]
fn accepted_programs_come_with_the_work_they_were() {
    let json = paceline(["verify", "--json", &example("vlan.o")]).json();
    let programs = json["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 2);
    for program in programs {
        assert_eq!(program["verdict"], "accepted");
        assert!(program["stats"]["instructions"].as_u64() >= Some(50), "{program}");
        assert!(program["stats"]["peak_states"].as_u64() >= Some(1), "{program}");
    }
    let one = paceline(["verify", &example("vlan.o:vlan_pop")]).ok();
    assert_eq!(one.lines().count(), 1);
    let start = format!("{}: vlan_pop: accepted; ", example("vlan.o"));
    assert!(one.starts_with(&start) && one.contains(" instructions simulated, at most "), "{one}");
}

#[test]
fn what_people_run_is_accepted() {
    let mut objects = Vec::new();
    for folder in ["../../examples", "/usr/lib/x86_64-linux-gnu/bpf"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let Ok(entries) = fs::read_dir(folder) else { continue };
        let paths = entries.map(|entry| entry.unwrap().path());
        objects.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "o")));
    }
    assert!(objects.len() >= 6);
    for object in objects {
        let done = paceline(["verify".as_ref(), object.as_os_str()]);
        if !done.err.contains("in the object; it has ") {
            done.ok();
        }
    }
}

#[test]
fn the_log_has_every_instruction_with_what_is_known() {
    let out = verify(&["--log", "verdicts.o"]).ok();
    for part in [
        "; function verdicts\n",
        "; r1 is pointer to context\n",
        "pointer to packet",
        "        the path ends\n",
        "\nfrom ",
        "; return data + 1 > end ? XDP_ABORTED : *data; @ ",
        "verdicts.o: verdicts: accepted; ",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let refused = verify(&["--log", "no_null_check.o"]);
    assert_eq!(refused.status, Some(1));
    let last = refused.out.lines().last().unwrap();
    assert!(last.contains("r1 = *(u64 *)(r0 + 0)") && last.contains("map value or null"), "{last}");
    assert!(refused.err.starts_with("error: no_null_check.o: program no_null_check is refused"));
}

#[test]
fn usage_is_checked() {
    paceline(["verify"]).fails(2, "the following required arguments", &["<OBJECT[:PROGRAM]>"]);
    paceline(["verify", "a.o", "--log", "--json"]).fails(2, "the argument '--log' cannot be used", &[]);
    paceline(["verify", "/nowhere.o"]).fails(1, "/nowhere.o: No such file", &[]);
    let vlan = example("vlan.o");
    paceline(["verify", &format!("{vlan}:vlan_pup")]).fails(
        1,
        &format!("{vlan}: no program"),
        &["did you mean"],
    );
}

#[test]
fn run_refuses_what_is_not_safe_unless_told_otherwise() {
    let folder = Folder::new();
    let (input, out) = (folder.capture("in.pcap", &[&[1; 60]]), folder.text("out.pcap"));
    let object = fixture("no_bounds_check.o");
    let done = paceline(["run", &object, "--in", &input, "--out", &out]);
    done.fails(
        1,
        &format!("{object}: program no_bounds_check is refused: r1: invalid access to packet"),
        &["no_bounds_check.bpf.c:12:14", "compare the pointer", "hint: `paceline run --unverified`"],
    );
    assert!(!fs::exists(&out).unwrap(), "nothing is written");
    let done = paceline(["run", &object, "--in", &input, "--out", &out, "--unverified", "--json"]);
    assert_eq!(done.json()["packets"], 1);
}

#[test]
fn what_is_missing_is_told_apart_from_what_is_not_safe() {
    let object = fixture("missing.o");
    let done = verify(&["--json", "missing.o"]);
    assert_eq!(done.status, Some(1));
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(json["programs"][0]["unsupported"], true);
    paceline(["verify", &object]).fails(
        1,
        &format!(
            "{object}: program missing needs what Paceline does not have: helper bpf_get_current_pid_tgid"
        ),
        &[],
    );
}
