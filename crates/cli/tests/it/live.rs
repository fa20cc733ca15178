//! `paceline live` on real interfaces, in network namespaces that the tests make.

use std::fs::Permissions;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use paceline::Object;
use paceline::device::Interface;
use paceline::isa::{RawInsn, assemble};
use paceline_testkit::kernel::{KernelObject, LoadOptions, Program, Request, available_for};
use paceline_testkit::namespace::{ip, namespace, veth};
use paceline_testkit::skip;
use paceline_testkit::wire::Wire;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde_json::{Value as Json, json as value};

use crate::common::host::{Host, echoes};
use crate::common::live::{Live, PATIENCE, check_sums, has_program, json, stderr, within};
use crate::common::{Folder, capture, command, example, fixture, has_libpcap, packets};

#[test]
fn the_reflector_answers_on_an_interface() {
    const TEST: &str = "the_reflector_answers_on_an_interface";
    for (kind, mode) in [
        ("xdp:va,native", "native"),
        ("xdp:va,generic", "generic"),
        ("xdp:va@0,copy,multi-buffer,busy-poll=20", "native"),
    ] {
        let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
        let reflector = example("reflector.o");
        let mut live = Live::start(&[&reflector, "--port", kind, "--json"], || has_program("va"));
        let Some(host) = Host::new(TEST, "vb") else { return };
        host.run(|| echoes(200));
        let output = live.end(Signal::TERM);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains(mode), "{}", stderr(&output));
        let report = json(&output);
        assert!(report["verdicts"]["tx"].as_u64() >= Some(201), "an ARP reply and 200 answers: {report:#}");
        assert_eq!(report["ports"][0]["copied"], 0, "{report:#}");
        check_sums(&report, false);
        within("detached", || !has_program("va"));
    }
}

#[test]
fn a_connection_goes_through_to_the_host() {
    const TEST: &str = "a_connection_goes_through_to_the_host";
    const BYTES: usize = 20_000_000;
    for kind in ["xdp:va", "packet:va"] {
        let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
        let Some(host) = Host::new(TEST, "vb") else { return };
        let counter = example("counter.o");
        let arguments = [&*counter, "--port", kind, "--pass", "tap:pl0", "--json"];
        let mut live = Live::start(&arguments, || ip("link show dev pl0").is_ok());
        ip("addr add 10.9.0.1/24 dev pl0").expect("an address");
        ip("link set pl0 up").expect("it is up");
        let listener = TcpListener::bind("10.9.0.1:8000").expect("the host's address");
        let server = thread::spawn(move || {
            let (mut connection, _) = listener.accept().expect("a connection");
            let mut received = Vec::new();
            connection.read_to_end(&mut received).expect("the bytes");
            connection.write_all(&received[..1000]).expect("an answer");
            received.len()
        });
        let answered = host.run(|| {
            let mut connection = TcpStream::connect("10.9.0.1:8000").expect("a connection");
            connection.write_all(&vec![7; BYTES]).expect("the bytes");
            connection.shutdown(std::net::Shutdown::Write).expect("the end");
            let mut answer = Vec::new();
            connection.read_to_end(&mut answer).expect("an answer");
            answer.len()
        });
        assert_eq!((answered, server.join().expect("the server")), (1000, BYTES), "{kind}");
        let output = live.end(Signal::INT);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        check_sums(&json(&output), true);
    }
}

#[test]
fn privileges_are_dropped_when_the_ports_are_open() {
    const TEST: &str = "privileges_are_dropped_when_the_ports_are_open";
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let states = |arguments: &[&str]| {
        let live = Live::start(arguments, || has_program("va"));
        let id = live.id();
        let tasks = || std::fs::read_dir(format!("/proc/{id}/task")).expect("threads");
        within("the workers", || tasks().count() > 2);
        let states: Vec<String> = tasks()
            .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok())
            .map(|status| {
                let of =
                    |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
                format!("{} {} {}", of("CapPrm:").trim(), of("NoNewPrivs:").trim(), of("Seccomp:").trim())
            })
            .collect();
        states
    };
    let arguments = ["--port", "xdp:va", "--workers", "2", "--keep-privileges"];
    for state in states(&arguments[..4]) {
        assert_eq!(state, "0000000000000000 1 2");
    }
    for state in states(&arguments) {
        assert!(!state.starts_with("0000000000000000") && state.ends_with(" 0 0"), "{state}");
    }
}

