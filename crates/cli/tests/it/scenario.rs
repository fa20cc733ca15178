//! The same packets in the same surroundings: every command that runs them tells the same of them.

use std::fs;

use paceline::capture::{AnnotatedWriter, LinkType, Notes};
use serde_json::Value as Json;

use crate::common::{Done, Folder, fixture, has_libpcap, paceline, skip};

const FIRST: usize = 40;
const SECOND: usize = 20;

/// A frame whose payload begins with a byte.
fn frame(byte: u8) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    frame.push(byte);
    frame.resize(60, 0);
    frame
}

/// A capture with packets of two interfaces.
fn two_interfaces(folder: &Folder) -> String {
    let mut bytes = Vec::new();
    let mut writer = AnnotatedWriter::new(&mut bytes, "test").unwrap();
    let interfaces = ["a", "b"].map(|name| writer.add_interface(name, LinkType::ETHERNET).unwrap());
    let notes = Notes { comment: "", packet_id: None, queue: None, verdict: None };
    for number in 0..FIRST + SECOND {
        let interface = interfaces[usize::from(number >= FIRST)];
        writer.push(interface, number as u64 * 1_000, &frame(number as u8), 60, &notes).unwrap();
    }
    writer.finish(0, 0).unwrap();
    folder.write("two.pcapng", bytes)
}

fn verdicts(json: &Json) -> [u64; 2] {
    ["pass", "drop"].map(|verdict| json["verdicts"][verdict].as_u64().unwrap())
}

/// Whether the kernel runs programs here; the test is skipped otherwise.
fn in_kernel(test: &str, done: &Done) -> bool {
    let lacks = done.err.contains("root");
    if lacks {
        skip(test, &done.err);
    }
    !lacks
}

#[test]
fn packets_come_in_on_the_interfaces_of_their_capture_in_every_command() {
    let folder = Folder::new();
    let (object, input) = (fixture("arrival.o"), two_interfaces(&folder));
    let wanted = [FIRST as u64, SECOND as u64];
    for more in [&[][..], &["--cpus", "2"], &["--workers", "2"], &["--engine", "plain"], &["--stats"]] {
        let arguments = [&["run", &object, "--in", &input, "--json"], more].concat();
        assert_eq!(verdicts(&paceline(arguments).json()), wanted, "{more:?}");
    }
    let why = paceline(["why", &object, "--in", &input, "--packet", "1-60", "--json"]).json();
    let passed = |packet: &&Json| packet["verdict"] == "pass";
    assert_eq!(why["packets"].as_array().unwrap().iter().filter(passed).count(), FIRST);
    let page = folder.text("report.html");
    paceline(["report", &object, "--in", &input, "-o", &page]).ok();
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains(&format!("\"counts\":[0,{SECOND},{FIRST},0,0]")), "the page counts the same");
    let bench =
        paceline(["bench", &object, "--in", &input, "--by-verdict", "--rounds", "5", "--json"]).json();
    assert!(bench.to_string().contains("\"drop\"") && !bench.to_string().contains("\"aborted\""), "{bench}");
    if has_libpcap("packets_come_in_on_the_interfaces_of_their_capture_in_every_command") {
        let scan = paceline(["scan", "", &input, "--program", &object, "--json"]).json();
        assert_eq!(verdicts(&scan), wanted);
    }
    let step = |verdict: &str, ingress: &str| {
        let hex: String = frame(0).iter().map(|byte| format!("{byte:02x}")).collect();
        format!(
            "[[test]]\nname = \"{verdict}\"\npacket = {{ hex = \"{hex}\" }}\nverdict = \"{verdict}\"\n{ingress}"
        )
    };
    let tests = [step("pass", ""), step("drop", "ingress = 2\n")].concat();
    let file = folder.write("a.test.toml", format!("object = {object:?}\n{tests}"));
    paceline(["test", &file]).ok();
}

