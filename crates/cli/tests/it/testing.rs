//! `paceline test`: files of tests, their results, and their updates.

use std::fs;
use std::path::Path;

use crate::common::{Done, Folder, example, fixture, paceline};

fn test(arguments: &[&str]) -> Done {
    paceline([&["test"], arguments].concat())
}

/// A folder with a test file for the firewall.
fn folder(tests: &str) -> (Folder, String) {
    let folder = Folder::new();
    let text = format!("object = \"{}\"\n{tests}", example("firewall.o"));
    folder.write("a.test.toml", &text);
    let path = folder.text("a.test.toml");
    (folder, path)
}

#[test]
fn the_tests_of_the_examples_pass_on_every_engine() {
    let tests = example("tests");
    let out = test(&[&tests, "--engine", "jit", "--engine", "threaded", "--engine", "plain", "--shuffle=3"]);
    let out = out.ok();
    assert!(out.lines().last().unwrap().contains("passed, 0 failed"), "{out}");
    let names = fs::read_dir(&tests).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let files = names.filter(|name| name.ends_with(".test.toml") || name.ends_with(".o")).count();
    let listed = test(&[&tests, "--list"]).ok();
    let named: std::collections::BTreeSet<_> =
        listed.lines().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(named.len(), files);
}

/// Results of the tests in the fixture, by their names.
const IN_C: [(&str, &str); 6] = [
    ("cannot start", "error"),
    ("fails", "failed"),
    ("goes on", "passed"),
    ("has no status", "failed"),
    ("is skipped", "skipped"),
    ("tags fill arrays", "passed"),
];

