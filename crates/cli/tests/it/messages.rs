//! Messages name the file, the place, the cause and the way out: a table of mistakes, each with what must be told, and what no message
//! may have. Statuses are 1, and nothing is written.

use std::fs;
use std::process::Stdio;

use crate::common::{Done, Folder, command, example, fixture, paceline};

/// Phrases of libraries, which tell nobody which value is wrong, or why.
const RAW: [&str; 12] = [
    "invalid digit found in string",
    "stream did not contain valid UTF-8",
    "Numerical result out of range",
    "Invalid argument (os error",
    "entity not found",
    "EOF while parsing",
    "Could not read bytes",
    "SUN_LEN",
    "invalid type:",
    "(ENODEV)",
    "(EINVAL)",
    "panicked",
];

/// Checks that a command fails, with one error that starts so and has these parts, and without raw text.
#[track_caller]
fn told(done: &Done, start: &str, parts: &[&str]) {
    done.fails(1, start, parts);
    for raw in RAW {
        assert!(!done.err.contains(raw), "{raw:?} in: {}", done.err);
    }
}

/// Files that are given in the place of others.
struct Files {
    folder: Folder,
    source: String,
    bytes: String,
    bitcode: String,
    capture: String,
    object: String,
    nested: String,
}

impl Files {
    fn new() -> Self {
        let folder = Folder::new();
        Self {
            source: folder.write("prog.c", "int main(void) { return 0; }\n"),
            bytes: folder.write("bytes", [6, 0, 0, 0, 0xff, 0xff, 0xff, 0xff]),
            bitcode: folder.write("bitcode.o", b"BC\xc0\xde\x35\x14\0\0"),
            capture: folder.write("traffic.pcap", fs::read(example("traffic.pcap")).unwrap()),
            object: folder.write("firewall.o", fs::read(example("firewall.o")).unwrap()),
            nested: folder.text("nowhere/out"),
            folder,
        }
    }
}

#[test]
fn files_of_another_format_are_told_by_what_they_are() {
    let files = Files::new();
    let Files { source, bytes, bitcode, capture, object, .. } = &files;
    for command in ["run", "inspect", "verify", "dump"] {
        let given = |path: &str, what: &str, hint: &str| {
            told(&paceline([command, path]), &format!("{path}: not an ELF file{what}"), &[hint]);
        };
        given(source, " but text", "clang -O2 -g -target bpf");
        given(bytes, "", "clang -O2 -g -target bpf");
        given(bitcode, " but LLVM bitcode", "llc -march=bpf -filetype=obj");
        given(capture, " but a pcap capture", "captures are given by --in");
    }
    let empty = files.folder.write("empty.json", "{");
    let whole = fs::read(object).unwrap();
    let cut = files.folder.write("cut.o", &whole[..whole.len() / 2]);
    let own = env!("CARGO_BIN_EXE_paceline");
    let rules = |path: &str| format!("rules={path}");
    let text = |path: &str| match path == bytes {
        true => format!("{path}: not a text file: line 1, column 5 is not UTF-8"),
        false => format!("{path}: not a text file but an ELF file"),
    };
    told(&paceline(["run", &cut]), &format!("{cut}: malformed ELF: bytes "), &["it is cut off, or damaged"]);
    told(&paceline(["run", own]), &format!("{own}: not a BPF object: ELF machine "), &["-target bpf"]);
    told(
        &paceline(["run", object, "--in", source]),
        &format!("{source}: not a pcap or pcapng capture but text"),
        &[],
    );
    told(
        &paceline(["run", object, "--in", object]),
        &format!("{object}: not a pcap or pcapng capture but an ELF file"),
        &["--in"],
    );
    told(
        &paceline(["run", object, "--map", &rules(&empty)]),
        &format!("{empty}: line 1, column 1: the text ends within an object"),
        &[],
    );
    told(
        &paceline(["run", object, "--btf", source]),
        &format!("--btf {source}: not an ELF file but text"),
        &[],
    );
    for path in [bytes, object] {
        let cause = text(path);
        told(&paceline(["run", object, "--map", &rules(path)]), &cause, &[]);
        told(&paceline(["run", object, "--restore-maps", path]), &cause, &[]);
        told(&paceline(["run", object, "--network", path]), &format!("--network {cause}"), &[]);
        told(&paceline(["run", object, "--kconfig", path]), &format!("--kconfig {cause}"), &[]);
        told(&paceline(["run", object, &example("counter.o"), "--calls", path]), &cause, &[]);
        told(&paceline(["filter", "--filters", path, "-r", capture]), &cause, &["lines `name: expression`"]);
        let test = files.folder.text("copy.test.toml");
        fs::copy(path, &test).unwrap();
        let done = paceline(["filter", "--program", bytes, "-r", capture]);
        told(&done, &text(bytes), &["what `tcpdump -ddd` or `-dd` prints"]);
        told(&paceline(["test", &test]), &cause.replace(path.as_str(), &test), &[]);
    }
    told(&paceline(["run", "--chain", object]), &format!("{object}: not a text file but an ELF file"), &[]);
    told(&paceline(["run", "--chain", bytes]), &format!("{bytes}:1:5: not valid UTF-8"), &[]);
}

