//! Options of live runs: threads and their CPUs, faults and rates, signals, and runs without privileges.

use std::fs::{OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use paceline_testkit::namespace::namespace;
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::common::live::{Live, check_sums, json, stderr, within};
use crate::common::{Folder, capture, example, has_tool, paceline, packets, skip};

/// The kernel's file `status` or `stat` for each worker's thread.
fn workers(live: &Live, file: &str) -> Vec<String> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", live.id())).expect("threads");
    let of = |name: &str, task: &Path| std::fs::read_to_string(task.join(name)).unwrap_or_default();
    let paths = tasks.filter_map(|task| Some(task.ok()?.path()));
    paths.filter(|task| of("comm", task).starts_with("worker ")).map(|task| of(file, &task)).collect()
}

#[test]
fn pinned_threads_have_a_cpu_each() {
    let arguments = ["--port", "gen:rate=1K,flows=9", "--workers", "3"];
    // Without a limit of this process to one CPU.
    let allowed = thread::available_parallelism().map_or(1, usize::from);
    let cpus = |arguments: &[&str]| {
        let live = Live::start(arguments, || true);
        within("threads", || workers(&live, "status").len() == 3);
        let cpus = |status: &String| -> Option<String> {
            status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"))
                .map(|list| list.trim().to_owned())
        };
        // Each binds itself when it has started.
        let is_bound = |list: &String| list.parse::<u32>().is_ok();
        let lists = || -> Vec<String> { workers(&live, "status").iter().filter_map(cpus).collect() };
        if arguments.contains(&"--pin") {
            within("bound threads", || lists().iter().filter(|list| is_bound(list)).count() == 3);
        }
        lists()
    };
    let mut pinned = cpus(&[&arguments[..], &["--pin"]].concat());
    pinned.sort();
    pinned.dedup();
    assert_eq!(pinned.len(), allowed.min(3), "by turns: {pinned:?}");
    if allowed > 1 {
        let free = cpus(&arguments);
        assert!(free.iter().all(|list| list.parse::<u32>().is_err()), "{free:?}");
    }
}

#[test]
fn a_thread_spins_where_it_is_asked() {
    let Some(()) = namespace("a_thread_spins_where_it_is_asked", "") else { return };
    // Field 14 is the time in user mode, 15 in the kernel, in hundredths of a second.
    let used = |live: &Live| -> u64 {
        let stat = workers(live, "stat").pop().unwrap_or_default();
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields.get(11..13).into_iter().flatten().filter_map(|field| field.parse::<u64>().ok()).sum()
    };
    let sleeping = Live::start(&["--port", "tap:ps0"], || true);
    let spinning = Live::start(&["--port", "tap:ps1", "--spin"], || true);
    within("time of a thread that spins", || used(&spinning) >= 20);
    let (sleeping, spinning) = (used(&sleeping), used(&spinning));
    assert!(sleeping * 2 < spinning, "{sleeping} and {spinning} hundredths of a second");
}

#[test]
fn a_second_interrupt_ends_the_process() {
    let folder = Folder::new();
    let (pipe, control) = (folder.text("pipe"), folder.text("control"));
    if !has_tool("a_second_interrupt_ends_the_process", "mkfifo") {
        return;
    }
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("it runs").success());
    // A capture whose rest does not come: its worker waits for it, and the end for the worker.
    let mut writer = OpenOptions::new().read(true).write(true).open(&pipe).expect("the pipe");
    writer.write_all(&capture(&[&[0; 60]])).expect("a capture");
    let mut live = Live::start(&["--port", &format!("pcap:{pipe}"), "--control", &control], || {
        Path::new(&control).exists()
    });
    live.signal(Signal::INT);
    thread::sleep(Duration::from_millis(50));
    assert!(Path::new(&format!("/proc/{}/exe", live.id())).read_link().is_ok(), "it waits for the capture");
    let output = live.end(Signal::INT);
    assert_eq!(output.status.signal(), Some(Signal::INT.as_raw()), "{}", stderr(&output));
}

