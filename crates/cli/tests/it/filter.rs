//! `paceline filter`: what matches, what is printed, what several filters and seccomp programs come to.

use std::fs;
use std::process::Command;

use crate::common::{Folder, example, has_libpcap, has_tool, paceline, packets};
use serde_json::{Value as Json, json};

/// The output of tcpdump with these arguments.
fn tcpdump(args: &[&str]) -> Vec<u8> {
    let output = Command::new("tcpdump").args(args).output().expect("tcpdump was there");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
fn packets_are_those_that_tcpdump_takes() {
    let test = "packets_are_those_that_tcpdump_takes";
    if !has_libpcap(test) || !has_tool(test, "tcpdump") {
        return;
    }
    let folder = Folder::new();
    let (ours, theirs) = (folder.text("ours.pcap"), folder.text("theirs.pcap"));
    let traffic = example("traffic.pcap");
    for expression in
        ["tcp port 22", "", "vlan and ip", "greater 1000", "ip6 protochain 6", "port 1", "ip broadcast"]
    {
        tcpdump(&["-r", &traffic, "-w", &theirs, expression]);
        paceline(["filter", expression, "-r", &traffic, "-w", &ours]).ok();
        assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap(), "{expression}");
        paceline(["filter", expression, "-c", "3", "-r", &traffic, "-w", &ours]).ok();
        tcpdump(&["-r", &traffic, "-c", "3", "-w", &theirs, expression]);
        assert_eq!(fs::read(&ours).unwrap(), fs::read(&theirs).unwrap(), "{expression}, three of them");
    }
}

#[test]
fn programs_are_printed_as_tcpdump_prints_them() {
    let test = "programs_are_printed_as_tcpdump_prints_them";
    if !has_libpcap(test) || !has_tool(test, "tcpdump") {
        return;
    }
    let traffic = example("traffic.pcap");
    for expression in ["tcp port 22", "ip6 protochain 6", "ether[4294967290] = 1 or len > 7", ""] {
        for flags in [&["-d"][..], &["-dd"], &["-ddd"], &["-O", "-d"]] {
            let args = [&["-r", &traffic], flags, &[expression]].concat();
            let ours = paceline([&["filter"], &args[..]].concat()).ok();
            assert_eq!(ours, String::from_utf8(tcpdump(&args)).unwrap(), "{flags:?} {expression}");
        }
    }
}

