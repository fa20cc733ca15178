//! `paceline generate`: inputs as tests that pass, as a capture, as JSON.

use std::fs;

use crate::common::{Folder, example, fixture, paceline};

#[test]
fn generated_tests_pass() {
    let examples = ["vlan.o", "sampler.o", "reflector.o", "counter.o"].map(example);
    // Values that are arrays for each CPU, prefixes, addresses, and maps in maps.
    let fixtures = ["router.o", "written.o", "types.o", "state.o"].map(fixture);
    for name in examples.into_iter().chain(fixtures) {
        let folder = Folder::new();
        let tests = folder.text("tests");
        paceline(["generate", &name, "--tests", &tests]).ok();
        let files = fs::read_dir(&tests).unwrap().count();
        assert!(files > 0, "{name}");
        let tested = paceline(["test", &tests]).ok();
        assert!(tested.contains(" passed, 0 failed"), "{name}: {tested}");
    }
}

/// Networks are in files of their own, which go when the tests are made anew.
#[test]
fn inputs_come_with_networks() {
    let folder = Folder::new();
    let tests = folder.text("tests");
    let networks = || {
        let files =
            fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        files.filter(|name| name.ends_with(".network.json")).count()
    };
    paceline(["generate", &fixture("router.o"), "--tests", &tests]).ok();
    let text = fs::read_to_string(format!("{tests}/route.test.toml")).unwrap();
    assert!(text.contains("redirect = 2\n") && text.contains("\nnetwork = \"route.slot-"), "{text}");
    let all = networks();
    paceline(["generate", &fixture("router.o"), "--few", "--tests", &tests]).ok();
    assert!((1..all).contains(&networks()));
    let json = paceline(["generate", &fixture("router.o"), "--few", "--json"]).json();
    let reached = json["programs"][0]["reached"].as_array().unwrap();
    assert!(reached.iter().any(|input| input["network"].as_str().is_some_and(|text| text.contains("eth2"))));
}

/// Tests expect what the program changes in maps, and where it redirects packets to.
#[test]
fn generated_tests_expect_all_effects() {
    let text = |name: &str, file: &str| {
        let folder = Folder::new();
        let tests = folder.text("tests");
        paceline(["generate", &example(name), "--tests", &tests]).ok();
        fs::read_to_string(format!("{tests}/{file}")).unwrap()
    };
    let vlan = text("vlan.o", "vlan_push.test.toml");
    assert!(vlan.contains("after.\"vlans\" = [{ \"key\" = 100, \"value\" = 1 }]"), "{vlan}");
    assert!(vlan.contains("goes on, other bytes\""), "{vlan}");
    let sampler = text("sampler.o", "sample_every.test.toml");
    assert!(sampler.contains("verdict = \"redirect\"") && sampler.contains("\nredirect = "), "{sampler}");
}

#[test]
fn goals_have_their_tables() {
    let told = |goal: &str, object: &str| paceline(["generate", &example(object), "--goal", goal]).ok();
    let verdicts = told("verdicts", "vlan.o");
    assert!(verdicts.contains("vlan_push: 5 verdicts at exits: 2 reached by 2 inputs"), "{verdicts}");
    assert!(verdicts.contains("(redirect)"), "{verdicts}");
    let maps = told("maps", "counter.o");
    assert!(maps.contains("counter: 13 outcomes of map operations: 8 reached by"), "{maps}");
    assert!(maps.contains("(finds no element)"), "{maps}");
    let paths = told("paths", "vlan.o");
    assert!(paths.contains("vlan_push: 11 paths, and no others"), "{paths}");
    let few = paceline(["generate", &example("vlan.o"), "--goal", "paths", "--paths", "3"]).ok();
    assert!(few.contains("vlan_push: 3 paths, and perhaps more"), "{few}");
}

#[test]
fn workers_change_nothing() {
    let json =
        |workers: &str| paceline(["generate", &example("vlan.o"), "--json", "--workers", workers]).ok();
    assert_eq!(json("1"), json("3"));
}