#[test]
fn other_versions_of_the_protocol_are_refused() {
    let folder = Folder::new();
    let control = folder.text("control");
    let mut live =
        Live::start(&["--port", "gen:rate=1K", "--control", &control], || Path::new(&control).exists());
    let mut stream = BufReader::new(UnixStream::connect(&control).expect("the socket"));
    for (version, answer) in [
        (r#""version":2,"#, r#"{"error":"version 2 of the protocol is not known, only 1"}"#),
        (r#""version":0,"#, r#"{"error":"version 0 of the protocol is not known, only 1"}"#),
        (r#""version":"1","#, r#"{"error":"`version` is missing"}"#),
        ("", r#"{"error":"`version` is missing"}"#),
        (r#""version":1,"#, r#"{"ok":null}"#),
    ] {
        // Several requests on one connection; the last one is taken, and ends the run.
        writeln!(stream.get_mut(), r#"{{{version}"command":"stop"}}"#).expect("it is sent");
        let mut line = String::new();
        stream.read_line(&mut line).expect("an answer");
        assert_eq!(line.trim(), answer, "{version}");
    }
    let output = live.wait();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn faults_are_made_and_counted() {
    const COUNT: u64 = 20_000;
    let (folder, counter) = (Folder::new(), example("counter.o"));
    let run = |faults: &str| {
        let out = folder.text("out.pcap");
        let (mut port, mut pass) = ("gen:count=20K,size=100,flows=50".to_owned(), format!("pcap:,{out}"));
        let faulty = if faults.contains("direction=out") { &mut pass } else { &mut port };
        *faulty = format!("fault:{faults}+{faulty}");
        // The program counts packets, and passes all.
        let report = paceline(["live", &counter, "--port", &port, "--pass", &pass, "--json"]).json();
        check_sums(&report, true);
        (report, packets(&out))
    };
    let near = |count: u64, share: f64| {
        let expected = COUNT as f64 * share;
        (count as f64 - expected).abs() < expected / 4.0
    };
    let number = |value: &Json| value.as_u64().expect("a number");
    let (unchanged, all) = run("drop=0");
    assert_eq!(number(&unchanged["packets"]), COUNT);
    let (report, _) = run("drop=5%");
    let dropped = number(&report["ports"][0]["dropped"]);
    assert_eq!(number(&report["packets"]) + dropped, COUNT, "{report:#}");
    assert!(near(dropped, 0.05), "{report:#}");
    let (report, _) = run("duplicate=0.1,seed=7");
    assert!(near(number(&report["packets"]) - COUNT, 0.1), "{report:#}");
    let (_, cut) = run("truncate=10%");
    assert!(near(cut.iter().filter(|packet| packet.len() < 100).count() as u64, 0.1));
    let differ = |changed: &[Vec<u8>]| changed.iter().zip(&all).filter(|(one, other)| one != other).count();
    let (_, corrupt) = run("corrupt=10%");
    assert!(near(differ(&corrupt) as u64, 0.1), "{}", differ(&corrupt));
    let (_, reordered) = run("reorder=5%");
    assert!(differ(&reordered) > 1000, "{}", differ(&reordered));
    let sorted = |mut all: Vec<Vec<u8>>| {
        all.sort();
        all
    };
    assert!(sorted(reordered) == sorted(all.clone()), "only the order changes");
    // Sent packets: what is lost is told, and late ones are there at the end.
    let (report, arrived) = run("direction=out,drop=5%");
    let dropped = number(&report["ports"][1]["dropped"]);
    assert_eq!((number(&report["packets"]), arrived.len() as u64 + dropped), (COUNT, COUNT), "{report:#}");
    assert!(near(dropped, 0.05), "{report:#}");
    let (_, reordered) = run("direction=out,reorder=5%");
    assert!(differ(&reordered) > 1000, "{}", differ(&reordered));
    assert!(sorted(reordered) == sorted(all), "only the order changes");
}

#[test]
fn a_rate_is_kept() {
    for port in ["rate:20K+gen:flows=9", "gen:flows=9,rate=20K"] {
        let report =
            paceline(["live", "--port", port, "--seconds", "0.3", "--workers", "2", "--json"]).json();
        let rate =
            report["packets"].as_f64().expect("a number") / report["seconds"].as_f64().expect("a time");
        // A machine that has other work gives less.
        assert!((5e3..21e3).contains(&rate), "{port}: {report:#}");
    }
}

#[test]
fn a_user_without_privileges_has_a_namespace() {
    const TEST: &str = "a_user_without_privileges_has_a_namespace";
    // Another user may not enter the folder of the build, and writes the control socket here.
    let shared = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(shared.path(), Permissions::from_mode(0o777)).expect("its permissions");
    for (from, name) in
        [(env!("CARGO_BIN_EXE_paceline"), "paceline"), (&*example("firewall.o"), "firewall.o")]
    {
        std::fs::copy(from, shared.path().join(name)).expect("a copy");
    }
    let user = ["--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all"];
    let as_user = |script: &str| {
        let arguments = ["unshare", "-rn", "sh", "-ec", script];
        Command::new("setpriv").current_dir(&shared).args(user).args(arguments).output()
    };
    match as_user("exec 3<>/dev/net/tun; ip -V") {
        Ok(probe) if probe.status.success() => {}
        Ok(probe) => return skip(TEST, &stderr(&probe).trim()),
        Err(error) => return skip(TEST, &format!("setpriv: {error}")),
    }
    // Packets for both ports come from other runs.
    let script = "
        ip link add va type veth peer name vb; ip link set va up; ip link set vb up
        ./paceline live firewall.o --port tap:pl0 --port packet:va --control control --json &
        trap 'kill $! 2>/dev/null || true' EXIT
        until ./paceline status --control control >/dev/null 2>&1
            do tries=$((tries + 1)); [ $tries -lt 200 ]; sleep 0.05
        done
        ip link set pl0 up
        ./paceline live --port gen:count=100 --pass packet:vb >/dev/null
        ./paceline live --port gen:count=200 --pass packet:pl0 >/dev/null
        ./paceline stop --control control
        wait $!";
    let output = as_user(script).expect("it runs");
    assert!(output.status.success(), "{}", stderr(&output));
    let report = json(&output);
    check_sums(&report, false);
    let received = |port: usize| report["ports"][port]["received"].as_u64();
    // The host sends packets of its own when an interface comes up.
    assert!(received(0) >= Some(200) && received(1) >= Some(100), "{report:#}");
}