#[test]
fn outputs_in_a_folder_that_is_not_there_name_it() {
    let files = Files::new();
    let Files { capture, object, nested, .. } = &files;
    let before = files.folder.names();
    let missing = "hint: there is no folder `";
    for option in ["--out", "--drops", "--verdicts", "--events", "--save-maps", "--coverage"] {
        let done = paceline(["run", object, "--in", capture, option, nested]);
        told(&done, &format!("{nested}: No such file or directory"), &[missing]);
    }
    let told_of =
        |args: &[&str]| told(&paceline(args), &format!("{nested}: No such file or directory"), &[missing]);
    told_of(&["report", object, "--in", capture, "-o", nested]);
    told_of(&["filter", "-r", capture, "-w", nested]);
    told_of(&["generate", object, "--out", nested]);
    told_of(&["live", object, "--port", "gen:count=1", "--capture", nested]);
    told_of(&["live", object, "--port", &format!("pcap:{capture},{nested}")]);
    assert_eq!(files.folder.names(), before);
}

#[test]
fn values_of_options_are_told_with_their_range() {
    let object = example("counter.o");
    for (args, cause) in [
        (["--count", "abc"], "it must be a whole number"),
        (["--count", "-1"], "it cannot be negative"),
        (["--count", "99999999999999999999"], "the number is too large"),
        (["--seed", "1e9"], "it must be a whole number"),
        (["--cpus", "0"], "it must be from 1 to 1024"),
        (["--rx-queue", "70000"], "it must be from 0 to 65535"),
    ] {
        let done = paceline([&["run", &object], &args[..]].concat());
        done.fails(2, &format!("invalid value '{}' for '{}", args[1], args[0]), &[cause]);
    }
}

