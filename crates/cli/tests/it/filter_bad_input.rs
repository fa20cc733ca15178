//! Errors of a user of `paceline filter`: one message with place and cause, and no output lost.

use std::fs;
use std::process::Stdio;

use crate::common::{Folder, command, example, has_libpcap, paceline};

#[test]
fn the_command_line_is_checked_with_status_2() {
    let folder = Folder::new();
    let file = folder.write("rules", "all:\n");
    let fails = |args: &[&str], start: &str, parts: &[&str]| {
        let args = [&["filter"], args].concat();
        paceline(args).fails(2, start, parts);
    };
    fails(
        &["ip", "-F", &file],
        "the argument '[EXPRESSION]...' cannot be used with",
        &["Usage: paceline filter"],
    );
    fails(
        &["--program", &file, "--filters", &file],
        "the argument '--program <FILE>' cannot be used with",
        &[],
    );
    fails(&["-dddd", "ip"], "-d can be given three times at most", &["Usage: paceline filter"]);
    fails(&["--filters", &file, "-w", "out.pcap"], "with --filters there is an output for each", &["{name}"]);
    fails(&["-d", "ip", "--json"], "the argument '-d...' cannot be used with '--json'", &[]);
    fails(&["-c", "0"], "invalid value '0' for '--count <N>'", &[]);
    fails(
        &["--syscalls", &file, "ip"],
        "--syscalls is for the seccomp program of a file",
        &["--program FILE"],
    );
    fails(
        &["--syscalls", &file, "--filters", &file],
        "--syscalls is for the seccomp program of a file",
        &["--program FILE"],
    );
    fails(&["--syscalls", &file], "the following required arguments were not provided", &["--program"]);
}

#[test]
fn an_error_points_into_the_expression() {
    if !has_libpcap("an_error_points_into_the_expression") {
        return;
    }
    let points = |expression: &str, message: &str, carets: &str| {
        let done = paceline(["filter", expression]);
        done.fails(
            1,
            &format!("in the expression: {message}"),
            &[&format!("1 | {expression}\n  | {carets}")],
        );
        assert_eq!(done.out, "");
    };
    points("tcp prot 22", "syntax error", "    ^^^^");
    points("tcp port 22 and and udp", "syntax error", "                ^^^");
    points("(tcp or udp", "syntax error", "           ^ something is missing here");
    points("tcp[13", "syntax error", "      ^ something is missing here");
    points("ip host 1.2.3.4 )", "syntax error", "                ^");
    points("tcp port", "syntax error", "        ^ something is missing here");
    points("port frobnicate", "unknown port 'frobnicate'", "     ^^^^^^^^^^");
    points("ip6 and vlan 4095000", "VLAN tag 4095000 greater than maximum 4095", "             ^^^^^^^");
}

