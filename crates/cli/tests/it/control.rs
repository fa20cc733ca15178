//! A running instance, over its control socket: `status`, `map`, `top`, `capture` and hostile clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use paceline_testkit::skip;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::Value as Json;

use crate::common::hostile::{mutated, requests};
use crate::common::live::{Live, ask, check_sums, json, printed, stderr, within};
use crate::common::{Folder, command, example, fixture, has_libpcap, packets};

/// A run that a control socket reaches, without any privilege.
fn controlled(folder: &tempfile::TempDir, object: &str) -> (Live, String) {
    let path = folder.path().join("control");
    let name = path.display().to_string();
    let object = example(object);
    let arguments = [&*object, "--port", "gen:rate=10K,flows=10", "--control", &name, "--json"];
    let is_there = move || path.exists();
    (Live::start(&arguments, is_there), name)
}

#[test]
fn a_running_instance_answers() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut live, control) = controlled(&folder, "firewall.o");
    within("packets", || json(&ask(&control, &["status", "--json"]))["packets"].as_u64() > Some(100));
    let text = printed(&ask(&control, &["status"]));
    assert!(text.contains("firewall") && text.contains("gen:rate=10K,flows=10"), "{text}");
    assert!(printed(&ask(&control, &["map", "list"])).contains("rules (hash), key 4 bytes"));
    let shown = printed(&ask(&control, &["map", "show", "rules"]));
    assert!(shown.ends_with("at most 1024 entries, 0 now\n"), "{shown}");
    // The traffic is UDP to port 80: it passes until a rule drops it.
    let key = r#"{"port": 80, "protocol": 17}"#;
    assert!(!ask(&control, &["map", "get", "rules", key]).status.success());
    printed(&ask(&control, &["map", "set", "rules", key, r#"{"action": 1}"#]));
    let rule = printed(&ask(&control, &["map", "get", "rules", key]));
    assert!(rule.contains("\"action\""), "{rule}");
    within("dropped packets", || {
        json(&ask(&control, &["status", "--json"]))["verdicts"]["drop"].as_u64() > Some(100)
    });
    let dump = printed(&ask(&control, &["map", "dump", "rules"]));
    assert_eq!(dump.lines().count(), 1, "{dump}");
    printed(&ask(&control, &["map", "delete", "rules", key]));
    assert_eq!(printed(&ask(&control, &["map", "dump", "rules"])), "");
    for (arguments, message) in [
        (vec!["map", "get", "nosuch", "1"], "there is no map nosuch, only counters, rules"),
        (vec!["map", "get", "rules", "\"x\""], "map rules, key: "),
        (vec!["map", "delete", "rules", key], "there is no element of this key"),
    ] {
        let output = ask(&control, &arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    }
    let second =
        command().args(["live", "--port", "null:", "--control", &control]).output().expect("it runs");
    assert!(stderr(&second).contains("a running instance has it"), "{}", stderr(&second));
    printed(&ask(&control, &["stop"]));
    let output = live.wait();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    check_sums(&json(&output), false);
    let gone = ask(&control, &["status"]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("no instance runs there"), "{}", stderr(&gone));
}

#[test]
fn entries_of_maps_are_counted() {
    let folder = Folder::new();
    let control = folder.text("control");
    let objects = [fixture("state.o"), fixture("xsk.o")];
    let socket = ["--socket", "xsks_map@2=null:", "--control", &control];
    let arguments = [&[&*objects[0], &*objects[1], "--port", "gen:rate=1K"][..], &socket].concat();
    let _live = Live::start(&arguments, || Path::new(&control).exists());
    for (map, end) in [
        ("queue", "at most 4 entries\n"),
        ("seen", "at most 16 entries\n"),
        ("xsks_map", "at most 4 entries, 1 now\n"),
        ("outer", "at most 4 entries, 1 now\n"),
    ] {
        let shown = printed(&ask(&control, &["map", "show", map]));
        assert!(shown.ends_with(end), "{shown}");
    }
}

#[test]
fn a_socket_that_is_left_behind_is_replaced() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut live, control) = controlled(&folder, "counter.o");
    let mode = std::fs::metadata(&control).expect("the socket").permissions().mode();
    assert_eq!(mode & 0o777, 0o700, "its owner alone may use it");
    live.end(Signal::KILL);
    assert!(std::fs::metadata(&control).is_ok(), "the socket is left behind");
    let mut second = {
        let object = example("counter.o");
        let control_2 = control.clone();
        let ready = move || {
            command().args(["status", "--control", &control_2]).output().is_ok_and(|o| o.status.success())
        };
        Live::start(&[&object, "--port", "gen:rate=1K", "--control", &control], ready)
    };
    assert_eq!(second.end(Signal::INT).status.code(), Some(0));
    assert!(std::fs::metadata(&control).is_err(), "it is removed");
    std::fs::write(&control, "a file").expect("a file");
    let refused =
        command().args(["live", "--port", "null:", "--control", &control]).output().expect("it runs");
    assert!(stderr(&refused).contains("this is no socket, but a file or folder"), "{}", stderr(&refused));
    assert_eq!(std::fs::read(&control).expect("it is there"), b"a file");
}

/// The names of a process's threads.
fn threads(process: u32) -> impl Iterator<Item = String> {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let name = |thread: std::fs::DirEntry| std::fs::read_to_string(thread.path().join("comm")).ok();
    threads.flatten().filter_map(name).map(|name| name.trim().to_owned())
}

fn mapped_pages(process: u32) -> u64 {
    let mapped = std::fs::read_to_string(format!("/proc/{process}/statm")).expect("it runs");
    mapped.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number")
}

#[test]
fn a_client_for_which_there_is_no_thread_is_turned_away() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut live, control) = controlled(&folder, "firewall.o");
    let process = Pid::from_raw(live.id().cast_signed());
    within("the thread that accepts clients", || threads(live.id()).any(|name| name == "clients"));
    let limit = |current| prlimit(process, Resource::As, Rlimit { current, maximum: None }).expect("a limit");
    // Room for small things, and not for the stack of a thread. Those that have ended leave theirs to the first clients, which stay.
    let mut clients = Vec::new();
    within("the note", || {
        limit(Some(mapped_pages(live.id()) * 4096 + (1 << 20)));
        clients.push(UnixStream::connect(&control).expect("the socket"));
        live.messages().contains("note: a client is turned away")
    });
    let is_turned_away = |mut client: &UnixStream| {
        client.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
        matches!(client.read(&mut [0]), Ok(0))
    };
    assert!(clients.iter().rev().any(is_turned_away));
    limit(None);
    drop(clients);
    assert!(json(&ask(&control, &["status", "--json"]))["packets"].as_u64().is_some());
    let output = live.end(Signal::INT);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn hostile_clients_stop_no_traffic() {
    let count = requests();
    let folder = tempfile::tempdir().expect("a directory");
    let (mut live, control) = controlled(&folder, "firewall.o");
    let good = [
        r#"{"version":1,"command":"status"}"#,
        r#"{"version":1,"command":"map get","map":"rules","key":{"port":80,"protocol":17}}"#,
        r#"{"version":1,"command":"map set","map":"rules","key":{"port":80,"protocol":17},"value":{"action":1}}"#,
        r#"{"version":1,"command":"map dump","map":"rules"}"#,
        r#"{"version":1,"command":"map show","map":"rules"}"#,
        r#"{"version":1,"command":"chain"}"#,
    ];
    let mut rng = fastrand::Rng::with_seed(1);
    // Silent clients, which take all connections for a while.
    let mut silent: Vec<UnixStream> = (0..20).filter_map(|_| UnixStream::connect(&control).ok()).collect();
    for number in 0..count {
        if number == count / 4 {
            silent.clear();
        }
        let Ok(mut stream) = UnixStream::connect(&control) else { continue };
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let mut request = mutated(&mut rng, &good);
        // A change may have made `stop` of nothing: no request has it.
        if rng.bool() {
            request.push(b'\n');
        }
        let _ = stream.write_all(&request);
        let mut answer = [0; 4096];
        if request.ends_with(b"\n") && silent.is_empty() {
            let _ = stream.read(&mut answer);
        }
    }
    drop(silent);
    let before = json(&ask(&control, &["status", "--json"]))["packets"].as_u64();
    within("traffic", || json(&ask(&control, &["status", "--json"]))["packets"].as_u64() > before);
    let output = live.end(Signal::INT);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let seconds = json(&output)["seconds"].as_f64().expect("a time");
    let packets = json(&output)["packets"].as_u64().expect("a number") as f64;
    assert!(packets > seconds * 10_000.0 * 0.25, "{packets} packets in {seconds} s at 10,000 a second");
}

