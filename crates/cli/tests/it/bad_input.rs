//! Everything that a user can get wrong: one message with file, place and cause, status 1 (or 2 for the command line),
//! nothing lost, and what was written before is readable.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use crate::common::{Done, Folder, capture, command, example, fixture, paceline, packets};

#[test]
fn the_command_line_is_checked_with_status_2() {
    let counter = example("counter.o");
    paceline(["run", &counter, "--engine", "fast"]).fails(
        2,
        "invalid value 'fast' for '--engine",
        &["plain"],
    );
    paceline(["run", &counter, "--unverified", "--engine", "jit"]).fails(
        2,
        "--engine jit runs verified programs, and with --unverified the engine is plain",
        &["Usage: paceline run"],
    );
    paceline(["run", &counter, "--count", "many"]).fails(2, "invalid value 'many' for '--count <N>'", &[]);
    paceline(["run", &counter, "--map", "rules"]).fails(2, "invalid value 'rules'", &["NAME=FILE"]);
    paceline(["rum"]).fails(2, "unrecognized subcommand 'rum'", &["run"]);
    paceline(["inspect"]).fails(2, "the following required arguments", &["<OBJECT>"]);
    let nothing: [&str; 0] = [];
    assert_eq!(paceline(nothing).status, Some(2));
}

#[test]
fn objects_that_are_none() {
    let folder = Folder::new();
    let missing = folder.text("missing.o");
    let text = folder.write("prog.c", "int main(void) { return 0; }");
    let empty = folder.write("empty.o", "");
    let whole = fs::read(example("firewall.o")).unwrap();
    let cut = folder.write("cut.o", &whole[..whole.len() / 2]);
    let folder_itself = folder.text("");
    let own_binary = env!("CARGO_BIN_EXE_paceline");
    for subcommand in ["run", "inspect", "dump"] {
        let fails = |path: &str, cause: &str| {
            paceline([subcommand, path]).fails(1, &format!("{path}: {cause}"), &[]);
        };
        fails(&missing, "No such file");
        fails(&folder_itself, "Is a directory");
        fails(&text, "not an ELF file");
        fails(&empty, "");
        fails(&cut, "malformed ELF: ");
        fails(own_binary, "not a BPF object: ELF machine ");
        let traffic = example("traffic.pcap");
        paceline([subcommand, &traffic]).fails(
            1,
            &format!("{traffic}: not an ELF file"),
            &["captures are given by --in"],
        );
    }
}

#[test]
fn programs_that_are_not_there() {
    let vlan = example("vlan.o");
    let several = format!("{vlan}: several programs in the object, name one of: vlan_pop, vlan_push");
    paceline(["run", &vlan]).fails(1, &several, &["vlan.o:vlan_pop"]);
    for subcommand in ["run", "dump"] {
        let done = paceline([subcommand, &format!("{vlan}:vlan_pup")]);
        done.fails(1, &format!("{vlan}: no program vlan_pup (available: "), &["did you mean `vlan_p"]);
    }
}

#[test]
fn objects_that_need_what_paceline_does_not_have() {
    let needs = fixture("needs.o");
    let done = paceline(["run", &needs]);
    done.fails(
        1,
        &format!("{needs}: program needs: map \"groups\": map type cgroup_array"),
        &["paceline inspect"],
    );
    assert_eq!(done.out, "");
}