#[test]
fn a_capture_in_the_place_of_the_expression_is_told() {
    if !has_libpcap("a_capture_in_the_place_of_the_expression_is_told") {
        return;
    }
    let folder = Folder::new();
    let capture = folder.write("in.pcap", "");
    let hint = format!("`{capture}` is a file: a capture is given with --in");
    for expression in [&[capture.as_str()][..], &["port", "22", &capture]] {
        paceline([&["filter"], expression].concat()).fails(1, "in the expression: syntax error", &[&hint]);
    }
    let compressed = folder.write("in.pcap.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    let hint = format!("gzip -dc {compressed} | paceline ... --in -");
    paceline(["filter", "ip", "-r", &compressed]).fails(1, &format!("{compressed}: compressed"), &[&hint]);
}

#[test]
fn outputs_that_cannot_be_opened_leave_the_others_as_they_are() {
    if !has_libpcap("outputs_that_cannot_be_opened_leave_the_others_as_they_are") {
        return;
    }
    let folder = Folder::new();
    let rules = folder.write("rules", "first: ip\nsecond: arp\n");
    fs::create_dir(folder.text("first")).unwrap();
    let precious = folder.write("first/out.pcap", "precious");
    let done = paceline(["filter", "--filters", &rules, "-w", &folder.text("{name}/out.pcap")]);
    done.fails(1, &format!("{}: No such file", folder.text("second/out.pcap")), &[]);
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
}

/// Packets of a file do not tell it, as tcpdump says too.
#[test]
fn what_captures_do_not_tell_is_refused() {
    if !has_libpcap("what_captures_do_not_tell_is_refused") {
        return;
    }
    for (expression, message, carets) in [
        (
            "tcp and inbound",
            "inbound/outbound not supported on Ethernet when reading savefiles",
            "        ^^^^^^^",
        ),
        ("ifindex 1", "ifindex not supported on Ethernet when reading savefiles", "^^^^^^^"),
    ] {
        let parts = [&*format!("1 | {expression}\n  | {carets}")];
        paceline(["filter", expression]).fails(1, &format!("in the expression: {message}"), &parts);
    }
}

/// A long expression does not hide what is wrong with it, and does not take long.
#[test]
fn errors_in_long_expressions_are_short() {
    if !has_libpcap("errors_in_long_expressions_are_short") {
        return;
    }
    let folder = Folder::new();
    let hosts: Vec<_> = (0..5_000).map(|n| format!("host 10.0.{}.{}", n / 256, n % 256)).collect();
    let hosts = hosts.join(" or ");
    for (text, message, part) in [
        (format!("{hosts} or tcp prot 22"), "syntax error", "or tcp prot 22\n"),
        (format!("{hosts} or (ip"), "syntax error", "something is missing here"),
        (
            format!("ip and not ip {}", "and ip ".repeat(10_000)),
            "expression rejects all packets",
            "ip and not ip",
        ),
        (format!("port {}", "x".repeat(1_000)), "unknown port", "port xxxx"),
    ] {
        let file = folder.write("expression", text);
        // Only printing runs the optimizer, which refuses what rejects all packets.
        let done = paceline(["filter", "-d", "-F", &file]);
        done.fails(1, &format!("in the expression: {message}"), &[part]);
        assert!(done.err.len() < 1_500, "{}", done.err);
    }
}

#[test]
fn errors_in_files_have_file_line_and_column() {
    if !has_libpcap("errors_in_files_have_file_line_and_column") {
        return;
    }
    let folder = Folder::new();
    let fails = |text: &str, place: &str, cause: &str| {
        let file = folder.write("rules", text);
        paceline(["filter", "--filters", &file]).fails(1, &format!("{file}:{place}: {cause}"), &[]);
    };
    fails("ssh: tcp port 22\n  tcp port 23\n", "2:3", "expected `name: expression`");
    fails("a: ip\n../b: ip\n", "2:1", "a name has letters");
    fails("a: ip\nb: ip\n a: arp\n", "3:2", "filter a is already defined on line 1");
    let file = folder.write("rules", "# only this\n");
    let start = format!("{file}: the file contains no filter");
    paceline(["filter", "--filters", &file]).fails(1, &start, &["name: expression"]);
    let file = folder.write("rules", "a: ip\n b: tcp prot 22 # x\n");
    let done = paceline(["filter", "--filters", &file]);
    done.fails(1, "in the expression: syntax error", &[&format!("--> {file}:2:9")]);
    let file = folder.write("expression", "tcp\n  prot 22\n");
    paceline(["filter", "-F", &file]).fails(
        1,
        "in the expression: syntax error",
        &[&format!("--> {file}:2:3")],
    );
}

#[test]
fn programs_that_are_none() {
    let folder = Folder::new();
    let fails = |text: &str, cause: &str, parts: &[&str]| {
        let file = folder.write("program", text);
        paceline(["filter", "--program", &file]).fails(1, &format!("{file}{cause}"), parts);
    };
    fails("tcp port 22", ":1:1: unknown instruction `tcp`", &["expressions are given without --program"]);
    fails("2\n40 0 0 12\n", ":", &["the text says 2 instructions and has 1"]);
    fails("ld [0]\n", ": instruction 0 (ld): the last instruction must be a return", &[]);
    fails("", ": a program has 1 to 4096 instructions, this one 0", &[]);
    fails("div #0\nret a\n", ": instruction 0 (div): division by the constant 0", &[]);
    let missing = folder.text("missing");
    paceline(["filter", "--program", &missing]).fails(1, &format!("{missing}: No such file"), &[]);
    paceline(["filter", "-F", &missing]).fails(1, &format!("{missing}: No such file"), &[]);
    let binary = folder.write("binary", b"\xff\xfe");
    paceline(["filter", "-F", &binary]).fails(
        1,
        &format!("{binary}: not a text file: line 1, column 1 is not UTF-8"),
        &[],
    );
}

#[test]
fn system_calls_that_are_none() {
    let folder = Folder::new();
    let program = folder.write("program", "ret #0x7fff0000\n");
    let calls = folder.write("calls", "0\n openat 1\n");
    let start = format!("{calls}:2:2: `openat` is not a number");
    paceline(["filter", "--program", &program, "--syscalls", &calls]).fails(1, &start, &[]);
    let socket = folder.write("socket", "ldh [12]\nret #0x7fff0000\n");
    let start = format!("{socket}: instruction 0 (ldh): seccomp does not allow this instruction");
    paceline(["filter", "--program", &socket, "--syscalls", &calls]).fails(1, &start, &[]);
}

#[test]
fn captures_that_are_none_and_outputs_that_would_lose_something() {
    if !has_libpcap("captures_that_are_none_and_outputs_that_would_lose_something") {
        return;
    }
    let folder = Folder::new();
    let missing = folder.text("missing.pcap");
    paceline(["filter", "ip", "-r", &missing]).fails(1, &format!("{missing}: No such file"), &[]);
    let traffic = fs::read(example("traffic.pcap")).unwrap();
    let input = folder.write("in.pcap", &traffic);
    let same = format!("--out {input} is the same file as the capture {input}");
    paceline(["filter", "ip", "-r", &input, "-w", &input]).fails(1, &same, &["nothing was written"]);
    assert_eq!(fs::read(&input).unwrap(), traffic);
    let rules = folder.write("rules", "rules: ip\n");
    let out = folder.text("{name}");
    let same = format!("--out {rules} is the same file as the filters {rules}");
    paceline(["filter", "--filters", &rules, "-r", &input, "-w", &out]).fails(1, &same, &[]);
    // An expression that is wrong leaves an output as it was.
    let out = folder.write("out.pcap", "precious");
    paceline(["filter", "tcp prot", "-r", &input, "-w", &out]).fails(1, "in the expression", &[]);
    assert_eq!(fs::read(&out).unwrap(), b"precious");
    let cut = folder.write("cut.pcap", &traffic[..traffic.len() - 7]);
    let json = paceline(["filter", "-r", &cut, "-w", &out, "--json"]);
    json.fails(1, &format!("{cut}: cut in the middle of packet 492"), &["the 491 packets before it"]);
    assert!(json.out.contains("\"error\""), "{}", json.out);
    assert_eq!(crate::common::packets(&out).len(), 491);
}

#[test]
fn packets_of_another_link_type_end_it() {
    let folder = Folder::new();
    let block = |kind: u32, body: &[u8]| {
        let len = (body.len() + 12) as u32;
        [&kind.to_le_bytes()[..], &len.to_le_bytes(), body, &len.to_le_bytes()].concat()
    };
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend([0xff; 8]);
    let interface = |link_type: u8| block(1, &[link_type, 0, 0, 0, 0, 0, 0, 0]);
    let packet = |interface: u8| {
        let head = [[interface, 0, 0, 0], [0; 4], [0; 4], [4, 0, 0, 0], [4, 0, 0, 0], [0x45, 0, 0, 4]];
        block(6, head.as_flattened())
    };
    let capture = [block(0x0a0d_0d0a, &section), interface(101), interface(1), packet(0), packet(1)].concat();
    let input = folder.write("in.pcapng", capture);
    let done = paceline(["filter", "-r", &input]);
    let cause =
        "packet 2 at byte 104: link type ETHERNET (1) of interface 1 is not supported, only RAW (101)";
    done.fails(1, &format!("{input}: {cause}"), &["one link type"]);
    assert!(done.out.contains("1 packet, 4 bytes"), "{}", done.out);
}

#[test]
fn outputs_that_take_no_more() {
    if !has_libpcap("outputs_that_take_no_more") {
        return;
    }
    let done = paceline(["filter", "-w", "/dev/full"]);
    done.fails(1, "/dev/full: ", &["No space left on device"]);
    // Who reads no further is no failure, for packets and for reports.
    for args in [&["filter", "-w", "-"][..], &["filter", "-d", "ip"]] {
        let mut child =
            command().args(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let done = child.wait_with_output().expect("it ends");
        assert_eq!(done.status.code(), Some(0), "{}", String::from_utf8_lossy(&done.stderr));
    }
}