fn of_json(done: &Done) -> Vec<(String, String)> {
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    json["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| (text(&test["name"]), text(&test["status"])))
        .collect()
}

fn expected() -> Vec<(String, String)> {
    IN_C.iter().map(|(name, status)| ((*name).to_owned(), (*status).to_owned())).collect()
}

#[test]
fn tests_in_c_run_in_the_order_of_their_names_and_show_their_logs() {
    let object = fixture("in_c.o");
    let done = test(&[&object]);
    assert_eq!(done.status, Some(1));
    for part in [
        "the packet generator program cannot_start returned 100, which is an error\n",
        "       ./crates/cli/tests/fixtures/in_c.bpf.c:35: 3520 bytes, -3\n",
        "       ./crates/cli/tests/fixtures/in_c.bpf.c:36: the last line\n",
        "the check program returned 17, which is no status\n",
        "SKIP   ",
        "in_c.bpf.c:54: not today\n",
        "2 passed, 2 failed, 1 skipped, 1 not run in ",
    ] {
        assert!(done.out.contains(part), "no {part:?} in {}", done.out);
    }
    for engine in ["jit", "threaded", "plain"] {
        assert_eq!(
            of_json(&test(&[&object, "--json", "--engine", engine, "--shuffle=3"])),
            expected(),
            "{engine}"
        );
    }
    assert_eq!(of_json(&test(&[&object, "--json", "--unverified"])), expected());
    let only = test(&[&object, "--filter", "goes"]);
    // It is the first one to run now.
    assert!(only.out.contains("in_c.bpf.c:46: 0 runs before\n"), "{}", only.out);
}

#[test]
fn tests_in_c_are_found_in_folders_and_reported() {
    let folder = Folder::new();
    fs::copy(fixture("in_c.o"), folder.path("tests.o")).unwrap();
    fs::copy(example("firewall.o"), folder.path("firewall.o")).unwrap();
    folder.write("no.o", "not an object /test/ /check\0");
    let (junit, coverage) = (folder.text("junit.xml"), folder.text("coverage.info"));
    let done = test(&[&folder.text(""), "--junit", &junit, "--coverage", &coverage]);
    assert_eq!(done.status, Some(1));
    let xml = fs::read_to_string(&junit).unwrap();
    for part in [
        "tests=\"6\" failures=\"2\" errors=\"1\" skipped=\"1\"",
        "<skipped message=",
        "in_c.bpf.c\" line=\"29\"",
    ] {
        assert!(xml.contains(part), "no {part:?} in {xml}");
    }
    let lcov = fs::read_to_string(&coverage).unwrap();
    assert!(lcov.contains("in_c.bpf.c\n") && lcov.contains("FNDA:1,fails\n"), "{lcov}");
    let listed = test(&[&folder.text("tests.o"), "--list"]).ok();
    assert!(listed.contains("tests.o: fails (./crates/cli/tests/fixtures/in_c.bpf.c:29)\n"), "{listed}");
    let without = test(&[&example("firewall.o")]);
    assert!(without.err.contains("firewall.o: the object has no tests"), "{}", without.err);
}

#[test]
fn tests_in_c_fare_the_same_in_the_kernel() {
    let done = test(&[&fixture("in_c.o"), "--json", "--kernel"]);
    if done.err.contains("takes root") {
        return crate::common::skip("tests_in_c_fare_the_same_in_the_kernel", &done.err);
    }
    assert_eq!(of_json(&done), expected());
}

#[test]
fn a_failure_shows_fields_and_the_line_that_decided() {
    let (_folder, path) = folder(
        r#"
[[test]]
name = "wrong"
packet = "eth / ipv4 / tcp dport=80"
verdict = "drop"
out = "eth / ipv4 ttl=63 / tcp dport=81"
after.counters = [{ key = 0, value = { packets = 2 } }, { key = 3, absent = true }]
redirect = 4
returns = 1
events = [{ map = "e" }]
"#,
    );
    let done = test(&[&path]);
    assert_eq!(done.status, Some(1));
    for part in [
        "FAILED ",
        "a.test.toml:5:10\n",
        "verdict: expected drop, got pass\n",
        "returns: expected 1 (XDP_DROP), got 2 (XDP_PASS)\n",
        "  ipv4.ttl: expected 63, got 64\n",
        "  tcp.dport: expected 81, got 80\n",
        "redirect: expected interface 4, got none\n",
        r#"after.counters[0]: expected {"packets":2}, got {"packets":1}"#,
        r#"after.counters[3]: expected no element, got {"packets":0,"bytes":0}"#,
        "events: expected 1, got 0\n",
        "the packet was passed at firewall.bpf.c:189 because tcp.dport is 80\n",
        "0 passed, 1 failed in ",
    ] {
        assert!(done.out.contains(part), "no {part:?} in {}", done.out);
    }
}

#[test]
fn updated_files_pass_and_keep_everything_else() {
    let tests = r#"
# A comment stays.
[[test]]
name = "one"
packet = "eth / ipv4 / tcp dport={port}"   # and this one
cases = [{ port = 80, verdict = "drop" }, { port = 23, verdict = "pass", out = "eth" }]

[[test]]
name = "two"
packet = { hex = "02 00 00 00 00 02 02 00 00 00 00 01 08 06" }

[[test]]
name = "three"
step = [{ packet = "eth / arp" }, { packet = "eth / arp", out = { len = 1 }, after.counters = [{ key = 1, value = { packets = 0 } }] }]
"#;
    let (folder, path) = folder(tests);
    let done = test(&[&path, "--update"]);
    assert!(done.err.contains("expectations written"), "{}", done.err);
    done.ok();
    let updated = fs::read_to_string(&path).unwrap();
    for part in [
        "# A comment stays.\n",
        "packet = \"eth / ipv4 / tcp dport={port}\"   # and this one\n",
        r#"{ port = 80, verdict = "pass" }, { port = 23, verdict = "drop", out = "same" }"#,
        "08 06\" }\nverdict = \"pass\"\n",
        r#"{ packet = "eth / arp", verdict = "pass" }"#,
        "out = { len = 42 }, after.counters = [{ key = 1, value = { packets = 2 } }]",
    ] {
        assert!(updated.contains(part), "no {part:?} in {updated}");
    }
    assert!(test(&[&path]).ok().contains("4 passed, 0 failed"));
    // Nothing is left to change, and no other file appears.
    test(&[&path, "--update"]).ok();
    assert_eq!(fs::read_to_string(&path).unwrap(), updated);
    assert_eq!(fs::read_dir(folder.path("")).unwrap().count(), 1);
}

/// Cases of one test share what they do not give themselves.
#[test]
fn cases_that_disagree_are_left_alone() {
    let tests = "[[test]]\nname = \"n\"\npacket = \"eth / ipv4 / tcp dport={p}\"\nverdict = \"tx\"\ncases = [{ p = 80 }, { p = 22 }]\n";
    let (_folder, path) = folder(&tests.replace("{ p = 22 }", "{ p = 23 }"));
    let before = fs::read_to_string(&path).unwrap();
    let done = test(&[&path, "--update"]);
    assert!(
        done.err.contains("1 expectations left: the cases of a test need different ones"),
        "{}",
        done.err
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), before);
}

