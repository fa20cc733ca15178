//! Chains and maps that change under traffic.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use paceline::device::Interface;
use paceline_testkit::namespace::{namespace, veth};
use paceline_testkit::wire::Wire;
use rustix::process::{Pid, Resource, Rlimit, Signal, prlimit};
use serde_json::{Value as Json, json as value};

use crate::common::live::{Live, ask, check_sums, has_program, json, resident, stderr, traffic, within};
use crate::common::{Folder, example, fixture};

#[test]
fn a_chain_file_is_read_again() {
    let Some(()) = namespace("a_chain_file_is_read_again", &veth("va", "vb")) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("chain.toml");
    let chain = |programs: &[(&str, &str)]| {
        let object = |(name, file): &(&str, &str)| format!("objects.{name}.file = \"{}\"\n", example(file));
        let program =
            |(name, _): &(&str, &str)| format!("[[program]]\nname = \"{name}\"\nactions = [\"pass\"]\n");
        let text: String = programs.iter().map(object).chain(programs.iter().map(program)).collect();
        std::fs::write(&path, text).expect("the chain");
    };
    chain(&[("count", "counter.o")]);
    let file = path.display().to_string();
    let mut live = Live::start(&["--chain", &file, "--port", "xdp:va", "--every", "0.1", "--json"], || {
        has_program("va")
    });
    chain(&[("count", "counter.o"), ("reflect", "reflector.o")]);
    live.signal(Signal::HUP);
    within("the changed chain", || live.messages().contains(": count, reflect"));
    thread::sleep(Duration::from_millis(200));
    let output = live.end(Signal::INT);
    assert!(output.stdout.iter().filter(|&&byte| byte == b'\n').count() >= 3, "a line each 0.1 s");
    check_sums(&json(&output), false);
}

#[test]
fn a_chain_whose_sockets_cannot_be_entered_is_not_run() {
    let folder = Folder::new();
    let control = folder.text("control");
    let write = |name: &str, object: &str| {
        let text = format!("objects.{name}.file = \"{object}\"\n[[program]]\nname = \"{name}\"\n");
        folder.write("chain.toml", text)
    };
    let chain = write("first", &fixture("xsk.o"));
    let arguments = ["--chain", &chain, "--port", "gen:rate=1K", "--socket", "xsks_map=null:", "--json"];
    let arguments = [&arguments[..], &["--control", &control]].concat();
    let mut live = Live::start(&arguments, || ask(&control, &["status"]).status.success());
    let status = || json(&ask(&control, &["status", "--json"]));
    let programs = || status()["programs"].clone();
    // One without the map: packets go on to run through the one before.
    write("counter", &example("counter.o"));
    live.signal(Signal::HUP);
    within("the message", || live.messages().contains("the chain goes on as it is"));
    assert!(
        live.messages().contains("error: --socket xsks_map: there is no map xsks_map"),
        "{}",
        live.messages()
    );
    assert_eq!(programs(), value!(["first"]));
    write("second", &fixture("xsk.o"));
    live.signal(Signal::HUP);
    within("another chain", || programs() == value!(["second"]));
    let output = live.end(Signal::INT);
    let report = json(&output);
    check_sums(&report, false);
    // No packet ran before its socket was there.
    assert_eq!(report["verdicts"]["redirect"], report["packets"], "{report:#}");
    assert_eq!(report["ports"][1]["sent"], report["packets"], "{report:#}");
}

/// Seconds of the test below; CONTRIBUTING has a longer run.
fn seconds() -> f64 {
    std::env::var("PACELINE_LIVE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2.0)
}

/// Limits the memory that a process may write to 64 MiB more than it has: not its addresses, of which the C library reserves many for
/// each thread.
fn limit_memory(process: u32) {
    let status = std::fs::read_to_string(format!("/proc/{process}/statm")).expect("it runs");
    let pages: u64 = status.split(' ').nth(5).and_then(|pages| pages.parse().ok()).expect("a number");
    let limit = Some(pages * 4096 + (64 << 20));
    let pid = Pid::from_raw(process.cast_signed());
    prlimit(pid, Resource::Data, Rlimit { current: limit, maximum: limit }).expect("a limit");
}

/// Changes the map of the firewall's rules by the control socket.
fn set_rule(control: &str, number: u32) {
    let (port, action) = (20_000 + number % 200, number % 2);
    let mut stream = UnixStream::connect(control).expect("the socket");
    let request = format!(
        r#"{{"version":1,"command":"map set","map":"rules","key":{{"port":{port},"protocol":17}},"value":{{"action":{action}}}}}"#
    );
    writeln!(stream, "{request}").expect("it is sent");
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).expect("an answer");
    assert_eq!(answer.trim(), r#"{"ok":null}"#, "{number}");
}

#[test]
fn no_packet_is_lost_uncounted_while_the_chain_changes() {
    const TEST: &str = "no_packet_is_lost_uncounted_while_the_chain_changes";
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("chain.toml");
    let write = |programs: &[&str]| {
        let text: String = ["counter", "firewall", "vlan"]
            .iter()
            .map(|name| format!("objects.{name}.file = \"{}\"\n", example(&format!("{name}.o"))))
            .chain(programs.iter().map(|name| match *name {
                "vlan" => {
                    "[[program]]\nname = \"vlan\"\nfunction = \"vlan_pop\"\nactions = [\"pass\"]\n".to_owned()
                }
                name => format!("[[program]]\nname = \"{name}\"\nactions = [\"pass\"]\n"),
            }))
            .collect();
        // Replaced as a whole: a signal finds one or the other.
        let new = path.with_extension("new");
        std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, &path)).expect("the chain");
    };
    write(&["counter", "firewall"]);
    let (file, control) =
        (path.display().to_string(), directory.path().join("control").display().to_string());
    let arguments =
        ["--chain", &file, "--port", "xdp:va", "--pass", "null:", "--json", "--control", &control];
    let mut live = Live::start(&arguments, || Path::new(&control).exists());
    let id = live.id();
    limit_memory(id);
    let wire = Wire::open(Interface::by_name("vb").expect("it is there").index()).expect("a packet socket");
    let packets = traffic();
    let (start, mut sent, mut changes, mut memory) = (Instant::now(), 0_u64, 0_u32, 0);
    while start.elapsed().as_secs_f64() < seconds() {
        for packet in &packets {
            sent += u64::from(wire.send(packet).is_ok());
        }
        changes += 1;
        write(if changes.is_multiple_of(2) {
            &["counter", "firewall"]
        } else {
            &["counter", "firewall", "vlan"]
        });
        live.signal(Signal::HUP);
        set_rule(&control, changes);
        if changes == 10 {
            memory = resident(id);
        }
        thread::sleep(Duration::from_millis(10));
    }
    let grown = resident(id).saturating_sub(memory);
    thread::sleep(Duration::from_millis(100));
    let output = live.end(Signal::INT);
    let report = json(&output);
    check_sums(&report, true);
    let number = |value: &Json| value.as_u64().expect("a number");
    let counted = number(&report["ports"][0]["received"]) + number(&report["ports"][0]["dropped"]);
    assert_eq!(counted, sent, "after {changes} changes: {report:#}");
    let reloads = stderr(&output).matches("revision").count();
    assert!(changes < 20 || reloads * 2 > changes as usize / 2, "{reloads} of {changes}");
    assert!(memory == 0 || grown < 4096, "{grown} KiB more after {changes} changes");
}