#[test]
fn nothing_stays_attached_after_a_kill() {
    let Some(()) = namespace("nothing_stays_attached_after_a_kill", &veth("va", "vb")) else { return };
    for _ in 0..5 {
        let mut live = Live::start(&["--port", "xdp:va"], || has_program("va"));
        live.end(Signal::KILL);
        within("detached", || !has_program("va"));
    }
    let mut live = Live::start(&["--port", "xdp:va", "--seconds", "0.2"], || has_program("va"));
    let output = live.wait();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_port_that_goes_ends_the_run() {
    let Some(()) = namespace("a_port_that_goes_ends_the_run", &veth("va", "vb")) else { return };
    for port in ["xdp:va", "packet:va", "tap:pl0"] {
        let name = port.split_once(':').expect("a kind").1;
        let folder = tempfile::tempdir().expect("a directory");
        let control = folder.path().join("control");
        let path = control.display().to_string();
        let arguments = ["--port", port, "--port", "null:", "--json", "--control", &path];
        // The socket is made when all ports are open.
        let mut live = Live::start(&arguments, || control.exists());
        ip(&format!("link del {name}")).expect("it is deleted");
        let output = live.wait();
        assert_eq!(output.status.code(), Some(1), "{port}: {}", stderr(&output));
        assert!(
            stderr(&output).contains(&format!("error: {port}: interface `{name}` has gone")),
            "{}",
            stderr(&output)
        );
        check_sums(&json(&output), false);
        if name == "va" {
            veth("va", "vb").lines().try_for_each(ip).expect("another pair");
        }
    }
}

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
    thread::sleep(Duration::from_millis(300));
    let output = live.end(Signal::INT);
    assert!(stderr(&output).contains(": count, reflect"), "{}", stderr(&output));
    assert!(output.stdout.iter().filter(|&&byte| byte == b'\n').count() >= 3, "a line each 0.1 s");
    check_sums(&json(&output), false);
}

#[test]
fn two_workers_share_the_queues() {
    let script = "link add va numrxqueues 2 numtxqueues 2 type veth peer name vb numrxqueues 2 numtxqueues 2
                  link set va up
                  link set vb up";
    let Some(()) = namespace("two_workers_share_the_queues", script) else { return };
    let Some(host) = Host::new("two_workers_share_the_queues", "vb") else { return };
    let reflector = example("reflector.o");
    let arguments = ["--port", "xdp:va", "--workers", "2", "--pin", "--json"];
    let mut live = Live::start(&[&[&*reflector][..], &arguments].concat(), || has_program("va"));
    host.run(|| echoes(200));
    check_sums(&json(&live.end(Signal::TERM)), false);
}

#[test]
fn two_workers_share_one_queue_by_flow() {
    let Some(()) = namespace("two_workers_share_one_queue_by_flow", &veth("va", "vb")) else { return };
    let Some(host) = Host::new("two_workers_share_one_queue_by_flow", "vb") else { return };
    let reflector = example("reflector.o");
    let arguments = ["--port", "xdp:va", "--workers", "2", "--json"];
    let mut live = Live::start(&[&[&*reflector][..], &arguments].concat(), || has_program("va"));
    host.run(|| echoes(200));
    check_sums(&json(&live.end(Signal::TERM)), false);
}