#[test]
fn captures_that_are_none() {
    let folder = Folder::new();
    let verdicts = fixture("verdicts.o");
    let fails = |path: &str, cause: &str, hint: &str| {
        let out = folder.text("out.pcap");
        let done = paceline(["run", &verdicts, "--in", path, "--out", &out]);
        done.fails(1, &format!("{path}: {cause}"), &[hint]);
        assert_eq!(done.out, "");
        assert!(!fs::exists(out).unwrap(), "nothing is created when there is nothing to write");
    };
    fails(&folder.text("missing.pcap"), "No such file", "");
    fails(&folder.write("empty.pcap", ""), "the capture is empty", "");
    fails(&folder.write("short.pcap", &capture(&[])[..20]), "cut in the middle of the file header", "");
    fails(&folder.write("text.pcap", "hello world"), "not a pcap or pcapng capture", "");
    fails(&folder.write("traffic.gz", [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), "compressed with gzip", "gzip -dc");
    fails(&verdicts, "not a pcap or pcapng capture but an ELF file", "objects are not given with --in");
    let mut cooked = capture(&[b"\x02"]);
    cooked[20] = 113;
    fails(&folder.write("cooked.pcap", cooked), "link type LINUX_SLL (113) is not supported", "ETHERNET");
}

#[test]
fn a_capture_cut_in_a_packet_gives_those_before() {
    let folder = Folder::new();
    let mut bytes = capture(&[b"\x02a", b"\x01b", b"\x02c", b"\x02d"]);
    bytes.truncate(bytes.len() - 1);
    let (input, out, drops) =
        (folder.write("in.pcap", bytes), folder.text("out.pcap"), folder.text("drops.pcap"));
    let done = paceline(["run", &fixture("verdicts.o"), "--in", &input, "--out", &out, "--drops", &drops]);
    let expected = format!("{input}: cut in the middle of packet 4 at byte 78: 17 of 18 bytes are there");
    done.fails(1, &expected, &["the 3 packets before it have their verdicts"]);
    assert!(done.out.contains("3 packets") && done.out.contains("ended early"), "{}", done.out);
    assert_eq!(packets(out), [b"\x02a", b"\x02c"]);
    assert_eq!(packets(drops), [b"\x01b"]);

    let done = paceline(["run", &fixture("verdicts.o"), "--in", &input, "--json"]);
    assert_eq!(done.status, Some(1));
    let json: serde_json::Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(json["packets"], 3);
    assert_eq!(json["error"], expected);
}

#[test]
fn a_program_that_reads_outside_its_packet_is_shown_where() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[1; 60], &[1; 64], &[1; 59], &[1; 60]]);
    let (object, out) = (fixture("outside.o"), folder.text("out.pcap"));
    let done = paceline(["run", &object, "--unverified", "--in", &input, "--out", &out]);
    let start =
        format!("{object}: program outside, packet 3 of {input}: read of 1 bytes at packet offset 59");
    done.fails(
        1,
        &start,
        &[
            "\n  in function byte_59\n",
            "outside.bpf.c:10: return data[59];\n",
            ": r0 = *(u8 *)(r1 + 59)\n",
            "the 2 packets before it have their verdicts",
        ],
    );
    assert_eq!(packets(out).len(), 2);
}

#[test]
fn a_program_that_does_not_end_is_ended() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[1; 60], &[1; 10]]);
    let object = fixture("endless.o");
    let done = paceline(["run", &object, "--unverified", "--in", &input, "--budget", "5000"]);
    let start =
        format!("{object}: program endless, packet 2 of {input}: still running after 5000 instructions");
    done.fails(1, &start, &["in function endless", "endless.bpf.c:1", "--budget"]);
}

#[test]
fn an_instruction_that_was_not_relocated_fails_with_the_reason() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[1; 60]]);
    let object = fixture("weak.o");
    let done = paceline(["run", &object, "--unverified", "--in", &input]);
    let start =
        format!("{object}: program weak, packet 1 of {input}: reached an instruction that could not be");
    done.fails(
        1,
        &start,
        &["calls `bpf_no_such_function`", "weak.bpf.c:11: return bpf_no_such_function(ctx);"],
    );
}

#[test]
fn a_failure_is_told_even_if_nobody_reads_the_summary() {
    let mut child = command()
        .args(["run", "--unverified", &fixture("weak.o")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("error: "));
}

#[test]
fn outputs_that_cannot_be_written() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[b"\x02a"]);
    let nowhere = folder.text("nowhere/out.pcap");
    let verdicts = fixture("verdicts.o");
    let run = |out: &str| paceline(["run", &verdicts, "--in", &input, "--out", out]);
    run(&nowhere).fails(1, &format!("{nowhere}: No such file or directory"), &[]);
    run("/dev/full").fails(1, "/dev/full: cannot write after byte 0: No space left", &[]);
    run(&folder.text("")).fails(1, &folder.text(""), &["Is a directory"]);
    // Where the second cannot be created, the first is not either, and one that was there keeps what it had.
    let fresh = folder.text("fresh.pcap");
    let both = |out: &str| paceline(["run", &verdicts, "--in", &input, "--out", out, "--drops", &nowhere]);
    both(&fresh).fails(1, &nowhere, &[]);
    let old = folder.write("old.pcap", "something");
    both(&old).fails(1, &nowhere, &[]);
    assert_eq!(fs::read(old).unwrap(), b"something");
    assert_eq!(folder.names(), ["in.pcap", "old.pcap"]);
}

#[test]
fn standard_output_that_cannot_be_written() {
    let full = || Stdio::from(fs::OpenOptions::new().write(true).open("/dev/full").unwrap());
    for args in [vec!["inspect".to_owned(), example("vlan.o")], vec!["run".to_owned()]] {
        let output = command().args(args).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let err = String::from_utf8(output.stderr).unwrap();
        assert!(err.contains("error: standard output: No space left"), "{err}");
    }
}

