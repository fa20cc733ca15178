//! `paceline why`: the path of a packet, and the branch that decided.

use crate::common::{Folder, example, paceline};

fn why(arguments: &[&str]) -> crate::common::Done {
    paceline([&["why"], arguments].concat())
}

#[test]
fn the_sentence_names_line_and_values() {
    let firewall = example("firewall.o");
    let rules = format!("rules={}", example("firewall-rules.json"));
    let cases = [
        (
            "eth / ipv4 src=10.0.0.1 / tcp dport=22",
            "packet 1: dropped at firewall.bpf.c:203 because rules[{port: 22, protocol: 6, reserved: 0}].action is 1",
        ),
        ("eth / arp", "packet 1: passed at firewall.bpf.c:385 because eth.type is arp"),
        (
            "eth / ipv4 frag=1 / 0x00*30",
            "packet 1: dropped at firewall.bpf.c:292 because ipv4.{flags,frag} is 0x0001 and drop_fragments is true",
        ),
        ("eth / ipv4 / tcp flags=0", "packet 1: dropped at firewall.bpf.c:214 because tcp.flags is 0"),
        (
            "eth / ipv4 src=127.0.0.1 / tcp",
            "packet 1: dropped at firewall.bpf.c:267 because ipv4.src is 127.0.0.1",
        ),
    ];
    for (packet, sentence) in cases {
        let out = why(&[&firewall, "--map", &rules, "--new", packet, "--brief"]).ok();
        assert_eq!(out.trim_end(), sentence, "{packet}");
    }
}