#[test]
fn reports_for_tools_have_all_results() {
    let (folder, path) = folder(
        "[[test]]\nname = \"good & <bad>\"\npacket = \"eth / arp\"\nverdict = \"pass\"\n[[test]]\nname = \"no\"\npacket = \"eth\"\nverdict = \"tx\"\n",
    );
    let junit = folder.text("junit.xml");
    let done = test(&[&path, "--junit", &junit, "--json", "--shuffle=9"]);
    assert_eq!(done.status, Some(1));
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((&json["passed"], &json["failed"], &json["seed"]), (&1.into(), &1.into(), &9.into()));
    assert_eq!(json["tests"][0]["name"], "good & <bad>");
    assert_eq!(json["tests"][1]["status"], "failed");
    let xml = fs::read_to_string(&junit).unwrap();
    for part in [
        "<testsuites name=\"paceline\" tests=\"2\" failures=\"1\" errors=\"0\"",
        "name=\"good &amp; &lt;bad&gt;\"",
        "<failure message=",
        "verdict: expected tx, got pass",
    ] {
        assert!(xml.contains(part), "no {part:?} in {xml}");
    }
}

#[test]
fn bad_files_name_line_column_and_cause() {
    let cases = [
        ("[[test]\n", "2:8: ", "1"),
        ("[[test]]\nname = 1\n", "3:8: `name` must be a text", "1"),
        ("[[test]]\npacket = \"eth\"\n", "2:1: a test needs a `name`", "1"),
        (
            "[[test]]\nname = \"a\"\n",
            "3:8: a test has its packet itself, or a list of steps with packets",
            "1",
        ),
        (
            "[[test]]\nname = \"a\"\npacket = \"eth / ip4\"\n",
            "4:10: packet, column 7: no protocol is named `ip4`, perhaps `ipv4`",
            "1",
        ),
        (
            "[[test]]\nname = \"a\"\npacket = \"eth\"\nverdit = \"drop\"\n",
            "5:1: unknown key `verdit` in a test, perhaps `verdict`",
            "1",
        ),
        (
            "[[test]]\nname = \"a\"\npacket = \"eth\"\nverdict = \"droop\"\n",
            "5:11: `verdict` must be aborted, drop, pass, tx or redirect",
            "1",
        ),
        (
            "[[test]]\nname = \"a\"\npacket = \"eth / ipv4 ttl={t}\"\n",
            "4:10: no case has a value for `{t}`",
            "1",
        ),
        (
            "[[test]]\nname = \"a\"\npacket = \"eth\"\nout = { \"ipv4.tl\" = 3 }\n",
            "5:9: ipv4 has no field `tl`, perhaps `ttl`",
            "1",
        ),
        (
            "[[test]]\nname = \"a\"\npacket = \"eth\"\n[[test]]\nname = \"a\"\npacket = \"eth\"\n",
            "6:8: two tests are named `a`",
            "1",
        ),
        ("[[test]]\nname = \"a\"\npacket = { capture = \"none.pcap\" }\n", "none.pcap: No such file", "1"),
        ("tset = 1\n", "2:1: unknown key `tset` in a test file, perhaps `test`", "1"),
        ("", "there are no tests in these files", "1"),
    ];
    for (text, message, _) in cases {
        let (_folder, path) = folder(text);
        let done = test(&[&path]);
        assert_eq!(done.status, Some(1), "{text}");
        assert!(done.err.contains(message), "no {message:?} in {}", done.err);
    }
    let folder = Folder::new();
    folder.write("b.test.toml", "[[test]]\nname = \"a\"\npacket = \"eth\"\n");
    test(&[&folder.text("b.test.toml")]).fails(
        1,
        "",
        &["one of `object`, `objects` and `chain` must be given"],
    );
    let empty = Folder::new();
    test(&[&empty.text("")]).fails(1, "", &["there are no files *.test.toml"]);
    assert!(Path::new(&example("tests")).is_dir());
    test(&[&example("tests"), "--filter", "nothing like this"]).fails(
        1,
        "no test has a name or file with `nothing like this` in it",
        &[],
    );
}

