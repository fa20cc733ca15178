//! Chains on the command line and in files.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Folder, capture, command, example, fixture, has_libpcap, paceline, packets};
use serde_json::{Value, json};

/// `early` (priority 10, goes on after drop and pass), `middle` (50, pass), `late` (60, tx): each returns one verdict.
fn part(program: &str) -> String {
    format!("{}:{program}", fixture("run_config.o"))
}

fn names(json: &Value) -> Vec<&str> {
    json["programs"].as_array().unwrap().iter().map(|program| program["name"].as_str().unwrap()).collect()
}

#[test]
fn several_objects_run_by_their_priorities_or_as_given() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[0; 60], &[1; 60]]);
    let programs = [part("late"), part("middle"), part("early")];
    let run = |more: &[&str]| {
        let args = [&["run", "--json", "--in", &input, "--stats"], more].concat();
        paceline(args.into_iter().map(str::to_owned).chain(programs.iter().cloned()))
    };
    let done = run(&[]);
    let told = "note: programs run by priority: early, middle, late; `--order given` runs them as given";
    assert!(done.err.contains(told), "{}", done.err);
    assert!(done.err.contains("warning: tx of late becomes pass"), "{}", done.err);
    let json = done.json();
    assert_eq!(names(&json["chain"]), ["early", "middle", "late"]);
    assert_eq!(json["verdicts"], json!({"aborted": 0, "drop": 0, "pass": 2, "tx": 0, "redirect": 0}));
    let late = &json["status"]["programs"][2];
    assert_eq!(
        (&late["runs"], &late["edges"]),
        (&json!(2), &json!([{"after": "tx", "end": "pass", "packets": 2}]))
    );
    let json = run(&["--order", "given"]).json();
    assert_eq!(names(&json["chain"]), ["late", "middle", "early"]);
    assert_eq!(json["verdicts"]["drop"], 2);
    let runs = json["status"]["programs"].as_array().unwrap().iter().map(|program| &program["runs"]);
    assert_eq!(runs.collect::<Vec<_>>(), [2, 2, 2], "{json}");
}

#[test]
fn the_reasons_for_the_order_are_told() {
    let out = paceline(["chain", "explain", &part("middle"), &example("counter.o"), &part("early")]).ok();
    let expected = "1. early: run priority 10; goes on after drop, pass\n\
                    2. counter: run priority 50; goes on after pass\n\
                    3. middle: run priority 50, behind counter by the name of its function; goes on after pass\n";
    assert_eq!(out, expected);
}

#[test]
fn a_graph_is_shown_as_text_dot_and_svg() {
    let args = ["chain", "show", &part("early"), &part("middle")];
    let text = paceline(args).ok();
    assert_eq!(
        text,
        "early\n  drop     -> middle\n  pass     -> middle\nmiddle\n  pass     -> end with pass\n"
    );
    let dot = paceline(args.iter().chain(&["--dot"])).ok();
    assert!(dot.contains("n0 -> n1 [label=\"drop, pass\"]") && dot.ends_with("}\n"), "{dot}");
    let svg = paceline(args.iter().chain(&["--svg"])).ok();
    assert!(svg.starts_with("<svg") && svg.contains(">middle</text>") && svg.ends_with("</svg>\n"), "{svg}");
    let json = paceline(args.iter().chain(&["--json"])).json();
    assert_eq!(json["programs"][1]["edges"], json!([{"after": "pass", "end": "pass"}]));
    assert_eq!(json["programs"][0]["object"], fixture("run_config.o"));
}