#[test]
fn no_file_that_is_read_is_written() {
    let folder = Folder::new();
    let bytes = capture(&[b"\x02a", b"\x01b"]);
    let input = folder.write("in.pcap", &bytes);
    let object = folder.text("verdicts.o");
    fs::copy(fixture("verdicts.o"), &object).unwrap();
    fs::hard_link(&input, folder.path("hard.pcap")).unwrap();
    symlink("in.pcap", folder.path("soft.pcap")).unwrap();
    let around = folder.text("./../").replace("/./../", &format!("/../{}/in.pcap", folder_name(&folder)));
    for out in [&input, &folder.text("hard.pcap"), &folder.text("soft.pcap"), &around] {
        for option in ["--out", "--drops"] {
            let done = paceline(["run", &object, "--in", &input, option, out]);
            done.fails(
                1,
                &format!("{option} {out} is the same file as the capture {input}"),
                &["nothing was written"],
            );
            assert_eq!(fs::read(&input).unwrap(), bytes);
        }
    }
    let before = fs::read(&object).unwrap();
    paceline(["run", &object, "--in", &input, "--out", &object]).fails(
        1,
        "--out",
        &["the same file as the object"],
    );
    assert_eq!(fs::read(&object).unwrap(), before);

    let (out, link) = (folder.text("out.pcap"), folder.text("out-link.pcap"));
    let done = paceline(["run", &object, "--in", &input, "--out", &out, "--drops", &out]);
    done.fails(1, &format!("--drops {out} is the same file as --out {out}"), &[]);
    assert!(!fs::exists(&out).unwrap());
    symlink("out.pcap", &link).unwrap();
    paceline(["run", &object, "--in", &input, "--out", &out, "--drops", &link]).fails(1, "--drops", &[&out]);
    paceline(["run", &object, "--in", &input, "--out", "-", "--drops", "-"]).fails(
        1,
        "--drops",
        &["--out -"],
    );

    let rules = folder.write("rules.json", "[]");
    let done = paceline(["run", &example("firewall.o"), "--map", &format!("rules={rules}"), "--out", &rules]);
    done.fails(1, "--out", &["the same file as the file", "of map rules"]);
    assert_eq!(fs::read(&rules).unwrap(), b"[]");
}

fn folder_name(folder: &Folder) -> String {
    folder.path("").file_name().unwrap().to_string_lossy().into_owned()
}

#[test]
fn standard_input_and_output_may_not_be_one_file() {
    let folder = Folder::new();
    let bytes = capture(&[b"\x02a", b"\x01b"]);
    let input = folder.write("in.pcap", &bytes);
    let output = command()
        .args(["run", &fixture("verdicts.o"), "--in", "-", "--out", "-"])
        .stdin(fs::File::open(&input).unwrap())
        .stdout(fs::OpenOptions::new().append(true).open(&input).unwrap())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("same file as the capture standard input"));
    assert_eq!(fs::read(&input).unwrap(), bytes);
}

#[test]
fn pages_and_test_files_replace_no_input() {
    let folder = Folder::new();
    let copy = |name: &str| {
        fs::copy(example(name), folder.path(name)).unwrap();
        folder.text(name)
    };
    let (capture, firewall, vlan) = (copy("traffic.pcap"), copy("firewall.o"), copy("vlan.o"));
    let push = format!("{vlan}:vlan_push");
    let test = folder.text("a.test.toml");
    fs::write(
        &test,
        "object = \"firewall.o\"\n[[test]]\nname = \"a\"\npacket = \"eth\"\nverdict = \"PASS\"\n",
    )
    .unwrap();
    // The name of a test file has an end of its own.
    let linked = |file: &String| {
        let link = format!("{file}.test.toml");
        fs::hard_link(file, &link).unwrap();
        link
    };
    let report = |out: &String| paceline(["report", &firewall, "--in", &capture, "-o", out]);
    let shrink = |out: &String| {
        let link = linked(out);
        let done = paceline(["diff", &firewall, &push, "--in", &capture, "--shrink", &link]);
        Done { err: done.err.replace(&link, out), ..done }
    };
    let junit = |out: &String| paceline(["test", &test, "--junit", out]);
    type Run<'a> = &'a dyn Fn(&String) -> Done;
    let cases: [(Run<'_>, _, &[&String]); 3] = [
        (&report, "--output", &[&capture, &firewall]),
        (&shrink, "--shrink", &[&capture, &firewall, &vlan]),
        (&junit, "--junit", &[&test, &firewall]),
    ];
    for (run, option, outputs) in cases {
        for out in outputs {
            let before = fs::read(out).unwrap();
            run(out).fails(1, &format!("{option} {out} is the same file as the "), &["nothing was written"]);
            assert_eq!(fs::read(out).unwrap(), before);
        }
    }
}