#[test]
fn a_listing_has_both_programs_side_by_side() {
    if !has_libpcap("a_listing_has_both_programs_side_by_side") {
        return;
    }
    let expected = "                                    0: r3 = *(u32 *)(r1 + 4)
                                    1: r2 = *(u32 *)(r1 + 0)
(000) ldh      [12]                 2: r5 = r2
                                    3: r5 += 14
                                    4: if r5 > r3 goto +4
                                    5: r0 = *(u16 *)(r2 + 12)
(001) jeq      #0x806  jt 2  jf 3   6: if w0 != 1544 goto +2
(002) ret      #262144              7: w0 = 2
                                    8: exit
(003) ret      #0                   9: w0 = 1
                                   10: exit
";
    let listing = paceline(["filter", "--as", "listing", "arp"]).ok();
    let squeezed = |text: &str| -> Vec<String> {
        text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(squeezed(&listing), squeezed(expected), "{listing}");
    // Columns are straight.
    let slots: Vec<_> = listing.lines().filter_map(|line| line.rfind(": ")).collect();
    assert!(slots.windows(2).all(|pair| pair[0] == pair[1]), "{listing}");
}

#[test]
fn programs_are_printed_as_source_code() {
    if !has_libpcap("programs_are_printed_as_source_code") {
        return;
    }
    let c = paceline(["filter", "arp", "--as", "c"]).ok();
    assert!(
        c.starts_with("// arp\n// Classic: for sockets.\nstatic const struct sock_filter filter[] = {\n"),
        "{c}"
    );
    assert!(c.contains("static const struct bpf_insn program[] = {\n"), "{c}");
    let rust = paceline(["filter", "arp", "--as", "rust"]).ok();
    assert!(rust.contains("pub const FILTER: [(u16, u8, u8, u32); 4] = [\n"), "{rust}");
    assert!(rust.contains("pub const PROGRAM: "), "{rust}");
}

fn matches(json: &Json) -> Vec<u64> {
    let filters = json["filters"].as_array().unwrap();
    filters.iter().map(|filter| filter["packets"].as_u64().unwrap()).collect()
}

#[test]
fn programs_come_in_three_forms() {
    if !has_libpcap("programs_come_in_three_forms") {
        return;
    }
    let folder = Folder::new();
    let traffic = example("traffic.pcap");
    let count =
        |file: &str| matches(&paceline(["filter", "--program", file, "-r", &traffic, "--json"]).json());
    let expected = matches(&paceline(["filter", "udp port 53", "-r", &traffic, "--json"]).json());
    assert!(expected[0] > 0);
    for flag in ["-dd", "-ddd"] {
        let text = paceline(["filter", flag, "udp port 53"]).ok();
        assert_eq!(count(&folder.write("program.txt", text)), expected, "{flag}");
    }
    let asm = "ldh [12]\njne #0x806, other\nret #-1\nother: ret #0\n";
    let arp = matches(&paceline(["filter", "arp", "-r", &traffic, "--json"]).json());
    assert_eq!(count(&folder.write("arp.asm", asm)), arp);
    // The kernel's rules hold: ancillary words are there.
    let proto = folder.write("proto.asm", "ld proto\njeq #0x806, yes\nret #0\nyes: ret #-1\n");
    assert_eq!(count(&proto), arp);
}

/// Headers of 42 bytes are those that libpcap finds by what is in them.
#[test]
fn words_that_are_calls_run_and_are_named() {
    if !has_libpcap("words_that_are_calls_run_and_are_named") {
        return;
    }
    let folder = Folder::new();
    let program = folder.write("program", "ld #poff\njne #42, no\nret #-1\nno: ret #0\n");
    let json =
        paceline(["filter", "ip[0] = 0x45 and ip[6:2] & 0x1fff = 0 and (udp or icmp or igmp)", "--json"])
            .json();
    assert!(matches(&json)[0] > 0, "{json}");
    for engine in paceline::Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
        let ours = paceline(["filter", "--program", &program, "--json", "--engine", engine.name()]).json();
        assert_eq!(matches(&ours), matches(&json), "{engine}");
    }
    let listing = paceline(["filter", "--program", &program, "--as", "listing"]).ok();
    assert!(listing.contains(": call bpf_skb_get_pay_offset\n"), "{listing}");
    let source = paceline(["filter", "--program", &program, "--as", "c"]).ok();
    assert!(source.contains("sock_filter filter[] = {") && !source.contains("bpf_insn"), "{source}");
    assert!(source.contains("it calls bpf_skb_get_pay_offset"), "{source}");
}

#[test]
fn an_expression_may_be_in_a_file() {
    if !has_libpcap("an_expression_may_be_in_a_file") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("expression", "# what we want\ntcp port 22 # ssh\n  or udp port 53\n");
    let from_file = paceline(["filter", "-F", &file, "--json"]).json();
    let given = paceline(["filter", "tcp port 22 or udp port 53", "--json"]).json();
    assert_eq!(matches(&from_file), matches(&given));
    assert_eq!(from_file["filters"][0]["expression"], "tcp port 22 or udp port 53");
}

#[test]
fn several_filters_take_one_pass() {
    if !has_libpcap("several_filters_take_one_pass") {
        return;
    }
    let folder = Folder::new();
    let file = folder.write("rules", "# names\nssh: tcp port 22\n\n dns : udp port 53 # both ways\nall:\n");
    let out = folder.text("{name}.pcap");
    let traffic = example("traffic.pcap");
    let json = paceline(["filter", "--filters", &file, "-r", &traffic, "-w", &out, "--json"]).json();
    let names: Vec<_> =
        json["filters"].as_array().unwrap().iter().map(|filter| filter["name"].clone()).collect();
    assert_eq!(names, ["ssh", "dns", "all"]);
    let counts = matches(&json);
    assert_eq!(counts[2], json["packets"].as_u64().unwrap());
    for (name, count) in ["ssh", "dns", "all"].iter().zip(&counts) {
        assert_eq!(packets(folder.path(format!("{name}.pcap"))).len() as u64, *count, "{name}");
    }
    let alone = paceline(["filter", "udp port 53", "-r", &traffic, "--json"]).json();
    assert_eq!(counts[1], matches(&alone)[0]);
    let text = paceline(["filter", "--filters", &file, "-r", &traffic]).ok();
    let line = format!("\n  {:<8} {:>12} ", "dns", counts[1]);
    assert!(text.contains(&line), "{text}");
    // Each gets as many as are asked for, and reading ends when all have them.
    let two = paceline(["filter", "--filters", &file, "-r", &traffic, "-c", "2", "--json"]).json();
    assert_eq!(matches(&two), [2, 2, 2]);
    assert!(two["packets"].as_u64() < json["packets"].as_u64());
}