#[test]
fn a_packet_comes_in_on_interface_1_in_the_kernel_too() {
    let folder = Folder::new();
    let input = folder.capture("one.pcap", &[&frame(0), &frame(1)]);
    let done = paceline(["diff", &fixture("arrival.o"), "--kernel", "--in", &input]);
    if in_kernel("a_packet_comes_in_on_interface_1_in_the_kernel_too", &done) {
        done.ok();
    }
}

#[test]
fn a_queue_that_is_given_is_that_of_all_packets() {
    let folder = Folder::new();
    let packets: Vec<Vec<u8>> = (0..60)
        .map(|byte| {
            let mut frame = frame(0x45);
            frame[29] = byte;
            frame[23] = 17;
            frame
        })
        .collect();
    let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
    let input = folder.capture("one.pcap", &packets);
    let object = fixture("arrival.o");
    let queues = |more: &[&str]| {
        let run = ["run", &object, "--in", &input, "--maps", "--json"];
        let json = paceline([&run, more].concat()).json();
        let elements = json["maps"]["places"].as_array().unwrap().clone();
        let mut queues: Vec<u64> = elements.iter().map(|e| e["key"]["queue"].as_u64().unwrap()).collect();
        queues.sort_unstable();
        queues
    };
    for more in [&[][..], &["--cpus", "2"], &["--workers", "2"]] {
        assert_eq!(queues(&[&["--rx-queue", "3"], more].concat()), [3], "{more:?}");
    }
    assert_eq!(queues(&[]), [0]);
    assert_eq!(queues(&["--cpus", "2"]), [0, 1], "the queue of each CPU");
}

/// A test file with a test of a return value, which passes or fails.
fn returns_test(folder: &Folder, byte: u8, returns: &str) -> String {
    let hex: String = frame(byte).iter().map(|byte| format!("{byte:02x}")).collect();
    let object = format!("{}:returns", fixture("context.o"));
    let text = format!(
        "object = {object:?}\n[[test]]\nname = \"a\"\npacket = {{ hex = \"{hex}\" }}\nreturns = {returns}\n"
    );
    folder.write("returns.test.toml", text)
}

#[test]
fn return_values_are_those_of_the_program() {
    let folder = Folder::new();
    let names =
        ["UNSPEC", "OK", "RECLASSIFY", "SHOT", "PIPE", "STOLEN", "QUEUED", "REPEAT", "REDIRECT", "TRAP"];
    let mut kernel = true;
    for (byte, (number, name)) in (0..).zip((-1..).zip(names)) {
        for right in [number.to_string(), format!("\"TC_ACT_{name}\""), format!("{:?}", name.to_lowercase())]
        {
            let file = returns_test(&folder, byte, &right);
            paceline(["test", &file]).ok();
            if kernel {
                let done = paceline(["test", "--kernel", &file]);
                kernel = in_kernel("return_values_are_those_of_the_program", &done);
                assert!(!kernel || done.status == Some(0), "{}{}", done.out, done.err);
            }
        }
        let file = returns_test(&folder, byte, &(number + 1).to_string());
        let done = paceline(["test", &file]);
        assert_eq!(done.status, Some(1));
        assert!(done.out.contains(&format!("got {number} (TC_ACT_{name})")), "{}", done.out);
        paceline(["test", "--update", &file]);
        paceline(["test", &file]).ok();
    }
    paceline(["test", &returns_test(&folder, 0, "4294967295")]).ok();
    for wrong in ["4294967296", "-2147483649", "1.5"] {
        let file = returns_test(&folder, 0, wrong);
        paceline(["test", &file]).fails(1, &file, &["returns", "a number of 32 bits"]);
    }
    let done = paceline(["test", &returns_test(&folder, 0, "\"XDP_DROP\"")]);
    assert!(done.status == Some(1) && done.out.contains("TC_ACT_SHOT"), "{}", done.out);
}