#[test]
fn versions_are_compared_on_all_inputs() {
    let vlan = example("vlan.o");
    let same = paceline(["diff", &vlan, &vlan, "--all"]).ok();
    assert!(
        same.contains("vlan_push: no input tells them apart, for packets of 1 to 3520 bytes, "),
        "{same}"
    );
    let done = paceline(["diff", &format!("{vlan}:vlan_pop"), &format!("{vlan}:vlan_push"), "--all"]);
    assert_eq!(done.status, Some(1));
    assert!(done.out.contains("differ on"), "{}", done.out);
    let json = paceline(["diff", &vlan, &vlan, "--all", "--json"]).json();
    assert_eq!(json["programs"][0]["proved"], true, "{json}");
    let missing = paceline(["diff", &vlan, &example("counter.o"), "--all"]);
    assert_eq!(missing.status, Some(1));
    assert!(missing.err.contains("has no program vlan_pop"), "{}", missing.err);
    // An option without effect is refused.
    let seed = paceline(["diff", &vlan, &vlan, "--all", "--seed", "1"]);
    assert_eq!(seed.status, Some(2), "{}", seed.err);
}

#[test]
fn differences_have_all_that_an_input_needs() {
    let object = example("protocols.o");
    let done = paceline(["diff", &format!("{object}:tcp"), &format!("{object}:udp"), "--all", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    let found = json["programs"][0]["differ"].as_array().unwrap();
    assert!(found.iter().all(|one| {
        one["maps"].is_object() && ["time_ns", "ingress", "queue"].iter().all(|key| one[key].is_u64())
    }));
    assert!(found.iter().any(|one| !one["maps"].as_object().unwrap().is_empty()), "{json:#}");
    assert!(
        found.iter().all(|one| one["old"]["traces"] == "" && one["new"]["metadata"].is_string()),
        "{json:#}"
    );
}

#[test]
fn programs_that_one_object_alone_has_are_told() {
    let folder = Folder::new();
    let other = folder.text("other.o");
    // The same programs, one of which has another name.
    let mut bytes = fs::read(example("vlan.o")).unwrap();
    let places: Vec<_> = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(b"vlan_pop\0")).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at + 7] = b'x');
    fs::write(&other, bytes).unwrap();
    let old = example("vlan.o");
    let done = paceline(["diff", &old, &other, "--all"]);
    assert_eq!(done.status, Some(1), "no proof of all programs");
    assert!(done.out.contains("vlan_push: no input tells them apart"), "{}", done.out);
    assert!(done.out.contains("vlan.o:vlan_pop: only the old object has it\n"), "{}", done.out);
    assert!(done.out.contains("other.o:vlan_pox: only the new object has it\n"), "{}", done.out);
    let json = paceline(["diff", &old, &other, "--all", "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).expect("JSON");
    assert_eq!(json["only"]["new"], serde_json::json!([format!("{other}:vlan_pox")]));
    // With a named program, others are not compared.
    let named = paceline(["diff", &format!("{old}:vlan_push"), &other, "--all"]).ok();
    assert!(!named.contains("only the"), "{named}");
}

#[test]
fn maps_are_not_given_to_a_comparison() {
    let folder = Folder::new();
    let file = folder.text("vlans.json");
    fs::write(&file, "[]").unwrap();
    let vlan = example("vlan.o");
    let done = paceline(["diff", &vlan, &vlan, "--all", "--map", &format!("vlans={file}")]);
    assert_eq!(done.status, Some(1));
    assert!(done.err.contains("only variables can be given"), "{}", done.err);
}

/// An example and the same source that the compiler optimized less: no input tells them apart.
#[test]
fn another_optimization_changes_nothing() {
    let proved = paceline(["diff", &example("vlan.o"), &fixture("vlan.o1.o"), "--all"]).ok();
    // Of each of its two programs.
    assert_eq!(
        [proved.matches("no input tells them apart").count(), proved.lines().count()],
        [2; 2],
        "{proved}"
    );
}

/// The kernel comes to the same verdicts, packets and maps.
#[test]
fn generated_tests_pass_in_the_kernel() {
    if !paceline_testkit::kernel::available_for("generated_tests_pass_in_the_kernel") {
        return;
    }
    for name in ["vlan.o", "reflector.o", "counter.o", "protocols.o"] {
        let folder = Folder::new();
        let tests = folder.text("tests");
        paceline(["generate", &example(name), "--tests", &tests]).ok();
        let json = paceline(["test", &tests, "--kernel", "--jobs", "1", "--json"]);
        let json: serde_json::Value = serde_json::from_str(&json.out).expect("a report");
        assert_eq!(json["failed"], 0, "{name}: {json:#}");
        assert!(json["passed"].as_u64() > Some(8), "{name}: {json:#}");
        let errors: Vec<_> =
            json["tests"].as_array().unwrap().iter().filter(|test| test["status"] == "error").collect();
        let short = "test runs take packets of 14 bytes or more, and this one has ";
        assert!(errors.iter().all(|test| test.to_string().contains(short)), "{name}: {errors:#?}");
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
fn json_has_all_that_an_input_needs() {
    let json = paceline(["generate", &example("sampler.o"), "--json"]).json();
    let programs = json["programs"].as_array().unwrap();
    let sides = || programs.iter().flat_map(|program| program["reached"].as_array().unwrap());
    assert!(sides().all(|side| {
        side["maps"].is_object() && ["time_ns", "ingress", "queue"].iter().all(|key| side[key].is_u64())
    }));
    assert!(sides().any(|side| side["seed"].is_u64()), "{json}");
    assert!(sides().any(|side| side["maps"][".bss"]["sampled"].is_u64()), "{json}");
}

#[test]
fn own_files_are_not_replaced() {
    let folder = Folder::new();
    let tests = folder.text("tests");
    let object = example("sampler.o");
    let generate = || paceline(["generate", &object, "--tests", &tests]);
    generate().ok();
    let names = || -> Vec<_> {
        let mut names: Vec<_> = fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        // Test files first.
        names.sort_by_key(|name| !name.to_string_lossy().ends_with(".test.toml"));
        names
    };
    let made = names();
    // Files of seeds that are not found again are removed; others stay.
    let stale = format!("{tests}/sample_random.seed-987654321.test.toml");
    let first = fs::read_to_string(&made[0]).unwrap();
    fs::write(&stale, &first).unwrap();
    fs::write(format!("{tests}/other.seed-1.test.toml"), &first).unwrap();
    generate().ok();
    assert_eq!(names().len(), made.len() + 1);
    assert!(!fs::exists(&stale).unwrap());
    // A file without the first line is somebody's own.
    let edited = first.split_once('\n').unwrap().1;
    fs::write(&made[0], edited).unwrap();
    let done = generate();
    assert_eq!(done.status, Some(1));
    assert!(done.err.contains("not one that `paceline generate` made"), "{}", done.err);
    assert_eq!(fs::read_to_string(&made[0]).unwrap(), edited);
}

#[test]
fn only_variables_are_given() {
    let folder = Folder::new();
    let file = folder.text("map.json");
    fs::write(&file, "[]").unwrap();
    let object = example("counter.o");
    let json = paceline(["inspect", &object, "--json"]).json();
    let mut maps =
        json["maps"].as_array().unwrap().iter().map(|map| map["name"].as_str().unwrap().to_owned());
    let map = maps.find(|name| !name.starts_with('.')).unwrap();
    let done = paceline(["generate", &object, "--map", &format!("{map}={file}")]);
    assert_eq!(done.status, Some(1));
    assert!(done.err.contains("only variables can be given"), "{}", done.err);
    let shape = format!("{map}=entries:64");
    let done = paceline(["generate", &object, "--map", &shape, "--tests", &folder.text("tests")]);
    assert_eq!(done.status, Some(1));
    assert!(done.err.contains("test files cannot say the shape"), "{}", done.err);
    // The longest limit.
    assert_eq!(paceline(["generate", &object, "--limit", "18446744073709551615"]).status, Some(2));
}

#[test]
fn a_refused_program_is_told() {
    let done = paceline(["generate", &fixture("no_bounds_check.o")]);
    assert_eq!(done.status, Some(1));
    assert!(done.err.contains("no_bounds_check.bpf.c"), "{}", done.err);
}