/// The decision is where the returned value was made, and neither in what counts it, nor in the branches that ran after it.
#[test]
fn the_decision_is_where_the_verdict_was_made() {
    let object = crate::common::fixture("decisions.o");
    let folder = Folder::new();
    folder.write("deny.json", r#"[{"key": 16908480, "value": 1}]"#);
    folder.write("jumps.json", r#"[{"key": 1, "value": "on_icmp"}]"#);
    folder.write("ports.json", r#"[{"key": 1, "value": 3}]"#);
    folder.write("actions.json", r#"[{"key": 1, "value": 1}]"#);
    let maps: Vec<_> = ["deny", "jumps", "ports", "actions"]
        .iter()
        .flat_map(|map| ["--map".to_owned(), format!("{map}={}", folder.text(&format!("{map}.json")))])
        .collect();
    let source = std::fs::read_to_string(object.replace(".o", ".bpf.c")).unwrap();
    let line_of =
        |mark: &str| 1 + source.lines().position(|line| line.ends_with(&format!("// {mark}"))).unwrap();
    let (denied, other, icmp) = ("ipv4 src=192.0.2.1", "ipv4 src=192.0.2.2", "ipv4 / icmp");
    let cases = [
        (
            "deny_list",
            format!("{denied} / icmp"),
            "dropped",
            "deny_list: denied",
            "deny[16908480] is present",
        ),
        ("deny_list", format!("{other} ttl=1 / icmp"), "dropped", "deny_list: ttl", "ipv4.ttl is 1"),
        (
            "deny_list",
            format!("{other} / icmp"),
            "dropped",
            "deny_list: protocol",
            "ipv4.proto is icmp, neither udp nor tcp",
        ),
        ("deny_list", format!("{other} / tcp"), "passed", "deny_list: protocol", "ipv4.proto is tcp"),
        (
            "keeps_verdict",
            format!("{denied} / udp"),
            "dropped",
            "keeps_verdict: denied",
            "deny[16908480] is present",
        ),
        (
            "keeps_verdict",
            format!("{other} / udp"),
            "passed",
            "keeps_verdict: denied",
            "deny[33685696] is absent",
        ),
        ("counts_drops", "ipv4 / udp".to_owned(), "dropped", "counts_drops", "protocol is ipv4"),
        ("counts_kept_drops", "ipv4 / udp".to_owned(), "dropped", "counts_kept_drops", "protocol is ipv4"),
        ("entry", icmp.to_owned(), "dropped", "entry", "jumps[1] was called for ipv4.proto icmp"),
        ("entry", "ipv4 / udp".to_owned(), "passed", "entry", "jumps[17] has no program for ipv4.proto udp"),
        ("to_port", icmp.to_owned(), "redirected to ports[1]", "to_port", "ports[1] is present"),
        ("to_port", "ipv4 / tcp".to_owned(), "dropped", "to_port", "ports[6] is absent"),
        ("by_table", icmp.to_owned(), "dropped", "by_table", "actions[1] is 1"),
        ("by_table", "ipv4 / tcp".to_owned(), "passed", "by_table: absent", "actions[6] is absent"),
        ("in_callback", "ipv4 / tcp".to_owned(), "passed", "in_callback", "verdicts[7] is 0"),
        ("over_elements", format!("{denied} / udp"), "dropped", "over_elements", "ipv4.src is 192.0.2.1"),
        ("over_elements", format!("{other} / udp"), "passed", "over_elements", "ipv4.src is 192.0.2.2"),
        ("checks_more", "ipv4 / udp".to_owned(), "passed", "checks_more", "eth.type is ipv4"),
        ("by_argument", icmp.to_owned(), "dropped", "by_argument", "ipv4.proto is icmp"),
        ("by_argument", "ipv4 / udp".to_owned(), "passed", "by_argument", "ipv4.proto is udp"),
        ("calls_back", "ipv4 / udp".to_owned(), "dropped", "calls_back", "ipv4.proto is udp"),
        ("calls_back", icmp.to_owned(), "passed", "calls_back", "ipv4.proto is icmp"),
        ("makes_entry", "ipv4 / udp".to_owned(), "dropped", "makes_entry", "ipv4.proto is udp"),
        ("by_numbers", "ipv4 / udp".to_owned(), "passed", "by_numbers", "eth.src is 02:00:00:00:00:01"),
    ];
    for (program, packet, fate, mark, reason) in cases {
        let (subject, packet) = (format!("{object}:{program}"), format!("eth / {packet}"));
        let mut arguments = vec![&*subject, "--new", &packet, "--brief"];
        arguments.extend(maps.iter().map(String::as_str));
        let expected = format!("packet 1: {fate} at decisions.bpf.c:{} because {reason}", line_of(mark));
        assert_eq!(why(&arguments).ok().trim_end(), expected, "{program}: {packet}");
    }
    let by_address = [
        ("to_option", "dst=07:00:00:00:00:00", "dropped", "to_option: kind", "eth.dst is 07:00:00:00:00:00"),
        ("to_option", "dst=01:00:00:00:07:00", "dropped", "to_option: kind", "eth.dst is 01:00:00:00:07:00"),
        ("to_option", "dst=02:00:00:00:07:00", "passed", "to_option: kind", "eth.dst is 02:00:00:00:07:00"),
        ("by_numbers", "src=00:00:42:00:00:00", "dropped", "by_numbers", "eth.src is 00:00:42:00:00:00"),
    ];
    for (program, packet, fate, mark, reason) in by_address {
        let (subject, packet) = (format!("{object}:{program}"), format!("eth {packet} / ipv4 / udp"));
        let expected = format!("packet 1: {fate} at decisions.bpf.c:{} because {reason}", line_of(mark));
        assert_eq!(why(&[&subject, "--new", &packet, "--brief"]).ok().trim_end(), expected, "{program}");
    }
    // Clang makes one call of three, and its line is that of none.
    let merged = why(&[&format!("{object}:merged"), "--new", "eth / ipv4 / tcp", "--brief"]).ok();
    assert!(merged.starts_with("packet 1: aborted after decisions.bpf.c:"), "{merged}");
    assert!(merged.ends_with(" because ports[0] is absent\n"), "{merged}");
    folder.write("verdicts.json", r#"[{"key": 5, "value": 77}]"#);
    let verdicts = format!("verdicts={}", folder.text("verdicts.json"));
    let subject = format!("{object}:in_callback");
    let out = why(&[&subject, "--map", &verdicts, "--new", "eth", "--brief"]).ok();
    assert!(out.contains("because verdicts[5] is 77\n"), "{out}");
}

/// The first packet with a verdict, the reasons of all, and what the decision depends on.
#[test]
fn packets_are_found_by_their_verdict_and_reasons_are_counted() {
    let (firewall, capture) = (example("firewall.o"), example("traffic.pcap"));
    let first = why(&[&firewall, "--in", &capture, "--packet", "drop", "--brief"]).ok();
    assert_eq!(first.lines().count(), 1);
    assert!(first.contains(": dropped at firewall.bpf.c:"), "{first}");
    let five = why(&[&firewall, "--in", &capture, "--packet", "drop:5", "--brief"]).ok();
    assert_eq!((five.lines().next(), five.lines().count()), (first.lines().next(), 5));
    let sum = |rows: &serde_json::Value, verdict: &str| -> u64 {
        let rows = rows.as_array().unwrap().iter().filter(|row| row["verdict"] == verdict);
        rows.map(|row| row["packets"].as_u64().unwrap()).sum()
    };
    let reasons =
        why(&[&firewall, "--in", &capture, "--packet", "drop", "--count", "--json"]).json()["reasons"]
            .clone();
    assert_eq!((sum(&reasons, "drop"), sum(&reasons, "pass")), (115, 0));
    let text = why(&[&firewall, "--in", &capture, "--packet", "drop", "--count"]).ok();
    assert!(
        text.contains("dropped at firewall.bpf.c:280 because of ipv4.len and the packet's length"),
        "{text}"
    );
    // A run counts the same ones.
    let run = paceline(["run", &firewall, "--in", &capture, "--why", "--json"]).json();
    assert_eq!((sum(&run["reasons"], "drop"), sum(&run["reasons"], "pass")), (115, 377));
    let run = paceline(["run", &firewall, "--in", &capture, "--why"]).ok();
    assert!(run.lines().any(|line| text.lines().skip(1).any(|row| row == line)), "{run}");
    why(&[&firewall, "--in", &capture, "--packet", "redirect"]).fails(
        1,
        &format!("{capture}: none of its 492 packets has the verdict redirect"),
        &[],
    );
    why(&[&firewall, "--packet", "dorp"]).fails(2, "", &["or a verdict: aborted, drop, pass, tx, redirect"]);

    let object = crate::common::fixture("decisions.o");
    let folder = Folder::new();
    folder.write("deny.json", r#"[{"key": 16908480, "value": 1}]"#);
    let (program, deny) = (format!("{object}:deny_list"), format!("deny={}", folder.text("deny.json")));
    let packet = "eth / ipv4 src=192.0.2.1 / icmp";
    let all = why(&[&program, "--map", &deny, "--new", packet, "--all"]).ok();
    let otherwise = all.lines().find(|line| line.starts_with("  otherwise dropped at decisions.bpf.c:"));
    assert!(
        otherwise.unwrap_or_default().ends_with("because ipv4.proto is icmp, neither udp nor tcp"),
        "{all}"
    );
    assert!(all.contains("\n  which depends on the decision at decisions.bpf.c:"), "{all}");
    assert!(all.ends_with("because eth.type is ipv4\n"), "{all}");
}

#[test]
fn the_path_has_lines_values_calls_and_changes() {
    let (balancer, maps) = (example("balancer.o"), ["vips", "backends"]);
    let maps = maps.map(|map| format!("{map}={}", example(&format!("balancer-{map}.json"))));
    let packet = "eth / ipv4 src=10.0.0.1 dst=192.0.2.53 / udp dport=53";
    let out = why(&[&balancer, "--map", &maps[0], "--map", &maps[1], "--new", packet]).ok();
    for part in [
        "packet 1, 42 bytes: eth / ipv4 src=10.0.0.1 dst=192.0.2.53 / udp dport=53\n",
        "./examples/balancer.bpf.c\n",
        "bpf_map_lookup_elem backends[32]\n",
        "  <- decides\n",
        "changed: eth.dst 02:00:00:00:00:02 -> 02:00:00:00:02:01\n",
        "sent back at balancer.bpf.c:",
    ] {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
}

#[test]
fn local_variables_have_names_and_values() {
    let object = "../object/tests/fixtures/variables.clang19.o";
    // 25 * 3 + 2: no field of a packet has this value.
    let packet = "eth type=0x1234 / 0x1902000000000000";
    let out = why(&[object, "--new", packet]).ok();
    assert!(out.contains("sum is 77  <- decides"), "{out}");
    let json = why(&[object, "--new", packet, "--json"]).json();
    assert!(json.to_string().contains(r#"{"kind":"variable","name":"sum","value":"77"}"#), "{json}");
    // A member of an enumeration: 80 divided by 3 leaves 2.
    let out = why(&[object, "--new", "eth type=0x1234 / 0x1905000000000000"]).ok();
    assert!(out.contains("step is THIRD\n"), "{out}");
}

#[test]
fn packets_before_run_first_and_tail_calls_and_chains_name_where_they_go() {
    let protocols = example("protocols.o");
    let out = why(&[&format!("{protocols}:dispatch"), "--new", "eth / ipv4 / udp dport=53"]).ok();
    for part in
        ["continues in ipv4\n", "continues in udp\n", "passed at protocols.bpf.c:214 because udp.dport is 53"]
    {
        assert!(out.contains(part), "no {part:?} in {out}");
    }
    let capture = example("traffic.pcap");
    let chain =
        why(&[&example("counter.o"), &example("firewall.o"), "--in", &capture, "--packet", "1,9", "--json"])
            .json();
    let packets = chain["packets"].as_array().unwrap();
    assert_eq!(packets.len(), 2);
    let names: Vec<_> =
        packets[1]["programs"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["counter", "firewall"]);
    assert_eq!(packets[1]["programs"][0]["next"]["program"], "firewall");
    assert_eq!(packets[1]["packet"], 9);

    // Each second packet is sampled: the third one, after the first two.
    let folder = Folder::new();
    folder.write("rodata.json", r#"{"one_in": 2, "collector_ifindex": 7}"#);
    let sampler = format!("{}:sample_every", example("sampler.o"));
    let map = format!(".rodata={}", folder.text("rodata.json"));
    let out = why(&[&sampler, "--map", &map, "--in", &capture, "--packet", "1-3", "--brief"]).ok();
    let verbs: Vec<_> = out.lines().map(|line| line.split(' ').nth(2).unwrap()).collect();
    assert_eq!(verbs, ["redirected", "dropped", "redirected"]);
}

#[test]
fn verdicts_are_those_of_a_run() {
    let capture = example("traffic.pcap");
    for object in ["balancer.o"] {
        let object = example(object);
        let run = paceline(["run", &object, "--in", &capture, "--clock", "capture", "--seed", "1", "--json"])
            .json();
        let why = why(&[&object, "--in", &capture, "--packet", "1-492", "--seed", "1", "--json"]).json();
        for verdict in ["aborted", "drop", "pass", "tx", "redirect"] {
            let packets = why["packets"].as_array().unwrap();
            let count = packets.iter().filter(|packet| packet["verdict"] == verdict).count();
            assert_eq!(run["verdicts"][verdict], count, "{object} {verdict}");
        }
    }
}

#[test]
fn errors_are_clear() {
    let (firewall, capture) = (example("firewall.o"), example("traffic.pcap"));
    why(&[&firewall, "--new", "eth / ipv5"]).fails(
        1,
        "--new: column 7: no protocol is named `ipv5`, perhaps `ipv4`",
        &[],
    );
    why(&[&firewall, "--in", &capture, "--packet", "493"]).fails(
        1,
        &format!("{capture}: there is no packet 493, it has 492"),
        &[],
    );
    why(&[&firewall, "--packet", "0"]).fails(2, "", &["packets are numbers from 1"]);
    why(&[&firewall, "--new", "eth", "--in", &capture]).fails(2, "", &["cannot be used with"]);
    why(&["no.o"]).fails(1, "no.o: No such file", &[]);
}

/// Each packet's fate in all three forms; explanations change no result.
#[test]
fn verdicts_are_written_with_and_without_explanations() {
    let folder = Folder::new();
    let (lines, table, capture) = (folder.text("v.jsonl"), folder.text("v.csv"), folder.text("v.pcapng"));
    let (balancer, traffic) = (example("balancer.o"), example("traffic.pcap"));
    let run = |more: &[&str]| {
        let arguments =
            ["run", &balancer, "--in", &traffic, "--clock", "capture", "--seed", "1", "--maps", "--json"];
        let mut report = paceline([&arguments, more].concat()).json();
        report["seconds"] = 0.into();
        // What is asked for beside.
        report.as_object_mut().unwrap().remove("reasons");
        report
    };
    let plain = run(&[]);
    for (path, more) in
        [(&lines, &["--why"][..]), (&table, &["--why"]), (&capture, &["--why"]), (&lines, &[])]
    {
        assert_eq!(run(&[&["--verdicts", path], more].concat()), plain, "{path} {more:?}");
    }
    run(&["--verdicts", &lines, "--why"]);
    let entries: Vec<serde_json::Value> = std::fs::read_to_string(&lines)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(entries.len(), 492);
    for verdict in ["drop", "pass", "tx"] {
        let count = entries.iter().filter(|entry| entry["verdict"] == verdict).count();
        assert_eq!(plain["verdicts"][verdict], count);
    }
    let sent = entries.iter().find(|entry| entry["verdict"] == "tx").unwrap();
    assert_eq!(sent["program"], "balancer");
    assert!(sent["why"].as_str().unwrap().starts_with("sent back at balancer.bpf.c:"), "{sent}");
    assert_eq!(
        sent["line"].as_u64().unwrap().to_string(),
        sent["why"].as_str().unwrap().split([':', ' ']).nth(4).unwrap()
    );
    assert!(sent["changed"].as_array().unwrap().iter().any(|change| change["field"] == "eth.dst"));

    let table = std::fs::read_to_string(&table).unwrap();
    assert_eq!(table.lines().count(), 493);
    assert_eq!(
        table.lines().next(),
        Some("packet,time_ns,verdict,redirect,program,file,line,why,changed,returns,context")
    );
    let mut reader = paceline::capture::CaptureReader::new(std::fs::File::open(&capture).unwrap()).unwrap();
    let (mut burst, mut packets) = (paceline::Burst::default(), 0);
    while reader.fill(&mut burst).unwrap() > 0 {
        packets += burst.len();
    }
    assert_eq!(packets, 492);
    assert!(
        String::from_utf8_lossy(&std::fs::read(&capture).unwrap())
            .contains("packet 1: pass: passed at balancer.bpf.c:237")
    );
    // Chains name the program that ended them.
    let (firewall, counter) = (example("firewall.o"), example("counter.o"));
    paceline(["run", &firewall, &counter, "--in", &traffic, "--verdicts", &lines, "--why"]).ok();
    let text = std::fs::read_to_string(&lines).unwrap();
    assert!(text.contains(r#""program":"firewall""#), "{text}");
    assert_eq!(text.lines().count(), 492);
}

/// A run that ends in a fault explains itself: no branch is tried, and nothing grows with its length.
#[test]
fn a_fault_is_the_reason_itself() {
    let endless = crate::common::fixture("endless.o");
    let arguments = [&*endless, "--unverified", "--brief", "--budget", "200000"];
    let out = why(&[&arguments[..], &["--new", "eth / ipv4 / tcp"]].concat()).ok();
    assert!(out.contains("still running after 200000 instructions") || out.contains("passed"), "{out}");
    let wrong = crate::common::fixture("wrong_pointer.o");
    let out = why(&[&*wrong, "--unverified", "--brief", "--new", "eth / 0x00"]).ok();
    assert!(out.starts_with("packet 1: aborted at wrong_pointer.bpf.c:17: read of 1 bytes"), "{out}");
}
