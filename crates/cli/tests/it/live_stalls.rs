//! Runs that are stalled, and runs that are killed.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use paceline_testkit::namespace::{ip, namespace, veth};
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::common::live::{Live, ask, check_sums, has_program, json, printed, resident, stderr, within};
use crate::common::wires::{packet, wire};
use crate::common::{Folder, capture, example, has_tool};

/// A request that drops UDP to a port.
fn rule(port: u16) -> String {
    format!(
        r#"{{"version":1,"command":"map set","map":"rules","key":{{"port":{port},"protocol":17}},"value":{{"action":1}}}}"#
    )
}

/// A chain file of example programs.
fn write_chain(path: &Path, programs: &[&str]) {
    let object = |name: &&str| format!("objects.{name}.file = \"{}\"\n", example(&format!("{name}.o")));
    let program = |name: &&str| format!("[[program]]\nname = \"{name}\"\nactions = [\"pass\"]\n");
    let text: String = programs.iter().map(object).chain(programs.iter().map(program)).collect();
    std::fs::write(path, text).expect("the chain");
}

#[test]
fn what_is_asked_of_a_stalled_run_happens_when_it_goes_on() {
    const CLIENTS: u16 = 200;
    let folder = Folder::new();
    let (control, chain) = (folder.text("control"), folder.path("chain.toml"));
    write_chain(&chain, &["firewall"]);
    let file = folder.text("chain.toml");
    let arguments = ["--chain", &file, "--port", "gen:rate=10K,flows=10", "--control", &control, "--json"];
    let mut live = Live::start(&arguments, || ask(&control, &["status"]).status.success());
    let memory = resident(live.id());
    live.signal(Signal::STOP);
    let stopped = Instant::now();
    let silent = ask(&control, &["status", "--timeout", "0.2"]);
    assert_eq!(silent.status.code(), Some(1));
    assert!(
        stderr(&silent).contains(&format!("error: control socket {control}: no answer within 200ms")),
        "{}",
        stderr(&silent)
    );
    write_chain(&chain, &["firewall", "counter"]);
    (0..100).for_each(|_| live.signal(Signal::HUP));
    // Clients that do not wait for the answer, and one that does.
    for number in 0..CLIENTS {
        let mut client = UnixStream::connect(&control).expect("the socket");
        writeln!(client, "{}", rule(20_000 + number)).expect("it is sent");
    }
    let waiting = {
        let control = control.clone();
        // The traffic is UDP to port 80.
        let arguments = ["map", "set", "rules", r#"{"port": 80, "protocol": 17}"#, r#"{"action": 1}"#];
        thread::spawn(move || ask(&control, &arguments))
    };
    // More than the second from which on it is told.
    thread::sleep(Duration::from_millis(1100).saturating_sub(stopped.elapsed()));
    live.signal(Signal::CONT);
    printed(&waiting.join().expect("it waits"));
    let status = || json(&ask(&control, &["status", "--json"]));
    within("the new chain", || status()["programs"] == serde_json::json!(["firewall", "counter"]));
    within("the rule", || status()["verdicts"]["drop"].as_u64() > Some(0));
    let rules = || printed(&ask(&control, &["map", "dump", "rules"])).lines().count();
    // While the chain is read, clients beyond eight are refused: each after a tenth of a second.
    within("rules", || rules() > usize::from(CLIENTS) / 2);
    let grown = resident(live.id()).saturating_sub(memory);
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("note: the run was stalled for "), "{}", stderr(&output));
    check_sums(&json(&output), false);
    assert!(grown < 8192, "{grown} KiB more");
}