#[test]
fn maps_and_variables_are_told_apart() {
    let folder = Folder::new();
    let firewall = example("firewall.o");
    let number = |name: &str| paceline(["run", &firewall, "--map", &format!("{name}=1")]);
    told(
        &number("drop_fragments"),
        "--map drop_fragments=1: `drop_fragments` is no map but a variable of .rodata",
        &["`--set drop_fragments=1` sets it", "--map .rodata=FILE"],
    );
    told(&number("rulez"), "1: No such file", &[]);
    let empty = folder.write("a.json", "[]");
    told(
        &paceline(["run", &firewall, "--map", &format!("rulez={empty}")]),
        &format!("{empty}: the object has no map `rulez`"),
        &["did you mean `rules`?"],
    );
    let test = folder.write(
        "a.test.toml",
        format!(
            "object = \"{firewall}\"\nmaps.drop_fragments = 1\n[[test]]\nname = \"a\"\npacket = \"eth\"\n"
        ),
    );
    let done = paceline(["test", &test]);
    assert!(
        done.err.contains("`drop_fragments` is no map but a variable of .rodata")
            || done.out.contains("is no map but a variable of .rodata"),
        "{}{}",
        done.out,
        done.err
    );
    let given = |object: &str, map: &str, json: &str| {
        let file = folder.write("elements.json", json);
        (paceline(["run", object, "--map", &format!("{map}={file}")]), file)
    };
    let prefix = r#"[{"key": "10.9.1.0/33", "value": 1}]"#;
    let (done, file) = given(&fixture("state.o"), "prefixes", prefix);
    told(
        &done,
        &format!("{file}: line 1, column 10: map prefixes, element 1, key: `10.9.1.0/33` is no prefix"),
        &["0 to 32, such as 10.0.0.0/8"],
    );
    let (done, _) = given(&firewall, "rules", r#"[{"key": "22", "value": {"action": "x"}}]"#);
    told(&done, "", &["not the text `22`"]);
    let (done, file) = given(&fixture("cut_enum.o"), ".rodata", r#"{"limit": "HUGE"}"#);
    told(
        &done,
        &format!("{file}: line 1, column 11: map .rodata, variable limit"),
        &["only the low 32 bits of `HUGE`", "give the number"],
    );
    let (done, _) = given(&fixture("cut_enum.o"), ".rodata", r#"{"limit": 18364758544493064720}"#);
    assert!(done.ok().contains("tx                492  100.0%"));
}

#[test]
fn objects_that_other_loaders_take_load_or_say_why_not() {
    let common = fixture("common_symbol.o");
    told(
        &paceline(["run", &common]),
        &format!("{common}: section xdp, offset "),
        &["`counter` is in no section", "-fno-common"],
    );
    let unknown = fixture("unknown_sections.o");
    let parts = [
        "in (section classifier_ingress), act (section action), forgotten (in no section of programs)",
        "tc for a TC classifier",
        "`SEC(\"xdp\") int forgotten(...)`",
    ];
    for target in [unknown.clone(), format!("{unknown}:nobody")] {
        told(
            &paceline(["verify", &target]),
            &format!("{unknown}: no XDP program, TC classifier or socket filter in the object"),
            &parts,
        );
    }
    told(
        &paceline(["run", &format!("{unknown}:forgotten")]),
        &format!("{unknown}: program forgotten is in section .text"),
        &["a section before it makes a function a program"],
    );
    let json = paceline(["run", &unknown, "--type", "tc"]).json_error();
    assert!(json.contains("several programs"), "{json}");
    // Sizes that Go's loader fills in: the events come.
    let events = Folder::new();
    let run =
        paceline(["run", &fixture("perf_sizes.o"), "--json", "--events", &events.text("events.json")]).json();
    assert_eq!(run["verdicts"]["pass"], run["packets"]);
    let drop = paceline(["run", &format!("{}:jump", fixture("iproute2.o")), "--json"]).json();
    assert_eq!(drop["verdicts"]["drop"], drop["packets"]);
}

#[test]
fn an_entry_whose_program_is_not_supported_stays_empty_with_a_note() {
    let object = fixture("unsupported_tail.o");
    let note = "note: entry 1 of map calls stays empty, so that tail calls to it fail: program target: helper bpf_clone_redirect is \
                not supported";
    for (program, verdict) in [("first", "drop"), ("second", "pass")] {
        let done = paceline(["run", &format!("{object}:{program}"), "--json"]);
        assert!(done.err.contains(note), "{}", done.err);
        let json = done.json();
        assert_eq!(json["verdicts"][verdict], json["packets"], "{program}");
        let done = paceline(["verify", &format!("{object}:{program}")]);
        assert!(done.err.contains(note), "{}", done.err);
        done.ok();
    }
    let third = paceline(["run", &format!("{object}:third")]);
    assert!(!third.err.contains("entry 1"), "{}", third.err);
    third.ok();
    told(
        &paceline(["run", &format!("{object}:target")]),
        &format!("{object}: program target needs what Paceline does not have"),
        &[],
    );
}

#[test]
fn sockets_and_ports_are_told_by_their_option() {
    let files = Files::new();
    let Files { object, folder, .. } = &files;
    let status = |path: &str| paceline(["status", "--control", path]);
    told(&status(object), &format!("control socket {object}: this is no socket"), &[]);
    told(&status(&folder.text("none")), "control socket ", &["no instance runs there", "with --wait"]);
    let long = folder.text(&"x".repeat(120));
    told(&status(&long), "control socket ", &["paths of sockets have at most 107"]);
    let live = |option: &str, value: &str| {
        let base = ["live", object, "--port", "gen:count=1"];
        paceline([&base[..], &[option, value]].concat())
    };
    told(&live("--control", &long), "control socket ", &["at most 107"]);
    told(
        &live("--metrics", "192.0.2.1:80"),
        "--metrics 192.0.2.1:80: no interface of this host has the address",
        &[],
    );
    told(
        &live("--pass", "tap:a_name_that_is_long"),
        "--pass tap:a_name_that_is_long: `a_name_that_is_long` cannot be the name",
        &["1 to 15 bytes"],
    );
    told(&live("--pass", "packet:nope"), "--pass packet:nope: there is no interface `nope`", &[]);
    told(&live("--port", "pcap:nope"), "--port pcap:nope: nope: No such file", &[]);
    let refused = paceline(["live", &fixture("no_bounds_check.o"), "--port", "gen:count=1"]);
    told(&refused, "", &["`paceline run --unverified` runs it"]);
    told(
        &paceline(["run", object, "--ingress", "eth7"]),
        "--ingress eth7: there is no such interface",
        &["--network"],
    );
}

#[test]
fn a_cpu_that_the_run_does_not_have_is_told() {
    let folder = Folder::new();
    let cpus = folder.write("cpus.json", r#"[{"key": 7, "value": 192}]"#);
    let redirects = fixture("places.o");
    let done = paceline(["run", &format!("{redirects}:to_cpu"), "--map", &format!("cpus={cpus}")]);
    told(
        &done,
        &format!("{cpus}: line 1, column 2: map cpus, element 1"),
        &["the run has no such CPU", "run --cpus N"],
    );
}

#[test]
fn packets_without_an_ethernet_header_are_noted() {
    let folder = Folder::new();
    let counter = example("counter.o");
    let test = |packet: &str| {
        let text = format!(
            "object = \"{counter}\"\n[[test]]\nname = \"a\"\npacket = \"{packet}\"\nverdict = \"pass\"\n"
        );
        folder.write("a.test.toml", text)
    };
    let without = test("ipv4 / tcp");
    let done = paceline(["test", &without]);
    let note = format!(
        "note: {without}:4:10: the packet begins with ipv4, and programs see an Ethernet header there: `eth / ipv4 ...`"
    );
    assert!(done.err.contains(&note), "{}", done.err);
    done.ok();
    let done = paceline(["test", &test("eth / ipv4 / tcp")]);
    assert!(!done.err.contains("begins with"), "{}", done.err);
    done.ok();
    for (packet, cause) in
        [("eth / ip / tcp", "perhaps `ipv4`"), ("eth / tcp", "ipv4 or ipv6 is missing between")]
    {
        let file = test(packet);
        told(&paceline(["test", &file]), &format!("{file}:4:10: packet, column 7: "), &[cause]);
    }
}

#[test]
fn a_closed_standard_input_is_an_empty_capture() {
    let output =
        command().args(["run", &example("counter.o"), "--in", "-"]).stdin(Stdio::null()).output().unwrap();
    told(&output.into(), "standard input: the capture is empty", &[]);
}

#[test]
fn mistakes_in_test_files_and_chain_files_have_their_place() {
    let folder = Folder::new();
    let copy = |name: &str| fs::copy(example(name), folder.path(name)).unwrap();
    copy("firewall.o");
    copy("vlan.o");
    let test = |text: &str| {
        let file = folder.write("a.test.toml", format!("object = \"firewall.o\"\n[[test]]\n{text}\n"));
        (paceline(["test", &file]), file)
    };
    for (text, message) in [
        ("nam = \"a\"\npacket = \"eth\"", "3:1: unknown key `nam` in a test, perhaps `name`"),
        ("name = \"a\"", "3:8: a test has its packet itself, or a list of steps with packets"),
        ("name = \"a\"\npacket = { hex = \"zz\" }", "4:18: `hex` must be pairs of hexadecimal digits"),
        ("name = \"a\"\npacket = \"eth\"\nrepeat = -1", "5:10: `repeat` must be a whole number from 0 on"),
        (
            "name = \"a\"\npacket = \"eth\"\nout = { \"ip.ttl\" = 3 }",
            "5:9: no protocol is named `ip`, perhaps `ipv4`",
        ),
        ("name = \"a\"\npacket = { capture = \"firewall.o\" }", "4:10: "),
    ] {
        let (done, file) = test(text);
        told(&done, &format!("{file}:{message}"), &[]);
    }
    let chain = |text: &str| {
        let file = folder.write("chain.toml", text);
        (paceline(["run", "--chain", &file]), file)
    };
    for (text, message, hint) in [
        (
            "[objects.a]\nfile = \"vlan.o\"\n[[program]]\nname = \"a\"\n",
            "4:8: a: several programs in the object",
            "say `function = \"vlan_p",
        ),
        ("[objects.a]\nfile = \"none.o\"\n[[program]]\nname = \"a\"\n", "2:8: ", "none.o: No such file"),
        (
            "[objects.a]\nfil = \"vlan.o\"\n[[program]]\nname = \"a\"\n",
            "2:1: unknown key `fil`",
            "did you mean `file`?",
        ),
        (
            "[objects.a]\nfile = \"firewall.o\"\nmaps.drop_fragments.variables = { x = 1 }\n[[program]]\nname = \"a\"\n",
            "3:6: `drop_fragments` is no map but a variable of .rodata",
            "",
        ),
    ] {
        let (done, file) = chain(text);
        told(&done, &format!("{file}:{message}"), &[hint]);
    }
}