/// An object that cannot be loaded fails the test, with the cause, and the others run.
#[test]
fn tests_that_cannot_run_are_errors() {
    let (_folder, path) =
        folder("maps.no_map = []\n[[test]]\nname = \"a\"\npacket = \"eth\"\nverdict = \"drop\"\n");
    let done = test(&[&path]);
    assert_eq!(done.status, Some(1));
    assert!(
        done.out.contains("ERROR ") && done.out.contains("the object has no map `no_map`"),
        "{}",
        done.out
    );
    assert!(done.out.contains("0 passed, 0 failed, 1 not run"), "{}", done.out);
}

#[test]
fn coverage_of_tests_and_runs_is_written_in_both_forms() {
    let folder = Folder::new();
    let (info, text) = (folder.text("c.info"), folder.text("c.txt"));
    let done = test(&[&example("tests"), "--coverage", &info]);
    assert!(done.err.contains("./examples/firewall.bpf.c"), "{}", done.err);
    done.ok();
    let lcov = fs::read_to_string(&info).unwrap();
    let programs = |line: &&str| {
        line.starts_with("SF:./examples/") && line.ends_with(".bpf.c") && !line.contains("/tests/")
    };
    let files = lcov.lines().filter(programs).count();
    assert_eq!(
        files,
        fs::read_dir(example(""))
            .unwrap()
            .filter(|e| e.as_ref().unwrap().path().extension().is_some_and(|e| e == "o"))
            .count()
    );
    // The firewall runs in the tests of one file: once for each packet of it.
    let record = lcov.split("end_of_record").find(|record| record.contains("firewall.bpf.c")).unwrap();
    let entered: u64 = record.lines().find_map(|line| line.strip_prefix("DA:408,")).unwrap().parse().unwrap();
    assert!(entered >= 25, "{record}");

    let (firewall, capture) = (example("firewall.o"), example("traffic.pcap"));
    for workers in ["1", "3"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut run = crate::common::command();
        run.args(["run", &firewall, "--in", &capture, "--coverage", &text, "--workers", workers])
            .current_dir(root);
        Done::from(run.output().unwrap()).ok();
        let listing = fs::read_to_string(&text).unwrap();
        assert!(
            listing.contains(
                "       492   408  \tstruct counter *counter = bpf_map_lookup_elem(&counters, &reason);\n"
            ),
            "{listing}"
        );
        assert!(listing.contains("         -   169  \t\treturn NULL;\n"), "{listing}");
    }
    // Counters are in no report, and chains have some for all programs.
    let report = paceline([
        "run",
        &firewall,
        &example("counter.o"),
        "--in",
        &capture,
        "--coverage",
        &info,
        "--maps",
        "--json",
    ])
    .json();
    assert!(!report.to_string().contains("paceline.coverage"));
    let lcov = fs::read_to_string(&info).unwrap();
    assert!(lcov.contains("FNDA:492,firewall\n") && lcov.contains(",counter\n"), "{lcov}");
    paceline(["run", &firewall, "--in", &capture, "--coverage", &capture]).fails(
        1,
        "--coverage",
        &["is the same file as"],
    );
}