#[test]
fn a_live_run_shows_its_rates_and_its_chain() {
    let folder = Folder::new();
    let (control, counter) = (folder.text("control"), example("counter.o"));
    let arguments = [&*counter, "--port", "gen:rate=100K,flows=9", "--workers", "2", "--control", &control];
    let mut live = Live::start(&arguments, || Path::new(&control).exists());
    let rates = printed(&ask(&control, &["stats", "--every", "0.2", "--count", "2", "--json"]));
    let rates: Vec<Json> = rates.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(rates.len(), 2);
    let rate = |value: &Json| value.as_f64().expect("a rate");
    // A group of packets may be in either of two intervals.
    assert!((1e3..300e3).contains(&rate(&rates[1]["packets"])), "{rates:?}");
    assert_eq!(rates[1]["packets"], rates[1]["verdicts"]["pass"]);
    let workers: f64 = (0..2).map(|worker| rate(&rates[1]["workers"][worker]["packets"])).sum();
    // They are read one after the other.
    assert!((workers / rate(&rates[1]["packets"]) - 1.0).abs() < 0.05, "{rates:?}");
    let text = printed(&ask(&control, &["stats", "--every", "0.05", "--count", "21"]));
    assert_eq!((text.lines().count(), text.matches("packets/s").count()), (23, 2), "{text}");
    // The same as of a chain that is loaded.
    for form in [&["show"][..], &["show", "--dot"], &["show", "--svg"], &["show", "--json"], &["explain"]] {
        let loaded = command().args(["chain"]).args(form).arg(&counter).output().expect("it runs");
        let options = match form[0] {
            "explain" => &["--explain"],
            _ => &form[1..],
        };
        let running = ask(&control, &[&["chain", "running"][..], options].concat());
        assert_eq!(printed(&running), printed(&loaded), "{form:?}");
    }
    // On a terminal; it ends with the run.
    let top = command().args(["top", "--control", &control]).output().expect("it runs");
    assert_eq!(top.status.code(), Some(1));
    assert!(stderr(&top).contains("error: standard output is no terminal"), "{}", stderr(&top));
    let view = format!(
        "stty rows 40 cols 120; {} top --every 0.1 --control {control}",
        command().get_program().display()
    );
    let mut top = Command::new("script");
    let top = top.args(["-qec", &view, "/dev/null"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    let Ok(mut top) = top else {
        return skip("a_live_run_shows_its_rates_and_its_chain", &"`script` is missing");
    };
    let (mut shown, text) = (top.stdout.take().expect("a pipe"), Mutex::default());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut bytes = [0; 4096];
            while let Ok(read @ 1..) = shown.read(&mut bytes) {
                let mut text: MutexGuard<'_, String> = text.lock().expect("no panic");
                text.push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        let shows = |part: &str| within(part, || text.lock().expect("no panic").contains(part));
        ["packets/s,", "gen:rate=100K,flows=9", "workers"].into_iter().for_each(shows);
        // One that is stalled ends no view.
        live.signal(Signal::STOP);
        shows("no answer");
        live.signal(Signal::CONT);
        live.end(Signal::TERM);
        shows("the run has ended");
    });
    assert!(top.wait().expect("it ends").success());
    let over = ask(&control, &["stats", "--count", "1"]);
    assert_eq!(over.status.code(), Some(1));
}

/// Comments and verdicts of a pcapng capture, as Wireshark reads them.
fn notes(test: &str, path: &str) -> Option<Vec<(String, String, usize)>> {
    let fields = ["-e", "frame.verdict.ebpf_xdp", "-e", "frame.comment", "-e", "frame.cap_len"];
    let output = Command::new("tshark").args(["-T", "fields", "-r", path]).args(fields).output();
    let output = output.map_err(|error| skip(test, &format!("tshark: {error}"))).ok()?;
    let text = String::from_utf8(output.stdout).expect("text");
    let field = |line: &str, index: usize| line.split('\t').nth(index).unwrap_or_default().to_owned();
    let number = |text: String| text.parse().expect("a number");
    Some(text.lines().map(|line| (field(line, 0), field(line, 1), number(field(line, 2)))).collect())
}

#[test]
fn a_capture_tells_what_became_of_each_packet() {
    const TEST: &str = "a_capture_tells_what_became_of_each_packet";
    let folder = Folder::new();
    let (vlan, firewall) = (format!("{}:vlan_pop", example("vlan.o")), example("firewall.o"));
    let traffic = example("traffic.pcap");
    let (port, out) = (format!("pcap:{traffic}"), folder.text("notes.pcapng"));
    let report = printed(
        &command()
            .args(["live", &firewall, &vlan, "--port", &port, "--capture", &out, "--json"])
            .output()
            .expect("it runs"),
    );
    let report: Json = serde_json::from_str(&report).expect("JSON");
    let Some(notes) = notes(TEST, &out) else { return };
    let is_first = |(_, comment, _): &&(String, String, usize)| !comment.starts_with("after: ");
    assert_eq!(notes.iter().filter(is_first).count() as u64, report["packets"], "every packet");
    for (number, name) in [("1", "drop"), ("2", "pass"), ("3", "tx")] {
        let of =
            |note: &&(String, String, usize)| note.0 == number && note.1.contains(&format!("{name} by "));
        let count = notes.iter().filter(is_first).filter(of).count() as u64;
        assert_eq!(report["verdicts"][name], count, "{report:#}");
    }
    // Files that are read or written otherwise are not overwritten.
    let before = std::fs::read(&traffic).expect("a capture");
    for (port, capture) in
        [(&*port, &*traffic), (&*port, &*firewall), (&*format!("pcap:{traffic},{out}"), &*out)]
    {
        let arguments = ["live", &firewall, "--port", port, "--capture", capture];
        let refused = command().args(arguments).output().expect("it runs");
        assert_eq!(refused.status.code(), Some(1), "{}", stderr(&refused));
        assert!(stderr(&refused).contains("is the same file as"), "{}", stderr(&refused));
    }
    assert!(std::fs::read(&traffic).expect("a capture") == before);
    // Dropped by the first program, and tags taken off by the second.
    assert!(notes.iter().any(|note| note.1.starts_with("drop by firewall, last branch firewall.bpf.c:")));
    let pairs: Vec<_> = notes.windows(2).filter(|pair| pair[1].1.starts_with("after: ")).collect();
    assert!(!pairs.is_empty() && pairs.iter().all(|pair| pair[0].1.starts_with("before: ")));
    assert!(pairs.iter().any(|pair| pair[0].2 == pair[1].2 + 4), "a VLAN tag has four bytes");
}

#[test]
fn a_live_run_is_captured_over_its_socket() {
    const TEST: &str = "a_live_run_is_captured_over_its_socket";
    let folder = Folder::new();
    let (control, counter, out) = (folder.text("control"), example("counter.o"), folder.text("out.pcapng"));
    let port = "gen:rate=20K,flows=8,proto=udp+tcp";
    let arguments = [&*counter, "--port", port, "--control", &control];
    let mut live = Live::start(&arguments, || Path::new(&control).exists());
    let ended = ask(&control, &["capture", "--out", &out, "--count", "100"]);
    assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("100 records of packets"), "{}", stderr(&ended));
    assert_eq!(packets(&out).len(), 100);
    // To another command.
    let piped = ask(&control, &["capture", "--out", "-", "--seconds", "0.2"]);
    assert!(piped.stdout.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "pcapng");
    if has_libpcap(TEST) {
        let filtered = |expression: &[&str]| {
            let options = ["capture", "--control", &control, "--out", &out, "--count", "50"];
            command().args(options).args(expression).output().expect("it runs")
        };
        let ended = filtered(&["tcp", "port", "80"]);
        assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
        assert!(packets(&out).iter().all(|packet| packet[23] == 6), "TCP only");
        let wrong = filtered(&["tcp prt 80"]);
        assert_eq!(wrong.status.code(), Some(1));
        assert_eq!(packets(&out).len(), 50, "nothing is lost");
    }
    // An interrupt ends a capture that is complete; the run's end does as well.
    for signal in [Signal::INT, Signal::TERM] {
        std::fs::remove_file(&out).expect("the capture before");
        let mut capture = command();
        let capture = capture.args(["capture", "--control", &control, "--out", &out]);
        let capture = capture.stderr(Stdio::piped()).spawn().expect("it starts");
        within("packets", || std::fs::metadata(&out).is_ok_and(|file| file.len() > 10_000));
        match signal {
            Signal::TERM => drop(live.end(Signal::TERM)),
            signal => kill_process(Pid::from_child(&capture), signal).expect("it runs"),
        }
        let ended = capture.wait_with_output().expect("it ends");
        assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
        let records = stderr(&ended).split(' ').nth(1).expect("a number").parse();
        assert_eq!(Ok(packets(&out).len()), records, "{}", stderr(&ended));
    }
}