#[test]
fn contexts_are_given_and_compared() {
    let folder = Folder::new();
    let input = folder.capture("one.pcap", &[&frame(1), &frame(2)]);
    let [one, two, three] = ["one", "two", "three"].map(|name| format!("{}:{name}", fixture("context.o")));
    let diff = |new: &str, more: &[&str]| paceline([&["diff", &one, new, "--in", &input], more].concat());
    let done = diff(&two, &[]);
    assert_eq!(done.status, Some(1));
    assert!(done.out.contains("mark: 1 -> 2; tc_classid: 16 -> 32"), "{}", done.out);
    diff(&two, &["--ignore", "context"]).ok();
    diff(&two, &["--ignore", "context:mark", "--ignore", "context:tc_classid"]).ok();
    let done = diff(&three, &[]);
    assert!(
        done.status == Some(1) && done.out.contains("returns 0 (TC_ACT_OK) -> 3 (TC_ACT_PIPE)"),
        "{}",
        done.out
    );
    diff(&three, &["--ignore", "returns"]).ok();
    let given = ["--context", "mark=0x10", "--context", "cb[1]=7", "--context", "hash=9"];
    let log = folder.text("log.json");
    paceline([&["run", &one, "--in", &input, "--verdicts", &log], &given[..]].concat()).ok();
    let line: Json = serde_json::from_str(fs::read_to_string(&log).unwrap().lines().next().unwrap()).unwrap();
    let context = &line["context"];
    let left =
        ["mark", "priority", "cb[0]", "tc_classid", "hash"].map(|name| context[name].as_u64().unwrap());
    assert_eq!((left, line["returns"].as_u64()), ([17, 7, 9, 16, 9], Some(0)));
    let done = diff(&one, &["--kernel", "--context", "mark=16", "--context", "cb[1]=7"]);
    if in_kernel("contexts_are_given_and_compared", &done) {
        done.ok();
    }
    for (wrong, cause) in [
        ("mark", "FIELD=N"),
        ("mark=x", "not a number"),
        ("tc_index=65536", "65535"),
        ("len=1", "no field `len`"),
        ("wire_len=1", "computed"),
        ("marks=1", "mark"),
    ] {
        let done = paceline(["run", &one, "--in", &input, "--context", wrong]);
        assert!(done.status == Some(2) && done.err.contains(cause), "{wrong}: {}", done.err);
    }
}

#[test]
fn tests_have_the_context_as_it_comes_and_goes() {
    let folder = Folder::new();
    let object = format!("{}:one", fixture("context.o"));
    let test = |keys: &str| {
        let text = format!("object = {object:?}\n[[test]]\nname = \"a\"\npacket = \"eth\"\n{keys}\n");
        paceline(["test", &folder.write("context.test.toml", text)])
    };
    let given = "context = { mark = 4, cb = [0, 7], hash = 9 }";
    test(&format!("{given}\ncontext_out = {{ mark = 5, priority = 7, \"cb[0]\" = 9, cb = [9, 7] }}")).ok();
    let done = test(&format!("{given}\ncontext_out = {{ mark = 4 }}"));
    assert!(
        done.status == Some(1) && done.out.contains("context_out.mark: expected 4, got 5"),
        "{}",
        done.out
    );
    for (wrong, cause) in [
        ("context = { marks = 4 }", "perhaps `mark`"),
        ("context = { wire_len = 4 }", "computed"),
        ("context = { mark = -1 }", "a number"),
        ("context_out = { mark = \"x\" }", "a number"),
    ] {
        let done = test(wrong);
        assert!(done.status == Some(1) && done.err.contains(cause), "{wrong}: {}{}", done.out, done.err);
    }
}

#[test]
fn a_run_is_the_same_each_time_unless_it_is_asked_not_to() {
    let folder = Folder::new();
    let input = folder.capture("one.pcap", &[frame(1).as_slice(); 50]);
    let sampler = crate::common::example("sampler.o:sample_every");
    let run = |more: &[&str]| {
        let log = folder.text("log.json");
        paceline([&["run", &sampler, "--in", &input, "--verdicts", &log, "--maps", "--json"], more].concat())
            .json()["maps"]
            .to_string()
    };
    assert_eq!(run(&[]), run(&[]));
    assert_eq!(run(&[]), run(&["--clock", "capture", "--seed", "1"]));
}
