//! `paceline diff`: what differs, where, since when, and the smallest packet that shows it.

use std::fs;

use crate::common::{Done, Folder, example, paceline};

fn diff(arguments: &[&str]) -> Done {
    paceline([&["diff"], arguments].concat())
}

#[test]
fn nothing_differs_between_equal_programs_and_between_engines() {
    let capture = example("traffic.pcap");
    for object in [
        "firewall.o",
        "balancer.o",
        "counter.o",
        "reflector.o",
        "sampler.o:sample_every",
        "steering.o",
        "vlan.o:vlan_push",
    ] {
        let object = example(object);
        for engine in ["jit", "threaded", "plain"] {
            let out = diff(&[&object, &object, "--new-engine", engine, "--in", &capture]).ok();
            assert_eq!(out, format!("492 packets of {capture}: 0 differ\n"), "{object} {engine}");
        }
    }
}

#[test]
fn groups_have_counts_sentences_and_the_line_after_which_runs_part() {
    let vlan = example("vlan.o");
    let (pop, push) = (format!("{vlan}:vlan_pop"), format!("{vlan}:vlan_push"));
    let done = diff(&[&pop, &push, "--in", &example("traffic.pcap")]);
    assert_eq!(done.status, Some(1), "{}", done.err);
    for part in [
        "packets, first ",
        "packet: ",
        "    old: passed at vlan.bpf.c:",
        "    they part",
        "map vlans differs since packet ",
    ] {
        assert!(done.out.contains(part), "no {part:?} in {}", done.out);
    }
    let json = diff(&[&pop, &push, "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
    let packets: usize =
        json["groups"].as_array().unwrap().iter().map(|g| g["packets"].as_array().unwrap().len()).sum();
    assert!(packets > 400, "{packets}");
    // Elements of maps that differ have both values.
    assert!(
        json["maps"][0]["elements"][0]["new"].is_array() || json["maps"][0]["elements"][0]["new"].is_number()
    );

    let ignored = diff(&[&pop, &push, "--ignore", "verdict", "--ignore", "bytes", "--ignore", "maps"]);
    assert!(ignored.ok().ends_with(": 0 differ\n"));
    let fields = diff(&[&pop, &push, "--ignore", "eth.type", "--ignore", "maps", "--ignore", "verdict"]);
    assert!(!fields.out.contains("    eth.type:"), "{}", fields.out);
}

#[test]
fn the_smallest_difference_is_a_test_that_the_old_program_passes() {
    let folder = Folder::new();
    let file = folder.text("s.test.toml");
    let (firewall, counter) = (example("firewall.o"), example("counter.o"));
    let done = diff(&[&firewall, &counter, "--in", &example("traffic.pcap"), "--shrink", &file]);
    assert_eq!(done.status, Some(1), "{}", done.err);
    assert!(done.err.contains("a sequence of 1 packet"), "{}", done.err);
    let text = fs::read_to_string(&file).unwrap();
    let step = text.lines().find(|line| line.contains("packet = ")).unwrap();
    assert!(step.len() < 120, "{step}");
    assert_eq!(paceline(["test", &file]).status, Some(1), "the new program fails it");
    fs::write(
        &file,
        text.replace(&fs::canonicalize(&counter).unwrap().display().to_string(), &firewall)
            .replace(&counter, &firewall),
    )
    .unwrap();
    assert!(paceline(["test", &file]).ok().contains("1 passed, 0 failed"), "{text}");
}

#[test]
fn errors_are_clear() {
    let firewall = example("firewall.o");
    diff(&[&firewall, "no.o"]).fails(1, "no.o: No such file", &[]);
    diff(&[&firewall, &firewall, "--ignore", "ipv4.tl"]).fails(2, "", &["there is no field `ipv4.tl`"]);
    diff(&[&firewall, &firewall, "--ignore", "all"]).fails(2, "", &["it must be verdict, returns, redirect"]);
    diff(&[&firewall]).fails(2, "", &["<NEW>"]);
}

/// Results of a run: its report without names and times, and its outputs.
fn ran(object: &str, folder: &Folder) -> Option<(serde_json::Value, Vec<Vec<u8>>)> {
    let (out, drops) = (folder.text("out"), folder.text("drops"));
    let arguments =
        ["--clock", "capture", "--seed", "1", "--maps", "--json", "--out", &out, "--drops", &drops];
    let done = paceline([&["run", object, "--in", &example("traffic.pcap")], &arguments[..]].concat());
    let mut report: serde_json::Value =
        serde_json::from_str(&done.out).ok().filter(|_| done.status == Some(0))?;
    for name in ["seconds", "object"] {
        report[name] = 0.into();
    }
    Some((report, [out, drops].map(|path| fs::read(path).unwrap()).to_vec()))
}

/// Objects with one instruction changed: a difference is found if and only if runs leave something else.
#[test]
fn changed_instructions_are_found_where_runs_can_tell_them_apart() {
    let wanted: usize = std::env::var("PACELINE_DIFFS").map_or(8, |count| count.parse().expect("a number"));
    let folder = Folder::new();
    let examples = ["firewall.o", "counter.o", "reflector.o", "balancer.o"];
    let (mut compared, mut different, mut seed) = (0, 0, 0);
    while compared < wanted {
        let original = example(examples[seed % examples.len()]);
        let mut rng = fastrand::Rng::with_seed(seed as u64);
        seed += 1;
        assert!(seed < 60 * wanted, "{compared} mutants of {seed} load");
        let mut bytes = fs::read(&original).unwrap();
        // Instructions follow the header of the file; the opcode stays.
        let slot = 64 + 8 * rng.usize(0..160);
        let at = slot + [1, 2, 4, 4, 4][rng.usize(0..5)];
        bytes[at] = bytes[at].wrapping_add(rng.u8(1..4));
        let mutant = folder.write("mutant.o", &bytes);
        let Some(new) = ran(&mutant, &folder) else { continue };
        compared += 1;
        let differs = ran(&original, &folder).expect("it runs") != new;
        different += usize::from(differs);
        let done = diff(&[&original, &mutant, "--in", &example("traffic.pcap")]);
        assert_eq!(done.status, Some(i32::from(differs)), "seed {}: {}{}", seed - 1, done.out, done.err);
    }
    assert!(different * 4 > compared, "only {different} of {compared} differ");
}

#[test]
fn the_kernel_does_the_same_and_differences_to_it_are_found() {
    const TEST: &str = "the_kernel_does_the_same_and_differences_to_it_are_found";
    if !paceline_testkit::kernel::available_for(TEST) {
        return;
    }
    let capture = example("traffic.pcap");
    let programs = ["firewall.o", "balancer.o", "counter.o", "reflector.o", "steering.o", "vlan.o:vlan_push"];
    for program in programs {
        let out = diff(&[&example(program), "--kernel", "--in", &capture]).ok();
        assert_eq!(out, format!("492 packets of {capture}: 0 differ\n"), "{program}");
    }
    let folder = Folder::new();
    let [pop, push] = ["pop", "push"].map(|name| format!("{}:vlan_{name}", example("vlan.o")));
    let shrunk = folder.text("differs.test.toml");
    let done = diff(&[&pop, &push, "--kernel", "--in", &capture, "--shrink", &shrunk]);
    assert_eq!(done.status, Some(1), "{}", done.err);
    for part in ["packet: eth.type", "    old: passed at vlan.bpf.c:", "map vlans differs since packet "] {
        assert!(done.out.contains(part), "no {part:?} in {}", done.out);
    }
    assert!(!done.out.contains("    new: "), "{}", done.out);
    assert!(done.err.contains("note: 2 packets are left out: the kernel's test run does not take them"));
    assert!(paceline(["test", &shrunk]).out.contains("0 passed, 1 failed"));
    // The same as without the kernel, but for what a test run does not take and show.
    let groups = |more: &[&str]| -> usize {
        let json = diff(&[&[&pop, &push, "--in", &capture, "--json"], more].concat());
        let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        json["groups"].as_array().unwrap().iter().map(|g| g["packets"].as_array().unwrap().len()).sum()
    };
    assert!(groups(&["--kernel"]) <= groups(&[]) && groups(&["--kernel"]) > 400);
    diff(&[&pop, "--kernel", "--new-engine", "jit"]).fails(2, "", &["cannot be used with"]);
    diff(&[&pop]).fails(2, "", &["<NEW>"]);
}