#[test]
fn programs_are_placed_by_others() {
    let (early, middle, late) = (part("early"), part("middle"), part("late"));
    let explain = |places: &[&str]| {
        let places = places.iter().flat_map(|place| ["--place", place]);
        paceline(["chain", "explain", &early, &middle, &late].into_iter().chain(places))
    };
    assert_eq!(
        explain(&["late=first", "early=after:middle"]).ok(),
        "1. late: placed first; goes on after tx\n\
         2. middle: placed there; goes on after pass\n\
         3. early: placed after middle; goes on after drop, pass\n"
    );
    assert_eq!(
        explain(&["late=replace:early"]).ok(),
        "1. late: in the place of early; goes on after tx\n2. middle: placed there; goes on after pass\n"
    );
    explain(&["late=before:lte"]).fails(
        1,
        "--place late=before:lte: no program `lte`",
        &["early, middle, late"],
    );
    explain(&["late=before:late"]).fails(
        1,
        "--place late=before:late: a program cannot be placed relative to itself",
        &[],
    );
    explain(&["late=befor:early"]).fails(2, "invalid value 'late=befor:early'", &["say NAME=first"]);
    let args = ["chain", "show", &early, &late, "--order", "priority", "--place", "late=first"];
    paceline(args).fails(1, "--place is for programs in the given order, not by priority", &[]);

    let folder = Folder::new();
    let file = |lines: &str| {
        let text = format!(
            "[objects.o]\nfile = \"{}\"\n[[program]]\nname = \"early\"\nobject = \"o\"\nfunction = \"early\"\n\
             [[program]]\nname = \"late\"\nobject = \"o\"\nfunction = \"late\"\n{lines}\n",
            fixture("run_config.o")
        );
        folder.write("chain.toml", text)
    };
    let json = paceline(["chain", "show", "--json", &file("before = \"early\"")]).json();
    assert_eq!(names(&json), ["late", "early"]);
    assert_eq!(json["programs"][0]["reason"], "placed before early; goes on after tx");
    let alone = file("place = \"first\"");
    paceline(["run", &alone, &early]).fails(
        1,
        &format!("{alone}: a chain file cannot be combined with objects"),
        &[],
    );
    let endless = file("next.wildcard = \"late\"");
    let text = std::fs::read_to_string(&endless)
        .unwrap()
        .replace("function = \"early\"\n", "function = \"early\"\nnext.pass = \"late\"\n");
    let endless = folder.write("endless.toml", text);
    let shown = paceline(["chain", "show", &endless]).ok();
    let warning =
        "warning: nothing leads to an end from late on: its packets are aborted after 32 programs\n";
    assert!(shown.ends_with(warning), "{shown}");
}

#[test]
fn a_chain_call_map_says_what_runs_next() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[0; 60]]);
    let map = json!([{"key": "middle", "value": {"pass": "late"}}, {"key": "late", "value": {"wildcard": "early"}}]);
    let calls = folder.write("calls.json", map.to_string());
    let run = |calls: &str| {
        let (middle, late, early) = (part("middle"), part("late"), part("early"));
        paceline(["run", "--json", "--in", &input, "--calls", calls, &middle, &late, &early])
    };
    assert_eq!(run(&calls).json()["verdicts"]["drop"], 1);
    let wrong = |map: Value, problem: &str| {
        let calls = folder.write("wrong.json", map.to_string());
        run(&calls).fails(1, &format!("{calls}: {problem}"), &[]);
    };
    wrong(
        json!([{"key": "middle", "value": {"pass": "lte"}}]),
        "no program `lte` (available: early, late, middle)",
    );
    wrong(json!([{"key": "middle", "value": {"pas": "late"}}]), "no verdict `pas`");
    wrong(
        json!([{"key": "late", "value": {}}, {"key": "late", "value": {}}]),
        "program late has two entries",
    );
    wrong(json!([{"key": 1, "value": {}}]), "a chain-call map is a list");
    wrong(json!({}), "a chain-call map is a list");
}

#[test]
fn a_trace_shows_what_each_program_changed() {
    let folder = Folder::new();
    let input = folder.capture("in.pcap", &[&[0x11; 60], &[0x22; 60]]);
    let args = [
        "run",
        "--order",
        "given",
        "--in",
        &input,
        "--trace",
        "2",
        &format!("{}:vlan_push", example("vlan.o")),
        &part("late"),
    ];
    let out = paceline(args).ok();
    let expected = "packet 2: 60 bytes\n  vlan_push: pass -> late\n    4 bytes added at the front\n    0x0000: 22 22 22 22\n";
    assert!(out.starts_with(expected), "{out}");
    assert!(out.contains("\n  late: tx\n  tx\n"), "{out}");
    let json = paceline(args.iter().chain(&["--json"])).json();
    assert_eq!(json["traces"].as_array().unwrap().len(), 1);
    assert_eq!(json["traces"][0]["programs"][0]["length"], json!([60, 64]));
    assert_eq!(json["traces"][0]["programs"][0]["head_moved"], -4);
    paceline(["run", "--trace", "0"]).fails(2, "invalid value '0'", &["packets are numbers from 1"]);
}

/// Programs of one object with a map of another, elements, an edge and captures.
fn chain_file(folder: &Folder) -> String {
    folder.capture("in.pcap", &[&[0; 60], &[1; 60], &[2; 60]]);
    folder.write("ip.bpf", "4,48 0 0 0,21 0 1 1,6 0 0 65535,6 0 0 0\n");
    let object = fixture("run_config.o");
    folder.write(
        "chain.toml",
        format!(
            r#"first = "second byte"

[objects.one]
file = "{object}"
maps.seen.elements = [{{ key = 1, value = 40 }}]

[objects.two]
file = "{object}"
maps.seen.from = "one"

[objects.ones]
classic = "ip.bpf"

[[program]]
name = "second byte"
object = "ones"
next.drop = "a"

[[program]]
name = "a"
object = "one"
function = "middle"
next.pass = "b"

[[program]]
name = "b"
object = "two"
function = "middle"
end.pass = "tx"

[port]
in = "in.pcap"
out = "out.pcap"
"#
        ),
    )
}