#[test]
fn hostile_requests_for_captures_are_refused() {
    let folder = Folder::new();
    let control = folder.text("control");
    let mut live =
        Live::start(&["--port", "gen:rate=1K", "--control", &control], || Path::new(&control).exists());
    for (request, part) in [
        (r#"{"version":1,"command":"capture","count":"x"}"#, "`count` is no whole number from 0 on"),
        (r#"{"version":1,"command":"capture","count":-1}"#, "`count` is no whole number from 0 on"),
        (r#"{"version":1,"command":"capture","count":1.5}"#, "`count` is no whole number from 0 on"),
        (r#"{"version":1,"command":"capture","seconds":-1}"#, "`seconds` is no time"),
        (r#"{"version":1,"command":"capture","seconds":1e300}"#, "`seconds` is no time"),
        (r#"{"version":1,"command":"capture","filter":7}"#, "`filter` is no list"),
        (r#"{"version":1,"command":"capture","filter":[[6,0,0]]}"#, "`filter` is no list"),
        (r#"{"version":1,"command":"capture","filter":[[6,0,0,4294967296]]}"#, "`filter` is no list"),
        (r#"{"version":1,"command":"capture","filter":[[21,9,9,0],[6,0,0,1]]}"#, "`filter`: "),
        (r#"{"version":1,"command":"capture","filter":[]}"#, "`filter`: "),
    ] {
        let mut stream = UnixStream::connect(&control).expect("the socket");
        writeln!(stream, "{request}").expect("it is sent");
        stream.shutdown(std::net::Shutdown::Write).expect("the end");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.contains("error") && answer.contains(part), "{request}: {answer}");
    }
    // One that goes away at once keeps nothing.
    for _ in 0..20 {
        let mut stream = UnixStream::connect(&control).expect("the socket");
        let _ = writeln!(stream, r#"{{"version":1,"command":"capture"}}"#);
    }
    within("a place", || ask(&control, &["status"]).status.success());
    assert_eq!(live.end(Signal::TERM).status.code(), Some(0));
}

#[test]
fn a_run_ends_while_clients_ask() {
    let folder = Folder::new();
    let (control, counter) = (folder.text("control"), example("counter.o"));
    for _ in 0..10 {
        let arguments = [&*counter, "--port", "gen:rate=1K", "--control", &control];
        let mut live = Live::start(&arguments, || Path::new(&control).exists());
        let asking = AtomicBool::new(true);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while asking.load(Ordering::Relaxed) {
                        let Ok(mut stream) = UnixStream::connect(&control) else { continue };
                        let _ = writeln!(stream, r#"{{"version":1,"command":"status"}}"#);
                        let _ = BufReader::new(stream).read_line(&mut String::new());
                    }
                });
            }
            thread::sleep(Duration::from_millis(50));
            // It fails if the run does not end in time.
            let ended = live.end(Signal::TERM);
            asking.store(false, Ordering::Relaxed);
            assert_eq!(ended.status.code(), Some(0), "{}", stderr(&ended));
        });
    }
}