/// The tool that most people read tracefiles with.
#[test]
fn genhtml_reads_tracefiles() {
    const TEST: &str = "genhtml_reads_tracefiles";
    let Ok(true) =
        std::process::Command::new("genhtml").arg("--version").output().map(|done| done.status.success())
    else {
        crate::common::skip(TEST, &"no genhtml");
        return;
    };
    let folder = Folder::new();
    let info = folder.text("c.info");
    test(&[&example("tests"), "--coverage", &info]).ok();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let genhtml = std::process::Command::new("genhtml")
        .args([&info, "--branch-coverage", "-o", &folder.text("html")])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(genhtml.status.success(), "{}", String::from_utf8_lossy(&genhtml.stderr));
    assert!(String::from_utf8_lossy(&genhtml.stdout).contains("lines......: "), "it has totals");
}

/// The kernel passes the tests of the examples as well, and fails one that does not hold.
#[test]
fn the_kernel_runs_the_same_tests() {
    const TEST: &str = "the_kernel_runs_the_same_tests";
    if !paceline_testkit::kernel::available_for(TEST) {
        return;
    }
    let out = test(&[&example("tests"), "--kernel", "--jobs", "1"]).ok();
    assert!(out.lines().last().unwrap().contains("passed, 0 failed in"), "{out}");
    let (_folder, path) = folder(
        "[[test]]\nname = \"n\"\nstep = [{ packet = \"eth / arp\", repeat = 3 }, { packet = \"eth / arp\", verdict = \"drop\", after.counters = [{ key = 1, value = { packets = 5 } }] }]\n",
    );
    let done = test(&[&path, "--kernel"]);
    assert_eq!(done.status, Some(1));
    for part in [
        "verdict: expected drop, got pass",
        r#"after.counters[1]: expected {"packets":5}, got {"packets":4}"#,
    ] {
        assert!(done.out.contains(part), "no {part:?} in {}", done.out);
    }
    test(&[&path, "--kernel", "--engine", "jit"]).fails(2, "", &["cannot be used with"]);
}

/// What a map holds afterwards is given as it is given before: elements of maps in maps, arrays for each CPU, addresses.
#[test]
fn maps_afterwards_are_compared_by_their_types() {
    let folder = Folder::new();
    let text = format!(
        r#"object = "{}:written"
[[test]]
name = "right"
packet = "eth / ipv4 src=10.0.0.1 / tcp dport=80"
maps.pairs = [{{ key = 0, value = [{{ a = 0, b = 0 }}, {{ a = 0, b = 0 }}, {{ a = 7, b = 0 }}, {{ a = 0, b = 0 }}] }}]
maps.tenants = [{{ key = 5, value = [{{ key = "10.0.0.1", value = 1 }}] }}, {{ key = 6, value = "hosts" }}]
verdict = "drop"
after.pairs = [{{ key = 0, value = [{{ a = 0, b = 0 }}, {{ a = 0 }}, {{ a = 7 }}, {{ b = 9 }}] }}, {{ key = 0, values = [{{ cpu = 0, value = [{{ a = 0 }}, {{}}, {{ a = "0x7" }}, {{}}] }}] }}]
after.tenants = [{{ key = 5, value = [{{ key = "10.0.0.1", value = 2 }}, {{ key = "10.0.0.2", absent = true }}] }}, {{ key = 6, value = "hosts" }}]
after.".bss" = {{ last_source = "10.0.0.1" }}

[[test]]
name = "wrong"
packet = "eth / ipv4 src=10.9.1.7 / tcp dport=80"
maps.blocked = [{{ key = "10.9.1.0/24", value = 1 }}]
maps.services = [{{ key = "htons(80)", value = {{ address = "10.0.0.1", port = "htons(8080)" }} }}]
maps.tenants = [{{ key = 5, value = [{{ key = "10.0.0.1", value = 1 }}] }}, {{ key = 7, value = [] }}]
after.blocked = [{{ key = "10.9.1.0/24", value = 2 }}]
after.services = [{{ key = "htons(80)", value = {{ address = "10.0.0.2", port = "htons(8081)" }} }}, {{ key = "htons(80)", value = {{ adress = 1 }} }}]
after.pairs = [{{ key = 0, value = [{{ a = 1 }}] }}]
after.tenants = [{{ key = 5, value = [{{ key = "10.0.0.1", value = 3 }}] }}, {{ key = 6, value = [] }}, {{ key = 7, value = "hosts" }}]
after.".bss" = {{ last_source = "10.0.0.1" }}
"#,
        fixture("written.o")
    );
    let path = folder.write("a.test.toml", text);
    let done = test(&[&path]);
    assert_eq!(done.status, Some(1));
    for part in [
        "a.test.toml: right\n",
        "after.blocked[\"10.9.1.0/24\"]: expected 2, got 1\n",
        "after.services[\"htons(80)\"]: map services, value: `struct service` has no member `adress`; did you mean `address`?\n",
        "after.pairs[0]: expected [{\"a\":1},",
        "after.tenants[5][\"10.0.0.1\"]: expected 3, got 1\n",
        "after.tenants[6]: expected an element, got none\n",
        "after.tenants[7]: expected map `hosts`, got a map without a name\n",
        "after..bss: expected {\"last_source\":\"10.0.0.1\"}, got {\"last_source\":\"10.9.1.7\"}\n",
        "because blocked[10.9.1.7] is matched by 10.9.1.0/24\n",
        "1 passed, 1 failed in",
    ] {
        assert!(done.out.contains(part), "no {part:?} in {}", done.out);
    }
    fs::write(
        &path,
        fs::read_to_string(&path).unwrap().replace(", { key = \"htons(80)\", value = { adress = 1 } }", ""),
    )
    .unwrap();
    test(&[&path, "--update"]).ok();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("{ address = \"10.0.0.1\", port = \"htons(8080)\" }"), "{text}");
    assert!(test(&[&path]).ok().contains("2 passed, 0 failed in"));
}