#[test]
fn a_file_has_all_of_a_chain() {
    let folder = Folder::new();
    let file = chain_file(&folder);
    let json = paceline(["run", &file, "--json", "--maps"]).json();
    assert_eq!(json["verdicts"], json!({"aborted": 0, "drop": 0, "pass": 1, "tx": 2, "redirect": 0}));
    // Two packets through two programs that count in one map.
    for object in ["one", "two"] {
        assert_eq!(json["maps"][object]["seen"][0], json!({"key": 1, "value": 44}), "{json}");
    }
    assert_eq!(packets(folder.text("out.pcap")).len(), 3);
    let shown = paceline(["run", "--chain", &file, "--dry-run"]).ok();
    assert!(shown.starts_with("second byte\n  drop     -> a\na\n"), "{shown}");
}

/// The built-in capture's packets of an expression in a chain file are those of the program that tcpdump makes of it.
#[test]
fn an_expression_is_an_object() {
    if !has_libpcap("an_expression_is_an_object") {
        return;
    }
    let folder = Folder::new();
    let chain = |name: &str, object: &str| {
        let passed = folder.text(&format!("{name}.pcap"));
        let file = folder.write(
            name,
            format!("[objects.ports]\n{object}\n[[program]]\nname = \"ports\"\nend.pass = \"tx\"\n"),
        );
        let input = example("traffic.pcap");
        (paceline(["run", &file, "--in", &input, "--out", &passed, "--json"]), passed)
    };
    let (json, passed) = chain("expression.toml", "filter = \"udp port 53 or len >= 1000\"");
    let json = json.json();
    folder.write("ports.txt", paceline(["filter", "udp port 53 or len >= 1000", "-ddd"]).ok());
    let (classic, same) = chain("classic.toml", "classic = \"ports.txt\"");
    assert_eq!(json["verdicts"], classic.json()["verdicts"]);
    assert_eq!(packets(&passed), packets(&same));
    assert!(
        json["verdicts"]["tx"].as_u64() > Some(0) && json["verdicts"]["drop"].as_u64() > Some(0),
        "{json}"
    );
    let mistakes = [
        ("udp prot 53", "2:10: in the expression: syntax error at `prot`"),
        ("udp port", "2:10: in the expression: syntax error at its end"),
        ("ip6 protochain 6", "2:10: the expression `ip6 protochain 6`: instruction 18 (ja): jumps"),
    ];
    let long = format!("ip6 protochain 6 and {}ip", "ip and ".repeat(100));
    let brief = &long[..80];
    let too_long = (long.as_str(), format!("2:10: the expression `{brief}...`: "));
    for (expression, error) in
        mistakes.map(|(text, error)| (text, error.to_owned())).into_iter().chain([too_long])
    {
        let (done, _) = chain("wrong.toml", &format!("filter = \"{expression}\""));
        done.fails(1, &format!("{}:{error}", folder.text("wrong.toml")), &[]);
    }
}

#[test]
fn mistakes_in_files_have_their_place_and_leave_nothing_behind() {
    let folder = Folder::new();
    let file = chain_file(&folder);
    let good = std::fs::read_to_string(&file).unwrap();
    let object = fixture("run_config.o");
    let wrong = |line: &str, by: &str, error: &str, parts: &[&str]| {
        assert!(good.contains(line), "{line}");
        let file = folder.write("wrong.toml", good.replacen(line, by, 1));
        let done = paceline(["run", &file]);
        done.fails(1, &format!("{file}:{error}"), parts);
        assert!(!folder.names().contains(&"out.pcap".to_owned()), "nothing is written");
    };
    wrong("[port]", "[prot]", "31:2: unknown key `prot` in a chain file; did you mean `port`?", &[]);
    wrong(
        "function = \"middle\"",
        "function = \"midle\"",
        "22:12: one: no program midle (available: early, middle, late)",
        &["did you mean `middle`?"],
    );
    wrong("function = \"middle\"", "", "20:8: one: several programs in the object", &[]);
    wrong("maps.seen.from", "maps.sen.from", "9:17: no map in that object `sen`; did you mean `seen`?", &[]);
    wrong("from = \"one\"", "from = \"one\", map = \"sen\" }", "9:", &[]);
    wrong(
        "maps.seen.from = \"one\"",
        "maps.seen = { from = \"one\", map = \"sen\" }",
        "9:35: no map in that object `sen`; did you mean `seen`?",
        &[],
    );
    wrong("key = 1", "key = 9", "5:22: map seen, element 1: the index is out of range", &[]);
    wrong(&object, "nothing.o", &format!("4:8: {}: No such file", folder.text("nothing.o")), &[]);
    wrong("ip.bpf", "in.pcap", "12:11: ", &[]);
    wrong("in = \"in.pcap\"", "in = 7", "32:6: `in` is a text", &[]);
    let missing = folder.text("missing.toml");
    paceline(["run", &missing]).fails(1, &format!("{missing}: No such file"), &[]);
    paceline(["run", &file, "--order", "given"]).fails(1, "--order is an option for objects", &[]);
    let both = paceline(["run", "--chain", &file, &part("middle")]);
    both.fails(2, "the argument '--chain <FILE.toml>' cannot be used with", &[]);
    // An output would replace what the chain is read from.
    paceline(["run", &file, "--out", &file]).fails(
        1,
        &format!("--out {file} is the same file as the chain file"),
        &[],
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), good);
}