#[test]
fn all_engines_take_the_same() {
    if !has_libpcap("all_engines_take_the_same") {
        return;
    }
    let expected = matches(&paceline(["filter", "ip[8] < 64", "--json"]).json());
    for engine in paceline::Engine::ALL.into_iter().filter(|engine| engine.is_available()) {
        let json = paceline(["filter", "ip[8] < 64", "--json", "--engine", engine.name()]).json();
        assert_eq!(matches(&json), expected, "{engine}");
        assert_eq!(json["engine"], engine.name());
    }
}

/// A pcap capture with a header of our own making.
fn raw_capture(link_type: u32, packets: &[(&[u8], u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for field in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 96, link_type] {
        bytes.extend(u32::to_le_bytes(field));
    }
    for (packet, wire_len) in packets {
        for field in [0, 0, packet.len() as u32, *wire_len] {
            bytes.extend(u32::to_le_bytes(field));
        }
        bytes.extend(*packet);
    }
    bytes
}

#[test]
fn lengths_are_those_on_the_wire() {
    if !has_libpcap("lengths_are_those_on_the_wire") {
        return;
    }
    let folder = Folder::new();
    let input = folder.write("in.pcap", raw_capture(1, &[(&[0; 60], 60), (&[0; 60], 1500)]));
    let count = |expression: &str| matches(&paceline(["filter", expression, "-r", &input, "--json"]).json());
    assert_eq!(count("greater 1000"), [1]);
    assert_eq!(count("len == 1500 or len == 60"), [2]);
}

#[test]
fn packets_need_not_be_ethernet() {
    if !has_libpcap("packets_need_not_be_ethernet") {
        return;
    }
    const RAW: u32 = 101;
    let folder = Folder::new();
    let mut packet = [0; 20];
    (packet[0], packet[9]) = (0x45, 17);
    let input = folder.write("raw.pcap", raw_capture(RAW, &[(&packet, 20), (&[0x60; 40], 40)]));
    let out = folder.text("out.pcap");
    let json = paceline(["filter", "ip proto 17", "-r", &input, "-w", &out, "--json"]).json();
    assert_eq!(matches(&json), [1]);
    let again = paceline(["filter", "-r", &out, "--json"]).json();
    assert_eq!((again["packets"].clone(), again["bytes"].clone()), (json!(1), json!(20)));
    // The snapshot length of the capture is what a match returns, as with tcpdump.
    assert!(paceline(["filter", "ip", "-r", &input, "-dd"]).ok().contains("{ 0x6, 0, 0, 0x00000060 },"));
}

/// Captures of loopback interfaces have the address family in the byte order of the machine that made them.
#[test]
fn loopback_captures_match_in_both_byte_orders() {
    if !has_libpcap("loopback_captures_match_in_both_byte_orders") {
        return;
    }
    const NULL: u32 = 0;
    const LOOP: u32 = 108;
    let folder = Folder::new();
    let packet = |family: [u8; 4], version: u8| [&family[..], &[version << 4 | 5], &[0; 39]].concat();
    for (link_type, big_endian, families) in [
        (NULL, false, [[2, 0, 0, 0], [24, 0, 0, 0]]),
        (NULL, true, [[0, 0, 0, 2], [0, 0, 0, 28]]),
        (LOOP, false, [[0, 0, 0, 2], [0, 0, 0, 24]]),
        (LOOP, true, [[0, 0, 0, 2], [0, 0, 0, 30]]),
    ] {
        let (ip, ip6) = (packet(families[0], 4), packet(families[1], 6));
        let mut capture = raw_capture(link_type, &[(&ip, 44), (&ip6, 44)]);
        if big_endian {
            // All numbers of a header or of a record but for the two of the version have four bytes.
            let (header, records) = capture.split_at_mut(24);
            header.chunks_exact_mut(4).for_each(<[u8]>::reverse);
            header[4..8].rotate_left(2);
            records
                .chunks_exact_mut(60)
                .flat_map(|record| record[..16].chunks_exact_mut(4))
                .for_each(<[u8]>::reverse);
        }
        let input = folder.write("in.pcap", capture);
        for expression in ["ip", "ip6"] {
            let json = paceline(["filter", expression, "-r", &input, "--json"]).json();
            assert_eq!(
                matches(&json),
                [1],
                "{expression} of link type {link_type}, big-endian: {big_endian}"
            );
        }
    }
}

#[test]
fn seccomp_programs_tell_actions() {
    let folder = Folder::new();
    let program = "ld [4]\njne #0xc000003e, bad\nld [0]\njeq #257, deny\njeq #60, kill\nret #0x7fff0000\n\
                   deny: ret #0x5000d\nkill: ret #0\nbad: ret #0x80000000\n";
    let program = folder.write("seccomp.asm", program);
    let calls = folder
        .write("calls", "# nr arch ip args\n257 0xc000003e 0x1000 0xffffff9c 16\n0\n60\n1 0x40000003\n");
    let text = paceline(["filter", "--program", &program, "--syscalls", &calls]).ok();
    let expected = "errno(13)        257(0xffffff9c, 0x10, 0x0, 0x0, 0x0, 0x0)
allow            0(0x0, 0x0, 0x0, 0x0, 0x0, 0x0)
kill_thread      60(0x0, 0x0, 0x0, 0x0, 0x0, 0x0)
kill_process     1(0x0, 0x0, 0x0, 0x0, 0x0, 0x0) of 0x40000003

4 system calls
  allow                       1
  errno(13)                   1
  kill_process                1
  kill_thread                 1
";
    assert_eq!(text, expected);
    let json = paceline(["filter", "--program", &program, "--syscalls", &calls, "--json"]).json();
    assert_eq!(json["totals"], json!({ "allow": 1, "errno(13)": 1, "kill_process": 1, "kill_thread": 1 }));
    assert_eq!(json["calls"][0]["arguments"][0], 0xffff_ff9c_u32);
}

/// Captured length and length on the wire of the packets of a little-endian pcap file.
fn lengths(capture: &[u8]) -> Vec<(u32, u32)> {
    let (mut rest, mut lengths) = (&capture[24..], Vec::new());
    while let Some((head, packet)) = rest.split_at_checked(16) {
        let number = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        lengths.push((number(8), number(12)));
        rest = &packet[number(8) as usize..];
    }
    lengths
}

#[test]
fn a_socket_filter_of_an_object_takes_what_it_keeps_and_cuts_it() {
    let test = "a_socket_filter_of_an_object_takes_what_it_keeps_and_cuts_it";
    let folder = Folder::new();
    let (hosts, traffic) = (example("hosts.o"), example("traffic.pcap"));
    let list = folder
        .write("hosts.json", r#"[{"key": "192.0.2.0/24", "value": 1}, {"key": "10.0.0.0/8", "value": 1}]"#);
    let list = format!("hosts={list}");
    let (whole, cut, ran) = (folder.text("whole.pcap"), folder.text("cut.pcap"), folder.text("ran.pcap"));
    let filter = ["filter", "--program", &hosts, "--map", &list, "-r", &traffic];
    let report = paceline([&filter[..], &["-w", &whole, "--json"]].concat()).json();
    let matched = report["filters"][0]["packets"].as_u64().unwrap();
    assert!(matched > 20 && matched < report["packets"].as_u64().unwrap(), "{report}");
    let expression = "ip and (net 192.0.2.0/24 or net 10.0.0.0/8)";
    if has_tool(test, "tcpdump") {
        let theirs = folder.text("theirs.pcap");
        tcpdump(&["-O", "-r", &traffic, "-w", &theirs, expression]);
        assert_eq!(fs::read(&whole).unwrap(), fs::read(&theirs).unwrap());
    }
    let snaplen = folder.write("snaplen.json", r#"[{"key": 0, "value": {".rodata": [{"snaplen": 60}]}}]"#);
    let constant = format!(".rodata={snaplen}");
    paceline([&filter[..], &["--map", &constant, "-w", &cut]].concat()).ok();
    let expected: Vec<_> = lengths(&fs::read(&whole).unwrap())
        .iter()
        .map(|&(captured, wire)| (captured.min(60), wire))
        .collect();
    assert_eq!(lengths(&fs::read(&cut).unwrap()), expected);
    // The same as a run.
    let run = ["run", &hosts, "--map", &list, "--map", &constant, "--in", &traffic, "--out", &ran, "--json"];
    let report = paceline(run).json();
    assert_eq!(report["verdicts"]["pass"].as_u64(), Some(matched), "{report}");
    assert_eq!((&report["unknown_verdicts"], &report["verdicts"]["aborted"]), (&json!(0), &json!(0)));
    assert_eq!(fs::read(&ran).unwrap(), fs::read(&cut).unwrap());
    let workers = folder.text("workers.pcap");
    let run = [
        "run",
        &hosts,
        "--map",
        &list,
        "--map",
        &constant,
        "--in",
        &traffic,
        "--out",
        &workers,
        "--workers",
        "2",
    ];
    paceline(run).ok();
    assert_eq!(fs::read(&workers).unwrap(), fs::read(&cut).unwrap());
}

#[test]
fn the_kernel_keeps_the_same_packets() {
    const TEST: &str = "the_kernel_keeps_the_same_packets";
    if !paceline_testkit::kernel::available_for(TEST) {
        return;
    }
    let folder = Folder::new();
    let list = folder
        .write("hosts.json", r#"[{"key": "192.0.2.0/24", "value": 1}, {"key": "10.0.0.0/8", "value": 1}]"#);
    let (hosts, list, traffic) = (example("hosts.o"), format!("hosts={list}"), example("traffic.pcap"));
    let done = paceline(["diff", &hosts, "--kernel", "--map", &list, "--in", &traffic]).ok();
    assert!(done.contains("492 packets") && done.contains(": 0 differ"), "{done}");
}

#[test]
fn a_program_that_is_no_filter_and_options_without_an_object_are_told() {
    let (traffic, firewall) = (example("traffic.pcap"), example("firewall.o"));
    let done = paceline(["filter", "--program", &firewall, "-r", &traffic]);
    done.fails(
        1,
        "",
        &["program firewall is of type xdp, and a filter is of type socket_filter", "paceline run"],
    );
    let done = paceline(["filter", "--program", &example("hosts.o"), "-d"]);
    done.fails(1, "", &["an object has no classic program to print", "paceline dump"]);
    let done = paceline(["filter", "--map", "hosts=hosts.json", "-r", &traffic]);
    done.fails(1, "", &["--map is for objects, and --program names none"]);
}

/// Expressions that libpcap's optimizer changes: what matches is what the expression says, and what is printed is told.
#[test]
fn faults_of_libpcaps_optimizer_are_not_taken_over() {
    let test = "faults_of_libpcaps_optimizer_are_not_taken_over";
    if !has_libpcap(test) || !has_tool(test, "tcpdump") {
        return;
    }
    let traffic = example("traffic.pcap");
    for expression in [
        "1/2=1/3&&1>4/5&&1>6/7",
        "link[0:1] & 0xffffffff != 0",
        "link[0:4] & 0xffffffff == 0",
        "(1 = 0) or (2147483648 / 4294967295 = 0) and (0 & 4294967295 = 0)",
    ] {
        let matched = paceline(["filter", expression, "-r", &traffic, "--json"]).json();
        let right = tcpdump(&["-O", "-r", &traffic, "--count", expression]);
        let right = String::from_utf8(right).unwrap();
        let right: u64 = right.split_whitespace().next().unwrap().parse().unwrap();
        assert_eq!(matched["filters"][0]["packets"].as_u64(), Some(right), "{expression}");
    }
    let printed = paceline(["filter", "link[0:1] & 0xffffffff != 0", "-d"]);
    assert!(printed.err.contains("libpcap's optimizer changed the filter"), "{}", printed.err);
    assert_eq!(paceline(["filter", "-O", "link[0:1] & 0xffffffff != 0", "-d"]).err, "");
    let nothing = paceline(["filter", "ip and arp", "-r", &traffic]);
    assert!(nothing.err.contains("no packet can match `ip and arp`"), "{}", nothing.err);
    assert_eq!(paceline(["filter", "port 1", "-r", &traffic]).err, "");
    assert_eq!(paceline(["filter", "tcp port 22", "-d"]).err, "");
}

#[test]
fn code_that_reads_what_was_not_written_is_refused() {
    if !has_libpcap("code_that_reads_what_was_not_written_is_refused") {
        return;
    }
    let traffic = example("traffic.pcap");
    let done = paceline(["filter", "geneve or ether[12:2] = 0x800", "-r", &traffic]);
    done.fails(1, "", &["is read and not written on every path before", "put `geneve` last"]);
    for expression in ["ether[12:2] = 0x800 or geneve", "geneve and ip", "vlan and ip", "ip6 protochain 6"] {
        paceline(["filter", expression, "-r", &traffic]).ok();
    }
}

/// What tcpdump says in a line, without options and what it knows of applications; `None` where it says something else, also of extension
/// headers.
fn in_few_words(line: &str) -> Option<String> {
    let (start, rest) = line.split_once(", options [").unwrap_or((line, ""));
    let rest = rest.split_once(']').map_or("", |(_, rest)| rest);
    let line = format!("{start}{rest}");
    let is_cut =
        ["[|", "truncated-ip", "bad-", "invalid", "[bad", "MPLS"].iter().any(|part| line.contains(part));
    let (_, packet) = line.split_once(' ')?;
    let what = packet.split_once(": ").map_or(packet, |(_, what)| what);
    let is_known = ["Flags [", "UDP, length", "ICMP echo", "ICMP6, echo", "ARP, Request who", "ARP, Reply"];
    let at =
        line.find("length ").filter(|_| !is_cut && is_known.iter().any(|start| what.starts_with(start)))?;
    let digits = line[at + 7..].bytes().take_while(u8::is_ascii_digit).count();
    Some(line[..at + 7 + digits].to_owned())
}

/// A line without VLAN tags, which tcpdump does not show.
fn without_tags(line: &str) -> String {
    let (time, mut packet) = line.split_once(' ').unwrap();
    while let Some((_, rest)) = packet.strip_prefix("vlan ").and_then(|tag| tag.split_once(", ")) {
        packet = rest;
    }
    format!("{time} {packet}")
}

#[test]
fn packets_are_lines_as_tcpdump_prints_them() {
    let test = "packets_are_lines_as_tcpdump_prints_them";
    if !has_libpcap(test) || !has_tool(test, "tcpdump") {
        return;
    }
    let traffic = example("traffic.pcap");
    let theirs = String::from_utf8(tcpdump(&["-n", "-S", "-r", &traffic])).unwrap();
    // Other lines are of packets in tunnels, and bytes that it does not know.
    let theirs: Vec<_> =
        theirs.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).collect();
    let ours = paceline(["filter", "", "-r", &traffic, "--print"]);
    assert!(ours.err.contains(" packets, "), "the report goes aside: {}", ours.err);
    let ours = ours.ok();
    let lines: Vec<_> = ours.lines().collect();
    assert_eq!(lines.len(), theirs.len());
    let mut compared = 0;
    for (number, (ours, theirs)) in (1..).zip(lines.iter().zip(&theirs)) {
        let line = ours.strip_prefix(&format!("{number:>6}  ")).unwrap_or_else(|| panic!("{ours}"));
        // Some that tcpdump knows are no protocols here.
        if let Some(theirs) = in_few_words(theirs)
            && !line.contains(" ethertype 0x")
        {
            assert_eq!(without_tags(line), theirs, "packet {number}");
            compared += 1;
        }
    }
    assert!(compared > 250, "{compared} of {}", theirs.len());
    let few = paceline(["filter", "tcp", "port", "22", "-r", &traffic, "--print"]).ok();
    assert!(few.lines().all(|line| line.contains(".22")), "{few}");
    for more in [&["--json"][..], &["--filters", "x"]] {
        paceline([&["filter", "--print"], more].concat()).fails(2, "", &["cannot be used with"]);
    }
    paceline(["filter", "", "-r", &traffic, "--print", "-w", "-"]).fails(
        1,
        "--out",
        &["is the same file as"],
    );
}