/// The kernel's maps have what ours have: maps in maps, values of queues and stacks; and whatever it does not get is told.
#[test]
fn the_kernel_gets_what_maps_hold() {
    const TEST: &str = "the_kernel_gets_what_maps_hold";
    if !paceline_testkit::kernel::available_for(TEST) {
        return;
    }
    let folder = Folder::new();
    let text = format!(
        r#"object = "{}:written"
[[test]]
name = "no map"
packet = "eth / ipv4 src=10.0.0.1 / tcp dport=80"
verdict = "pass"
[[test]]
name = "no element"
packet = "eth / ipv4 src=10.0.0.1 / tcp dport=80"
maps.tenants = [{{ key = 5, value = [{{ key = "10.0.0.2", value = 1 }}] }}]
verdict = "pass"
after.tenants = [{{ key = 5, value = [{{ key = "10.0.0.2", value = 1 }}, {{ key = "10.0.0.1", absent = true }}] }}]
[[test]]
name = "element"
step = [
    {{ packet = "eth / ipv4 src=10.0.0.1 / tcp dport=80", verdict = "drop", after.tenants = [{{ key = 5, value = [{{ key = "10.0.0.1", value = 2 }}] }}] }},
    {{ packet = "eth / ipv4 src=10.0.0.1 / tcp dport=80", verdict = "drop", after.tenants = [{{ key = 5, value = [{{ key = "10.0.0.1", value = 3 }}] }}] }},
]
maps.tenants = [{{ key = 5, value = [{{ key = "10.0.0.1", value = 1 }}] }}]
[[test]]
name = "a map by name"
packet = "eth / ipv4 src=10.0.0.1 / tcp dport=80"
maps.hosts = [{{ key = "10.0.0.1", value = 7 }}]
maps.tenants = [{{ key = 5, value = "hosts" }}]
verdict = "drop"
after.hosts = [{{ key = "10.0.0.1", value = 8 }}]
"#,
        fixture("written.o")
    );
    let path = folder.write("a.test.toml", text);
    let tickets = format!(
        r#"object = "{}:ticket"
[[test]]
name = "tickets go back, one more each"
maps.tickets = [{{ value = 7 }}, {{ value = 8 }}]
maps.numbered = [{{ key = 3, value = [{{ key = 8, value = 1 }}, {{ key = 9, value = 5 }}] }}]
step = [
    {{ packet = "eth / ipv4", verdict = "tx", after.numbered = [{{ key = 3, value = [{{ key = 8, value = 2 }}] }}] }},
    {{ packet = "eth / ipv4", verdict = "tx", after.numbered = [{{ key = 3, value = [{{ key = 9, value = 6 }}] }}] }},
    {{ packet = "eth / ipv4", repeat = 2, verdict = "pass" }},
    {{ packet = "eth / ipv4", verdict = "drop" }},
]
"#,
        fixture("written.o")
    );
    let numbered = folder.write("c.test.toml", tickets);
    for more in [&[][..], &["--kernel"]] {
        let out = test(&[&[path.as_str(), &numbered], more].concat()).ok();
        assert!(out.contains("5 passed, 0 failed in"), "{out}");
    }
    let socket = format!(
        "object = \"{}\"\n[[test]]\nname = \"n\"\npacket = \"eth / ipv4\"\nmaps.xsks_map = [{{ key = 1, value = 1 }}]\nverdict = \"pass\"\n",
        fixture("xsk.o")
    );
    let path = folder.write("b.test.toml", socket);
    let done = test(&[&path, "--kernel"]);
    assert!(done.out.contains("--kernel: map xsks_map: its sockets are not in the kernel"), "{}", done.out);
}