#[test]
fn map_files_are_for_the_object_that_has_the_map() {
    let folder = Folder::new();
    let map = folder.write("seen.json", r#"[{"key": 0, "value": 5}]"#);
    let args = |programs: &[String], map: &str| {
        paceline(["run", "--map", map].map(str::to_owned).into_iter().chain(programs.iter().cloned()))
    };
    args(&[part("early"), example("counter.o")], &format!("seen={map}")).ok();
    args(&[part("early"), part("late")], &format!("seen={map}")).fails(
        1,
        "several objects have a map seen",
        &[],
    );
    let missing = args(&[part("early"), example("counter.o")], &format!("sen={map}"));
    missing.fails(1, "no object of the chain has a map sen", &["did you mean `seen`?"]);
}

#[test]
fn what_a_change_would_do_is_told() {
    let folder = Folder::new();
    let old = chain_file(&folder);
    let text = std::fs::read_to_string(&old).unwrap();
    let text = text.replace("name = \"b\"", "name = \"c\"").replace("next.pass = \"b\"", "next.pass = \"c\"");
    let new = folder.write("new.toml", text.replace("end.pass = \"tx\"", ""));
    let out = paceline(["chain", "diff", &old, &new]).ok();
    assert_eq!(
        out,
        "added    c\nremoved  b\nedge     a after pass: b -> c\nmap kept one: seen\nmap kept two: seen\n"
    );
    let json = paceline(["chain", "diff", &old, &new, "--json"]).json();
    assert_eq!(json["edges"], json!([{"program": "a", "after": "pass", "old": "b", "new": "c"}]));
}

#[test]
fn a_file_is_read_again_while_packets_run() {
    let folder = Folder::new();
    let file = chain_file(&folder);
    let good = std::fs::read_to_string(&file).unwrap();
    let mut child = command()
        .args(["run", &file, "--in", "-", "--out", "/dev/null", "--json", "--maps"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let errors = child.stderr.take().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in std::io::BufRead::lines(std::io::BufReader::new(errors)) {
            let _ = tell.send(line.unwrap());
        }
    });
    let packets = vec![[0u8; 60].as_slice(); 64];
    let mut sent = 64;
    let all = capture(&packets);
    let one_burst = &all[24..];
    input.write_all(&all).unwrap();
    let mut until = |what: &str| {
        let start = Instant::now();
        loop {
            assert!(start.elapsed() < Duration::from_secs(60), "nobody said {what}");
            let hup = Command::new("sh").args(["-c", &format!("kill -HUP {}", child.id())]).status().unwrap();
            assert!(hup.success());
            input.write_all(one_burst).unwrap();
            input.flush().unwrap();
            sent += 64;
            while let Ok(line) = told.recv_timeout(Duration::from_millis(50)) {
                if line.contains(what) {
                    return;
                }
            }
        }
    };
    // Until the handler is there, the signal would end the process.
    std::thread::sleep(Duration::from_secs(1));
    folder.write("chain.toml", good.replace("next.drop = \"a\"", "next.drop = \"z\""));
    until("no program `z`");
    folder.write("chain.toml", good.replace("next.drop = \"a\"", "end.drop = \"redirect\""));
    until("packet");
    drop(input);
    let done = child.wait_with_output().unwrap();
    reader.join().unwrap();
    assert!(done.status.success());
    let json: Value = serde_json::from_slice(&done.stdout).unwrap();
    assert_eq!(json["packets"], sent, "{json}");
    let (tx, redirect) =
        (json["verdicts"]["tx"].as_u64().unwrap(), json["verdicts"]["redirect"].as_u64().unwrap());
    assert!(tx >= 64 && tx + redirect == sent && tx % 64 == 0, "{json}");
    // The map of the new chain is the one that the old one counted in, twice for each packet.
    assert_eq!(json["maps"]["one"]["seen"][0]["value"], 40 + 2 * tx, "{json}");
}
