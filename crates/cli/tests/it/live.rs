//! `paceline live` on real interfaces, in network namespaces that the tests make.

use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use paceline::Object;
use paceline::device::Interface;
use paceline_testkit::kernel::{KernelObject, LoadOptions, Program, Request, available_for};
use paceline_testkit::namespace::{ip, namespace, veth};
use paceline_testkit::skip;
use paceline_testkit::wire::Wire;
use rustix::process::Signal;
use serde_json::{Value as Json, json as value};

use crate::common::host::{Host, echoes};
use crate::common::live::{
    Live, ask, check_sums, has_program, json, pass, printed, resident, stderr, traffic, within,
};
use crate::common::wires::arrivals;
use crate::common::{Folder, capture, command, example, fixture, paceline};

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
    let (counter, xsk) = (example("counter.o"), fixture("xsk.o"));
    for (kind, object, option, host_side) in [
        ("xdp:va", &counter, "--pass", "tap:pl0"),
        ("packet:va", &counter, "--pass", "tap:pl0"),
        ("xdp:va", &xsk, "--socket", "xsks_map=tap:pl0"),
    ] {
        let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
        let Some(host) = Host::new(TEST, "vb") else { return };
        let arguments = [object, "--port", kind, option, host_side, "--json"];
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
fn packets_for_sockets_go_to_ports() {
    const TEST: &str = "packets_for_sockets_go_to_ports";
    let folder = Folder::new();
    let out = folder.text("out.pcap");
    let socket = |keys: &str| format!("xsks_map{keys}=pcap:,{out}");
    // The programs that libxdp gives interfaces for AF_XDP.
    let of_libxdp = ["xsk_def_xdp_prog.o", "xsk_def_xdp_prog_5.3.o"]
        .map(|name| format!("/usr/lib/{}-linux-gnu/bpf/{name}", std::env::consts::ARCH));
    for object in [fixture("xsk.o")].iter().chain(&of_libxdp) {
        if !Path::new(object).exists() {
            skip(TEST, &format_args!("there is no {object}"));
            continue;
        }
        for (keys, verdict, sent) in [("", "redirect", 100), ("@0", "redirect", 100), ("@1-3", "pass", 0)] {
            let arguments = ["live", object, "--port", "gen:count=100", "--socket", &socket(keys), "--json"];
            let report = paceline(arguments).json();
            assert_eq!(report["verdicts"][verdict], 100, "{object} {keys}: {report:#}");
            assert_eq!(report["ports"][1]["sent"], sent, "{object} {keys}: {report:#}");
        }
    }
    // Workers that end at different times leave none of a port that they share behind.
    for _ in 0..5 {
        let arguments = ["live", &fixture("xsk.o"), "--port", "gen:count=20K,flows=100", "--workers", "2"];
        let report = paceline(arguments.iter().chain(&["--socket", "xsks_map=loop:", "--json"])).json();
        check_sums_of_sockets(&report);
    }
    // Packets that a socket sends leave by the first port.
    let arguments = ["live", &fixture("xsk.o"), "--port", "gen:count=100", "--socket", "xsks_map=loop:"];
    let report = paceline(arguments.iter().chain(&["--json"])).json();
    let [generator, socket] = [0, 1].map(|port| &report["ports"][port]);
    assert_eq!((&generator["sent"], &socket["received"]), (&100.into(), &100.into()), "{report:#}");
}

/// Every packet that went to a loop comes back, and is sent or counted.
fn check_sums_of_sockets(report: &Json) {
    let number = |value: &Json| value.as_u64().expect("a number");
    let [generator, socket] = [0, 1].map(|port| &report["ports"][port]);
    assert_eq!((number(&generator["received"]), number(&report["packets"])), (20_000, 20_000), "{report:#}");
    let [received, sent] = ["received", "sent"].map(|name| number(&socket[name]));
    assert_eq!(sent + number(&socket["refused"]), number(&report["verdicts"]["redirect"]), "{report:#}");
    assert_eq!(received + number(&socket["dropped"]), sent, "{report:#}");
    let left = number(&generator["sent"]) + number(&generator["refused"]) + number(&report["lost"]);
    assert_eq!(left, received, "{report:#}");
}

#[test]
fn wrong_sockets_are_refused() {
    let folder = Folder::new();
    let out = folder.write("old.pcap", "kept");
    let to_file = |entries: &str| format!("{entries}=pcap:,{out}");
    let refused = |object: &str, sockets: &[&str], status: i32, part: &str| {
        let sockets = sockets.iter().flat_map(|socket| ["--socket", socket]);
        let arguments = ["live", object, "--port", "gen:count=1"].into_iter().chain(sockets);
        paceline(arguments.collect::<Vec<_>>()).fails(status, "", &[part]);
        // It was not begun: what is wrong is found before.
        assert_eq!(std::fs::read_to_string(&out).expect("the file"), "kept", "{part}");
    };
    let xsk = fixture("xsk.o");
    refused(&xsk, &["xsks_map"], 2, "it must be MAP[@KEYS]=KIND:ARGUMENT");
    refused(&xsk, &[&to_file("xsks")], 1, "--socket xsks: there is no map xsks, only xsks_map");
    let behind = "--socket xsks_map@4: the map has 4 entries, from 0 on";
    refused(&xsk, &[&to_file("xsks_map@3-4")], 1, behind);
    let second = format!("{xsk}:xsks_map@1-3");
    let twice = format!("--socket {second}: entry 2 of the map belongs to --socket xsks_map@2");
    refused(&xsk, &["xsks_map@0=loop:", "xsks_map@2=loop:", &to_file(&second)], 1, &twice);
    refused(&example("firewall.o"), &[&to_file("rules")], 1, "--socket rules: it is a map of type hash");
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
    // The counts of a worker that ends before another one starts stay its own.
    let output = command()
        .args(["live", &firewall, "--port", &format!("pcap:{traffic}"), "--workers", "3", "--json"])
        .output()
        .expect("it runs");
    let report = json(&output);
    let packets = report["workers"].as_array().expect("workers").iter().map(|worker| &worker["packets"]);
    let packets: Vec<_> = packets.map(|packets| packets.as_u64().expect("a number")).collect();
    assert_eq!((packets.len(), packets.iter().sum()), (3, 492), "{report:#}");
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
        (vec!["--port", &format!("pcap:{object}")], 1, "an ELF file"),
        (vec!["--port", "pcap:/nosuch/a.pcap"], 1, "/nosuch/a.pcap: No such file"),
        (vec!["--port", "null:", "--seconds", "0"], 2, "it must be more than 0"),
        (vec!["--port", "pcap:/dev/null", "--workers", "0"], 2, "it must be from 1 to 256"),
    ] {
        let output = command().arg("live").args(&arguments).output().expect("it runs");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(message), "{arguments:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(std::fs::read(&copy).expect("it is there"), std::fs::read(&traffic).expect("it is there"));
}

/// Sends packets over a wire one after the other, and returns those that come back.
fn answers(wire: &Wire, packets: &[Vec<u8>]) -> Vec<Vec<u8>> {
    while wire.receive().is_some() {}
    for packet in packets {
        // The interface refuses a packet that is longer than its MTU.
        let _ = wire.send(packet);
    }
    arrivals(wire, usize::MAX, Duration::from_millis(200), |_| true)
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
            within("it has gone", || live.messages().matches("`va` has gone").count() == round as usize);
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
fn a_tap_interface_that_is_deleted_is_made_again() {
    let Some(()) = namespace("a_tap_interface_that_is_deleted_is_made_again", "") else { return };
    let (folder, counter) = (Folder::new(), example("counter.o"));
    let control = folder.text("control");
    let arguments = [&*counter, "--port", "tap:ta", "--control", &control, "--json", "--wait"];
    let mut live = Live::start(&arguments, || true);
    let passed = || {
        let status = ask(&control, &["status", "--json"]);
        serde_json::from_slice::<Json>(&status.stdout).expect("counts")["verdicts"]["pass"].as_u64()
    };
    for round in 1..=2 {
        within("it is up", || ip("link set ta up").is_ok() && Path::new(&control).exists());
        let wire = Wire::open(Interface::by_name("ta").expect("an interface").index()).expect("a wire");
        let before = passed();
        within("packets", || {
            let _ = wire.send(&[2; 60]);
            passed() > before
        });
        assert!(passed() >= Some(round), "the counts stay");
        ip("link del ta").expect("it is deleted");
        within("it has gone", || live.messages().matches("`ta` has gone").count() == round as usize);
    }
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    check_sums(&json(&output), false);
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
fn a_stalled_run_goes_on() {
    const TEST: &str = "a_stalled_run_goes_on";
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
    while start.elapsed() < Duration::from_millis(1100) {
        sent += (0..100).filter(|_| wire.send(&[2; 60]).is_ok()).count() as u64;
    }
    live.signal(Signal::CONT);
    within("it goes on", || live.messages().contains("note: the run was stalled for "));
    sent += (0..100).filter(|_| wire.send(&[2; 60]).is_ok()).count() as u64;
    let received = || json(&ask(&control, &["status", "--json"]))["ports"][0]["received"].as_u64();
    within("packets", || received() > Some(1000));
    let grown = resident(live.id()).saturating_sub(memory);
    let output = live.end(Signal::INT);
    let report = json(&output);
    check_sums(&report, false);
    let number = |name: &str| report["ports"][0][name].as_u64().expect("a number");
    assert!(number("dropped") > 0 && number("received") > 1000, "{report:#}");
    // Packets that veth itself dropped are in its own statistics.
    assert!(number("received") + number("dropped") <= sent, "{sent}: {report:#}");
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