#[test]
fn workers_open_queues_of_one_tap_interface() {
    let Some(()) = namespace("workers_open_queues_of_one_tap_interface", "") else { return };
    let arguments = ["--port", "tap:pt%d", "--workers", "2", "--json"];
    let mut live = Live::start(&arguments, || ip("link show dev pt0").is_ok());
    assert!(ip("link show dev pt1").is_err(), "the second queue is of the same interface");
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn captures_and_generators_need_no_privilege() {
    let directory = tempfile::tempdir().expect("a directory");
    let passed = directory.path().join("passed.pcap");
    let (firewall, traffic) = (example("firewall.o"), example("traffic.pcap"));
    let pass = format!("pcap:,{}", passed.display());
    let output = command()
        .args(["live", &firewall, "--port", &format!("pcap:{traffic}"), "--pass", &pass, "--json"])
        .output()
        .expect("it runs");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    check_sums(&report, true);
    let run = command().args(["run", &firewall, "--in", &traffic, "--json"]).output().expect("it runs");
    assert_eq!(report["verdicts"], json(&run)["verdicts"]);
    // Workers share a capture by flow, and lose nothing.
    let many = directory.path().join("many.pcap");
    let generate =
        ["live", "--port", "gen:flows=300,count=50K", "--pass", &format!("pcap:,{}", many.display())];
    assert!(command().args(generate).output().expect("it runs").status.success());
    let shared = command()
        .args(["live", &firewall, "--port", &format!("pcap:{}", many.display()), "--workers", "3", "--json"])
        .output()
        .expect("it runs");
    let (one, shared) =
        (command().args(["run", &firewall, "--in"]).arg(&many).arg("--json").output(), json(&shared));
    assert_eq!(shared["packets"], 50_000, "{shared:#}");
    assert_eq!(shared["verdicts"], json(&one.expect("it runs"))["verdicts"]);
    let output = command()
        .args([
            "live",
            &firewall,
            "--port",
            "gen:size=64-1514,flows=100,proto=udp+tcp,count=100K,rate=2M",
            "--json",
        ])
        .output()
        .expect("it runs");
    let report = json(&output);
    check_sums(&report, false);
    assert_eq!(report["packets"], 100_000);
    assert!(report["seconds"].as_f64() >= Some(0.03), "{report:#}");
    // Each worker has a part of the flows and of the packets.
    let output = command()
        .args(["live", &firewall, "--port", "gen:flows=5,count=1001", "--workers", "3", "--json"])
        .output()
        .expect("it runs");
    assert_eq!(json(&output)["packets"], 1001, "{}", stderr(&output));
}

#[test]
fn what_is_wrong_is_said() {
    let directory = tempfile::tempdir().expect("a directory");
    let (traffic, object) = (example("traffic.pcap"), directory.path().join("firewall.o"));
    std::fs::copy(example("firewall.o"), &object).expect("a copy");
    let object = object.display().to_string();
    let copy = directory.path().join("copy.pcap");
    std::fs::copy(&traffic, &copy).expect("a copy");
    let copy = copy.display().to_string();
    for (arguments, status, message) in [
        (vec!["--port", "eth0"], 2, "it must be one of xdp:IFACE"),
        (vec!["--port", "xdp:nosuch"], 1, "--port xdp:nosuch: "),
        (vec!["--port", &format!("pcap:{copy},{copy}")], 1, "is the same file as"),
        (vec![&object, "--port", &format!("pcap:,{object}")], 1, "is the same file as"),
        (vec!["--port", &format!("pcap:{object}")], 1, "an ELF object"),
        (vec!["--port", "pcap:/nosuch/a.pcap"], 1, "/nosuch/a.pcap: No such file"),
        (vec!["--port", "null:", "--seconds", "0"], 2, "it must be more than 0"),
        (vec!["--port", "pcap:/dev/null", "--workers", "0"], 2, "0 is not in 1..=256"),
    ] {
        let output = command().arg("live").args(&arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(std::fs::read(&copy).expect("it is there"), std::fs::read(&traffic).expect("it is there"));
}

/// Packets of the shipped capture.
fn traffic() -> Vec<Vec<u8>> {
    packets(example("traffic.pcap"))
}

/// Sends packets over a wire one after the other, and returns those that come back.
fn answers(wire: &Wire, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    const PAUSE: Duration = Duration::from_millis(200);
    while wire.receive().is_some() {}
    let mut answers = Vec::new();
    for packet in packets {
        // The interface refuses a packet that is longer than its MTU.
        let _ = wire.send(packet);
    }
    let mut last = Instant::now();
    while last.elapsed() < PAUSE {
        match wire.receive() {
            Some(packet) => {
                last = Instant::now();
                answers.push(packet);
            }
            None => thread::sleep(Duration::from_micros(100)),
        }
    }
    answers
}

#[test]
fn the_kernel_sends_the_same_packets() {
    const TEST: &str = "the_kernel_sends_the_same_packets";
    if !available_for(TEST) {
        return;
    }
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let path = example("reflector.o");
    let object = Object::open(&path).expect("the reflector");
    let ifindex = |name: &str| Interface::by_name(name).expect("it is there").index();
    let wire = Wire::open(ifindex("vb")).expect("a packet socket");
    let loaded =
        KernelObject::load(object.maps(), object.programs(), LoadOptions::default()).expect("it loads");
    // An interface whose peer has no program does not receive what the program sends back.
    let pass = Program::load(&Request::xdp(&pass())).expect("it loads");
    let _peer = pass.attach(ifindex("vb")).expect("it attaches");
    let link = loaded.programs[0].attach(ifindex("va")).expect("it attaches");
    let expected = answers(&wire, &traffic());
    drop(link);
    within("detached", || !has_program("va"));
    for mode in ["native", "generic"] {
        let port = format!("xdp:va,{mode}");
        let mut live = Live::start(&[&path, "--port", &port, "--json"], || has_program("va"));
        let found = answers(&wire, &traffic());
        let report = json(&live.end(Signal::TERM));
        check_sums(&report, false);
        assert_eq!(report["verdicts"]["tx"].as_u64(), Some(expected.len() as u64), "{report:#}");
        assert!(found == expected, "{mode}: {} packets, the kernel sends {}", found.len(), expected.len());
        within("detached", || !has_program("va"));
    }
    assert!(expected.len() > 20, "{} packets come back", expected.len());
}

/// `return XDP_PASS`
fn pass() -> Vec<RawInsn> {
    assemble("r0 = 2\nexit", &()).expect("a program").encode().expect("instructions")
}

/// Seconds of the test below; CONTRIBUTING has a longer run.
fn seconds() -> f64 {
    std::env::var("PACELINE_LIVE_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(2.0)
}

/// Kilobytes of memory that a process occupies.
fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

/// Limits the memory of a process to 64 MiB more than it has mapped.
fn limit_memory(process: u32) {
    let status = std::fs::read_to_string(format!("/proc/{process}/statm")).expect("it runs");
    let pages: u64 = status.split(' ').next().and_then(|pages| pages.parse().ok()).expect("a number");
    let limit = Some(pages * 4096 + (64 << 20));
    let pid = Pid::from_raw(process.cast_signed());
    prlimit(pid, Resource::As, Rlimit { current: limit, maximum: limit }).expect("a limit");
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

/// A run that a control socket reaches, without any privilege.
fn controlled(folder: &tempfile::TempDir, object: &str) -> (Live, String) {
    let path = folder.path().join("control");
    let name = path.display().to_string();
    let object = example(object);
    let arguments = [&*object, "--port", "gen:rate=10K,flows=10", "--control", &name, "--json"];
    let is_there = move || path.exists();
    (Live::start(&arguments, is_there), name)
}

fn ask(control: &str, arguments: &[&str]) -> Output {
    command().args(arguments).args(["--control", control]).output().expect("it runs")
}

fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_running_instance_answers() {
    let folder = tempfile::tempdir().expect("a directory");
    let (mut live, control) = controlled(&folder, "firewall.o");
    within("packets", || json(&ask(&control, &["status", "--json"]))["packets"].as_u64() > Some(100));
    let text = printed(&ask(&control, &["status"]));
    assert!(text.contains("firewall") && text.contains("gen:rate=10K,flows=10"), "{text}");
    assert!(printed(&ask(&control, &["map", "list"])).contains("rules (hash), key 4 bytes"));
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
    assert!(stderr(&refused).contains("this is a file, and no socket"), "{}", stderr(&refused));
    assert_eq!(std::fs::read(&control).expect("it is there"), b"a file");
}

/// Answer of a web server to a request.
fn http(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.write_all(request).expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}

#[test]
fn missing_privileges_are_named() {
    const TEST: &str = "missing_privileges_are_named";
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let directory =
        tempfile::Builder::new().permissions(Permissions::from_mode(0o755)).tempdir().expect("a directory");
    // Another user may not enter the folder of the build.
    let binary = directory.path().join("paceline");
    std::fs::copy(env!("CARGO_BIN_EXE_paceline"), &binary).expect("a copy");
    let run = |capabilities: &str, arguments: &[&str]| {
        let set: Vec<String> = capabilities.split(',').map(|name| format!("+{name}")).collect();
        let set = set.join(",");
        let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
        let sets = ["--inh-caps", &set, "--ambient-caps", &set, "--bounding-set", &set];
        let live = ["live", "--seconds", "0.1", "--port"];
        // The limit of Debian, in kilobytes, and its permissions of the device, which not every machine has.
        let debian = "mknod tun c 10 200 && chmod 666 tun && mount --bind tun /dev/net/tun && rm tun
            ulimit -l 8192 && exec setpriv \"$@\"";
        Command::new("unshare")
            .current_dir(&directory)
            .args(["--mount", "sh", "-ec", debian, "sh"])
            .args(user)
            .args(sets)
            .arg(&binary)
            .args(live)
            .args(arguments)
            .output()
    };
    if !Command::new("setpriv").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return skip(TEST, &"there is no setpriv");
    }
    for (capabilities, arguments, refusal) in [
        ("net_raw,net_admin,bpf,ipc_lock", &["xdp:va"][..], None),
        ("net_raw,net_admin,bpf", &["xdp:va", "--frames", "256"], None),
        (
            "net_raw,net_admin,bpf",
            &["xdp:va", "--frames", "1048576"],
            Some("4096 MiB exceeds the limit of locked memory"),
        ),
        ("net_raw,net_admin", &["xdp:va"], Some("it takes CAP_BPF and CAP_NET_ADMIN")),
        ("net_admin,bpf", &["xdp:va"], Some("it takes CAP_NET_RAW")),
        ("net_raw", &["packet:va"], None),
        ("net_admin", &["packet:va"], Some("it takes CAP_NET_RAW")),
        ("net_admin", &["tap:pt0"], None),
        ("net_raw", &["tap:pt0"], Some("it takes CAP_NET_ADMIN")),
    ] {
        let output = run(capabilities, arguments).expect("it runs");
        let status = if refusal.is_some() { 1 } else { 0 };
        assert_eq!(output.status.code(), Some(status), "{capabilities} {arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(refusal.unwrap_or_default()), "{capabilities}: {}", stderr(&output));
    }
}

#[test]
fn metrics_are_served() {
    let folder = tempfile::tempdir().expect("a directory");
    let control = folder.path().join("control").display().to_string();
    // Another process may take the port in between, which this run then reports.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.expect("a free port");
    let port = address.port().to_string();
    let arguments = ["--port", "gen:rate=1M", "--port", "null:", "--metrics", &port, "--json"];
    let arguments = [&arguments[..], &["--control", &control]].concat();
    let mut live = Live::start(&arguments, || std::fs::exists(&control).is_ok_and(|exists| exists));
    let scrape = || http(address, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let value = |answer: &str, name: &str| -> f64 {
        let line = answer.lines().find_map(|line| line.strip_prefix(name)).expect("a sample");
        line.trim().parse().expect("a number")
    };
    let first = scrape();
    assert!(
        first.starts_with("HTTP/1.1 200 OK\r\n") && first.contains("text/plain; version=0.0.4"),
        "{first}"
    );
    const RECEIVED: &str = "paceline_port_received_total{port=\"gen:rate=1M\"}";
    within("packets", || value(&scrape(), RECEIVED) > value(&first, RECEIVED));
    assert_eq!(value(&first, "paceline_port_sent_total{port=\"null:\"}"), 0.0);
    for (request, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"\x16\x03\x01 hello\r\n\r\n", "400"),
        (&[&b"GET / HTTP/1.1\r\nx: "[..], &[b'y'; 10_000]].concat(), "431"),
    ] {
        let answer = http(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) || answer.is_empty(), "{answer}");
    }
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // A port that is in use.
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let output =
        command().args(["live", "--port", "null:", "--metrics", &address]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(&format!("--metrics {address}: Address already in use")),
        "{}",
        stderr(&output)
    );
}

#[test]
fn hostile_clients_stop_no_traffic() {
    let count: u64 =
        std::env::var("PACELINE_REQUESTS").ok().and_then(|text| text.parse().ok()).unwrap_or(500);
    let folder = tempfile::tempdir().expect("a directory");
    let (mut live, control) = controlled(&folder, "firewall.o");
    let good = [
        r#"{"version":1,"command":"status"}"#,
        r#"{"version":1,"command":"map get","map":"rules","key":{"port":80,"protocol":17}}"#,
        r#"{"version":1,"command":"map set","map":"rules","key":{"port":80,"protocol":17},"value":{"action":1}}"#,
        r#"{"version":1,"command":"map dump","map":"rules"}"#,
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
        let mut request = good[rng.usize(..good.len())].as_bytes().to_vec();
        for _ in 0..rng.usize(..4) {
            let at = rng.usize(..request.len());
            match rng.u8(..3) {
                0 => request[at] = rng.u8(..),
                1 => drop(request.drain(at..)),
                _ => request
                    .splice(at..at, std::iter::repeat_n(rng.u8(..), rng.usize(..100_000)))
                    .for_each(drop),
            }
            if request.is_empty() {
                request.push(b'{');
            }
        }
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
    assert!(packets > seconds * 10_000.0 * 0.8, "{packets} packets in {seconds} s at 10,000 a second");
}

#[test]
fn an_interface_that_is_missing_is_waited_for() {
    const TEST: &str = "an_interface_that_is_missing_is_waited_for";
    for port in ["xdp:va", "packet:va"] {
        let Some(()) = namespace(TEST, "") else { return };
        let folder = Folder::new();
        let (control, counter) = (folder.text("control"), example("counter.o"));
        let mut arguments = vec![&*counter, "--port", port, "--control", &control, "--json", "--wait"];
        let mut live = Live::start(&arguments, || true);
        for round in 1..=2 {
            veth("va", "vb").lines().try_for_each(ip).expect("a pair");
            // The socket is made when the ports are open for the first time.
            within("it runs", || Path::new(&control).exists());
            let wire = Wire::open(Interface::by_name("vb").expect("an interface").index()).expect("a wire");
            let passed = || {
                let status = ask(&control, &["status", "--json"]);
                serde_json::from_slice::<Json>(&status.stdout).expect("counts")["verdicts"]["pass"].as_u64()
            };
            let before = passed();
            within("packets", || {
                let _ = wire.send(&[2; 60]);
                passed() > before
            });
            assert!(passed() >= Some(round), "the counts of {port} stay");
            ip("link del va").expect("it is deleted");
            thread::sleep(Duration::from_millis(200));
        }
        let output = live.end(Signal::TERM);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let waits = stderr(&output).matches("interface `va` has gone: waiting for it").count();
        assert_eq!(waits, 2, "{}", stderr(&output));
        check_sums(&json(&output), false);
        // A capture would be written again from its start.
        arguments.extend(["--pass", "pcap:,out.pcap"]);
        let output = command().arg("live").args(&arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(
            stderr(&output).contains("`pcap:,out.pcap` would start from its beginning"),
            "{}",
            stderr(&output)
        );
    }
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
    let Ok(top) = top else {
        return skip("a_live_run_shows_its_rates_and_its_chain", &"`script` is missing");
    };
    thread::sleep(Duration::from_millis(1000));
    live.end(Signal::TERM);
    let shown = top.wait_with_output().expect("it ends");
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(shown.status.success(), "{text}");
    for part in ["packets/s,", "gen:rate=100K,flows=9", "workers", "the run has ended"] {
        assert!(text.contains(part), "{part}: {text}");
    }
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
        (r#"{"version":1,"command":"capture","count":"x"}"#, "`count` is no number"),
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

#[test]
fn aborted_packets_are_counted_by_program_and_line() {
    let folder = Folder::new();
    // The first byte is the verdict.
    let input = folder.write("in.pcap", capture(&[&[0; 60][..]; 5000]));
    let arguments = ["live", &fixture("verdicts.o"), "--port", &format!("pcap:{input}")];
    let report = json(&command().args(arguments).arg("--json").output().expect("it runs"));
    let followed = &report["followed"];
    let packets = followed["packets"].as_u64().expect("a number");
    assert!((1..5000).contains(&packets), "{report:#}");
    assert_eq!(followed["aborted"], value!({ "verdicts": { "verdicts.bpf.c:11": packets } }));
    assert_eq!(followed["edges"], value!({ "verdicts": { "verdicts": { "aborted": packets } } }));
    let text = printed(&command().args(arguments).output().expect("it runs"));
    assert!(text.contains("  aborted by verdicts, last branch verdicts.bpf.c:11: 100.0% of "), "{text}");
}

#[test]
fn a_run_that_stands_still_goes_on() {
    const TEST: &str = "a_run_that_stands_still_goes_on";
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let (folder, counter) = (Folder::new(), example("counter.o"));
    let control = folder.text("control");
    // One that answers has begun to watch the time.
    let arguments = [&*counter, "--port", "xdp:va", "--json", "--control", &control];
    let mut live = Live::start(&arguments, || ask(&control, &["status"]).status.success());
    let wire = Wire::open(Interface::by_name("vb").expect("it is there").index()).expect("a packet socket");
    let memory = resident(live.id());
    live.signal(Signal::STOP);
    let start = Instant::now();
    let mut sent = 0_u64;
    // More than the rings hold.
    while start.elapsed() < Duration::from_millis(1300) {
        sent += (0..100).filter(|_| wire.send(&[2; 60]).is_ok()).count() as u64;
    }
    live.signal(Signal::CONT);
    thread::sleep(Duration::from_millis(100));
    sent += (0..100).filter(|_| wire.send(&[2; 60]).is_ok()).count() as u64;
    thread::sleep(Duration::from_millis(100));
    let grown = resident(live.id()).saturating_sub(memory);
    let output = live.end(Signal::INT);
    let report = json(&output);
    check_sums(&report, false);
    let number = |name: &str| report["ports"][0][name].as_u64().expect("a number");
    assert!(number("dropped") > 0 && number("received") > 1000, "{report:#}");
    // Packets that veth itself dropped are in its own statistics.
    assert!(number("received") + number("dropped") <= sent, "{sent}: {report:#}");
    assert!(stderr(&output).contains("note: the run stood still for "), "{}", stderr(&output));
    assert!(grown < 4096, "{grown} KiB more");
}

#[test]
fn curl_and_iperf_transfer_through_to_the_host() {
    const TEST: &str = "curl_and_iperf_transfer_through_to_the_host";
    const BYTES: usize = 5_000_000;
    for tool in ["curl", "iperf3"] {
        if let Err(error) = Command::new(tool).arg("--version").output() {
            return skip(TEST, &format!("{tool}: {error}"));
        }
    }
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let Some(host) = Host::new(TEST, "vb") else { return };
    let firewall = example("firewall.o");
    let arguments = [&*firewall, "--port", "xdp:va", "--pass", "tap:pl0", "--json"];
    let mut live = Live::start(&arguments, || ip("link show dev pl0").is_ok());
    ip("addr add 10.9.0.1/24 dev pl0").expect("an address");
    ip("link set pl0 up").expect("it is up");
    let listener = TcpListener::bind("10.9.0.1:8080").expect("the host's address");
    let server = thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let mut request = [0; 1000];
        let _ = connection.read(&mut request).expect("a request");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {BYTES}\r\nConnection: close\r\n\r\n");
        connection.write_all(&[head.as_bytes(), &vec![b'x'; BYTES]].concat()).expect("an answer");
    });
    let page = host.run(|| {
        let curl = Command::new("curl").args(["-sS", "--max-time", "20", "http://10.9.0.1:8080/"]).output();
        curl.expect("curl runs").stdout
    });
    server.join().expect("the server");
    assert_eq!(page.len(), BYTES);
    let mut server = Command::new("iperf3");
    let mut server =
        server.args(["-s", "-1", "-B", "10.9.0.1"]).stdout(Stdio::null()).spawn().expect("iperf3");
    within("the server", || {
        let sockets = std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
        // Port 5201.
        sockets.contains(":1451 ")
    });
    let report = host.run(|| {
        let arguments = ["-c", "10.9.0.1", "-t", "1", "-J", "--connect-timeout", "5000"];
        Command::new("iperf3").args(arguments).output().expect("iperf3 runs").stdout
    });
    let _ = server.wait();
    let report: Json = serde_json::from_slice(&report).expect("JSON");
    let received = report["end"]["sum_received"]["bytes"].as_u64();
    assert!(received > Some(1_000_000), "{report:#}");
    check_sums(&json(&live.end(Signal::INT)), true);
}