#[test]
fn a_worker_that_is_held_up_is_told() {
    const TEST: &str = "a_worker_that_is_held_up_is_told";
    if !has_tool(TEST, "mkfifo") {
        return;
    }
    let folder = Folder::new();
    // Open for reading and writing: nothing waits for another side.
    let pipe = |name: &str| {
        let path = folder.text(name);
        assert!(Command::new("mkfifo").arg(&path).status().expect("it runs").success());
        let file = OpenOptions::new().read(true).write(true).open(&path).expect("the pipe");
        (path, file)
    };
    let input = |name: &str| {
        let (path, mut file) = pipe(name);
        file.write_all(&capture(&[&[0; 60]])).expect("a capture");
        (format!("pcap:{path}"), file)
    };
    let ((alone, _alone), (quiet, _quiet), (full, _full)) = (input("alone"), input("quiet"), pipe("full"));
    let full = format!("pcap:,{full}");
    let start = |arguments: &[&str]| Live::start(arguments, || true);
    // A worker that receives from one port, which is silent, has nothing else to do; it is the first to begin.
    let idle = start(&["--port", &alone, "--pass", &format!("pcap:,{}", folder.text("out.pcap"))]);
    let waits = start(&["--port", &quiet, "--port", "gen:rate=1K"]);
    // More than a pipe holds.
    let held_up = start(&["--port", "gen:count=1000,size=1000", "--pass", &full]);
    within("waiting", || waits.messages().contains("note: worker 0 is stalled: it waits for a capture"));
    let by_port = "note: worker 0 is stalled: a program or a port holds it up";
    within("held up", || held_up.messages().contains(by_port));
    assert_eq!(idle.messages(), "");
}

/// What the kernel has of a run on an interface: its program, maps and link, as arguments of `bpftool`.
fn kernel_objects(interface: &str) -> Vec<[String; 4]> {
    let json = |tool: &str, arguments: &[&str]| -> Json {
        let output = Command::new(tool).args(arguments).output().expect("it runs");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{tool} {arguments:?}: {error}"))
    };
    let object = |kind: &str, id: &Json| [kind, "show", "id", &id.to_string()].map(str::to_owned);
    let shown = json("ip", &["-j", "-d", "link", "show", "dev", interface]);
    let program = &shown[0]["xdp"]["prog"]["id"];
    let facts = json("bpftool", &["-j", "prog", "show", "id", &program.to_string()]);
    let links = json("bpftool", &["-j", "link", "show"]);
    let of_program = |link: &&Json| link["prog_id"] == *program;
    let links = links.as_array().into_iter().flatten().filter(of_program).map(|link| &link["id"]);
    let maps = facts["map_ids"].as_array().into_iter().flatten();
    let mut objects = vec![object("prog", program)];
    objects.extend(maps.map(|id| object("map", id)));
    objects.extend(links.map(|id| object("link", id)));
    objects
}

/// Number of packet sockets in this thread's namespace.
fn packet_sockets() -> usize {
    std::fs::read_to_string("/proc/thread-self/net/packet").expect("sockets").lines().count()
}

#[test]
fn nothing_is_left_after_kills() {
    const TEST: &str = "nothing_is_left_after_kills";
    let Some(()) = namespace(TEST, &(veth("va", "vb") + &veth("vc", "vd"))) else { return };
    if !has_tool(TEST, "bpftool") {
        return;
    }
    let (folder, counter) = (Folder::new(), example("counter.o"));
    let control = folder.text("control");
    let ports = ["--port", "xdp:va", "--port", "packet:vc", "--pass", "tap:pl0", "--workers", "2"];
    let arguments = [&[&*counter][..], &ports, &["--control", &control, "--json"]].concat();
    let vb = wire("vb");
    let sockets = packet_sockets();
    for _ in 0..2 {
        // One that was killed leaves its control socket behind, which is replaced.
        let mut live = Live::start(&arguments, || ask(&control, &["status"]).status.success());
        let objects = kernel_objects("va");
        let kinds = |kind: &str| objects.iter().filter(|object| object[0] == kind).count();
        assert!(kinds("prog") == 1 && kinds("link") == 1 && kinds("map") > 0, "{objects:?}");
        assert!(packet_sockets() > sockets && ip("link show dev pl0").is_ok());
        (0..100).for_each(|number| drop(vb.send(&packet([2, 0], number, 60))));
        live.end(Signal::KILL);
        within("detached", || !has_program("va"));
        within("no TAP interface", || ip("link show dev pl0").is_err());
        within("no packet socket", || packet_sockets() == sockets);
        for object in &objects {
            let exists = || Command::new("bpftool").args(object).output().expect("it runs").status.success();
            within(&format!("no more {object:?}"), || !exists());
        }
    }
    let output = Live::start(&arguments, || ask(&control, &["status"]).status.success()).end(Signal::INT);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!Path::new(&control).exists(), "it is removed");
}