/// A report for CI says what was expected, what came and why.
#[test]
fn reports_for_tools_have_the_reason() {
    let (folder, path) = folder("[[test]]\nname = \"wrong\"\npacket = \"eth / arp\"\nverdict = \"drop\"\n");
    let junit = folder.text("junit.xml");
    assert_eq!(test(&[&path, "--junit", &junit]).status, Some(1));
    let xml = fs::read_to_string(&junit).unwrap();
    let start =
        "<failure message=\"verdict: expected drop, got pass; the packet was passed at firewall.bpf.c:";
    assert!(xml.contains(start), "{xml}");
}

/// What a case stands for is put into packets, maps, names and expectations; a number stays one.
#[test]
fn cases_replace_names_everywhere() {
    let folder = Folder::new();
    let text = format!(
        r#"object = "{}:written"
[[test]]
name = "from {{source}}"
packet = "eth / ipv4 src={{source}} / tcp dport={{port}}"
maps.blocked = [{{ key = "{{source}}/32", value = "{{number}}" }}]
maps.services = {{ "htons({{port}})" = {{ number = "{{number}}" }} }}
repeat = "{{number}}"
after.blocked = [{{ key = "{{source}}", value = "{{number}}" }}]
cases = [
    {{ source = "10.0.0.1", port = 80, number = 3, verdict = "drop" }},
    {{ source = "10.0.0.2", port = 443, number = 4, verdict = "pass", maps = {{ blocked = [] }}, after = {{}} }},
]
"#,
        fixture("written.o")
    );
    let path = folder.write("a.test.toml", text);
    let out = test(&[&path]).ok();
    assert!(out.contains("a.test.toml: from 10.0.0.1 [port=80 number=3]\n"), "{out}");
    assert!(out.contains("2 passed, 0 failed in"), "{out}");
}

/// Tests that cannot be run are neither met nor covered: the error alone is told.
#[test]
fn an_object_that_cannot_be_loaded_is_told_alone() {
    let folder = Folder::new();
    let (object, coverage) = (folder.text("bad.o"), folder.text("coverage.info"));
    let path =
        folder.write("bad.test.toml", b"object = \"bad.o\"\n[[test]]\nname = \"x\"\npacket = \"eth\"\n");
    for cause in ["No such file", "not an ELF file"] {
        for more in [&["--update"][..], &["--coverage", &coverage]] {
            let done = test(&[&[path.as_str()][..], more].concat());
            assert_eq!(done.status, Some(1), "{more:?}");
            assert!(done.out.contains(cause), "{more:?}: {}", done.out);
            assert_eq!(done.err, "", "{more:?}");
        }
        fs::write(&object, "not an object").unwrap();
    }
    assert!(!fs::exists(&coverage).unwrap());
}
