//! `--port dpdk:`: DPDK's software drivers, and its testpmd on the other side.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use paceline_testkit::namespace::{ip, namespace, veth};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;

use crate::common::host::{Host, echoes};
use crate::common::live::{Live, ask, check_sums, json, stderr, within};
use crate::common::{Folder, command, example, paceline, packets, skip};

/// The library, built from its source; the reason if it cannot be.
static LIBRARY: LazyLock<Result<String, String>> = LazyLock::new(|| {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../dpdk");
    let built = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let found = Command::new("pkg-config").args(["--exists", "libdpdk"]).status();
    if !found.is_ok_and(|status| status.success()) {
        return Err("DPDK's headers are missing (libdpdk-dev, pkg-config)".to_owned());
    }
    let made = Command::new("make").arg("-C").arg(source).arg(format!("BUILD={}", built.display())).output();
    let made = made.map_err(|error| format!("make: {error}"))?;
    // With headers and tools present, a failure is one of the source.
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(built.join("libpaceline-dpdk.so").display().to_string())
});

/// The path of the library; `None` if a test cannot run.
fn library(test: &str) -> Option<&'static str> {
    LIBRARY.as_ref().map_err(|reason| skip(test, reason)).ok().map(String::as_str)
}

/// Runs the command with arguments until its end.
fn live(library: &str, arguments: &[&str]) -> Output {
    command().env("PACELINE_DPDK", library).arg("live").args(arguments).output().expect("the command starts")
}

/// Runs the command until its counts are enough.
fn live_until(library: Option<&str>, arguments: &[&str], is_enough: impl Fn(&Json) -> bool) -> Output {
    let folder = Folder::new();
    let control = folder.text("control");
    let arguments = [arguments, &["--control", &control, "--json"]].concat();
    let environment: Vec<_> = library.iter().map(|library| ("PACELINE_DPDK", *library)).collect();
    let mut live = Live::start_with(&environment, &arguments, || Path::new(&control).exists());
    within("enough packets", || is_enough(&json(&ask(&control, &["status", "--json"]))));
    live.end(Signal::TERM)
}

/// Whether a count is more than a number.
fn exceeds(count: &Json, number: u64) -> bool {
    count.as_u64() > Some(number)
}

#[test]
fn a_capture_through_dpdk_is_a_capture() {
    let Some(library) = library("a_capture_through_dpdk_is_a_capture") else { return };
    let folder = Folder::new();
    let (reflector, traffic, sent) =
        (example("reflector.o"), example("traffic.pcap"), folder.text("sent.pcap"));
    let device = format!("dpdk:net_pcap0,rx_pcap={traffic},tx_pcap={sent}");
    let (out, pass) =
        (folder.text("passed.pcap"), format!("dpdk:net_pcap1,tx_pcap={}", folder.text("passed.pcap")));
    let count = packets(&traffic).len();
    let output = live_until(Some(library), &[&*reflector, "--port", &device, "--pass", &pass], |counts| {
        counts["packets"] == count
    });
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("net_pcap, in place"), "{}", stderr(&output));
    // The same by our own reader and writer of captures.
    let (wanted_sent, wanted_passed) = (folder.text("sent"), folder.text("passed"));
    let port = format!("pcap:{traffic},{wanted_sent}");
    let wanted = paceline([
        "live",
        &reflector,
        "--port",
        &port,
        "--pass",
        &format!("pcap:,{wanted_passed}"),
        "--json",
    ]);
    let (report, wanted) = (json(&output), wanted.json());
    assert_eq!(report["verdicts"], wanted["verdicts"], "{report:#}");
    assert!(report["ports"].as_array().expect("ports").iter().all(|port| port["copied"] == 0), "{report:#}");
    assert!(!packets(&sent).is_empty());
    assert_eq!(packets(&sent), packets(&wanted_sent));
    assert_eq!(packets(&out), packets(&wanted_passed));
}

#[test]
fn long_packets_are_copied_in_parts() {
    let Some(library) = library("long_packets_are_copied_in_parts") else { return };
    let folder = Folder::new();
    let long: Vec<Vec<u8>> = [60, 3520, 3521, 9000, 1514].iter().map(|&len| vec![len as u8; len]).collect();
    let long: Vec<&[u8]> = long.iter().map(Vec::as_slice).collect();
    let (given, out) = (folder.capture("in.pcap", &long), folder.text("out.pcap"));
    // Out to the ring, which returns the same mbufs, and back.
    let arguments = ["--pass", "dpdk:net_ring0", "--seconds", "0.3", "--json"];
    let output = live(library, &[&["--port", &format!("pcap:{given},{out}")], &arguments[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    check_sums(&report, true);
    assert_eq!(packets(&out), long, "{report:#}");
    // A driver that does not send packets of several parts gets none: they are counted.
    let port = format!("dpdk:net_pcap0,rx_pcap={given}");
    let pass = format!("dpdk:net_pcap1,tx_pcap={out}");
    let output =
        live_until(Some(library), &["--port", &port, "--pass", &pass], |counts| counts["packets"] == 5);
    let report = json(&output);
    check_sums(&report, true);
    assert_eq!((&report["packets"], &report["refused"]), (&5.into(), &2.into()), "{report:#}");
    assert_eq!(packets(&out), [long[0], long[1], long[4]]);
}

#[test]
fn workers_have_queues_of_a_device() {
    let Some(library) = library("workers_have_queues_of_a_device") else { return };
    let port = ["--port", "dpdk:net_null0,size=64", "--workers", "2"];
    for arguments in [
        &port[..],
        &[&port[..], &["--pass", "dpdk:net_null1"]].concat(),
        &[&port[..], &["--pass", "loop:"]].concat(),
    ] {
        let output = live_until(Some(library), arguments, |counts| exceeds(&counts["packets"], 10_000));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        check_sums(&json(&output), arguments.len() > port.len());
    }
    // A device that hands its own mbufs back.
    let ring = ["--port", "gen:rate=1M", "--pass", "dpdk:net_ring0"];
    let output = live_until(Some(library), &ring, |counts| exceeds(&counts["packets"], 10_000));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    check_sums(&json(&output), true);
}

/// Starts the reflector on a device; `options` are further arguments.
fn reflector(library: &str, device: &str, folder: &Folder, options: &[&str]) -> Live {
    let (reflector, control) = (example("reflector.o"), folder.text("control"));
    let arguments = [&*reflector, "--port", device, "--control", &control, "--json"];
    let arguments = [&arguments[..], options].concat();
    Live::start_with(&[("PACELINE_DPDK", library)], &arguments, || Path::new(&control).exists())
}

/// Ends a run of the reflector, which answered this many packets; returns the number of those that were copied.
fn answered(live: &mut Live, least: u64) -> u64 {
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    check_sums(&report, false);
    assert!(report["verdicts"]["tx"].as_u64() >= Some(least), "{report:#}");
    report["ports"][0]["copied"].as_u64().expect("a number")
}

#[test]
fn the_reflector_answers_through_sockets_of_dpdk() {
    const TEST: &str = "the_reflector_answers_through_sockets_of_dpdk";
    let Some(library) = library(TEST) else { return };
    // AF_XDP needs buffers of its own, and takes its program off at the end.
    for (device, options, is_in_place) in [
        ("dpdk:net_af_packet0,iface=va", &[][..], true),
        ("dpdk:net_af_xdp0,iface=va", &["--keep-privileges"], false),
    ] {
        let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
        let folder = Folder::new();
        let mut live = reflector(library, device, &folder, options);
        let Some(host) = Host::new(TEST, "vb") else { return };
        host.run(|| echoes(200));
        // An ARP reply and 200 answers.
        assert_eq!(answered(&mut live, 201) == 0, is_in_place, "{device}");
    }
}

#[test]
fn the_reflector_answers_behind_a_tap_interface_of_dpdk() {
    const TEST: &str = "the_reflector_answers_behind_a_tap_interface_of_dpdk";
    let Some(library) = library(TEST) else { return };
    let Some(()) = namespace(TEST, "") else { return };
    let folder = Folder::new();
    let mut live = reflector(library, "dpdk:net_tap0,iface=dt0", &folder, &[]);
    ip("link set dt0 up").expect("it is up");
    ip("addr add 10.9.0.2/24 dev dt0").expect("an address");
    echoes(50);
    assert_eq!(answered(&mut live, 51), 0);
}

#[test]
fn packets_go_round_between_testpmd_and_us() {
    const TEST: &str = "packets_go_round_between_testpmd_and_us";
    let Some(library) = library(TEST) else { return };
    if Command::new("dpdk-testpmd").arg("--version").output().is_err() {
        return skip(TEST, &"dpdk-testpmd is missing (dpdk-dev)");
    }
    let folder = Folder::new();
    let socket = folder.text("memif");
    let device = format!("net_memif0,role=server,socket={socket},socket-abstract=no");
    let testpmd = Testpmd::start(&device, &folder);
    let port = format!("dpdk:net_memif0,role=client,socket={socket},socket-abstract=no");
    // Packets from testpmd go to the first port.
    let output = live_until(Some(library), &["--port", "gen:rate=100K", "--pass", &port], goes_round);
    drop(testpmd);
    check_round(&output);
}

/// Whether packets of a generator came back from the second port.
fn goes_round(counts: &Json) -> bool {
    exceeds(&counts["ports"][0]["sent"], 500)
}

/// The packets of a generator went out to the second port, and came back.
fn check_round(output: &Output) {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let report = json(output);
    check_sums(&report, true);
    assert!(goes_round(&report), "{report:#}");
    assert_eq!(report["ports"][0]["sent"], report["ports"][1]["received"], "{report:#}");
}

/// DPDK's testpmd, which sends packets back to the device that they come from. It ends with the value.
struct Testpmd(Child);

impl Testpmd {
    /// Starts it with a device, and waits until it forwards: a client that connects before is not connected again.
    fn start(device: &str, folder: &Folder) -> Self {
        let eal = ["-l", "0,1", "--no-huge", "--no-shconf", "--no-pci", "-m", "256", "--no-telemetry"];
        let application = ["--forward-mode=io", "--port-topology=loop", "--total-num-mbufs=4096"];
        let child = Command::new("dpdk-testpmd")
            .args(eal)
            .args(["--vdev", device, "--"])
            .args(application)
            .args(["--stats-period=1"])
            .stdin(Stdio::null())
            .stdout(File::create(folder.path("log")).expect("a file"))
            .stderr(Stdio::null())
            .spawn()
            .expect("testpmd starts");
        within("its counts", || {
            fs::read_to_string(folder.path("log")).is_ok_and(|log| log.contains("Port statistics"))
        });
        Self(child)
    }
}

impl Drop for Testpmd {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.0), Signal::INT);
        // It ends by itself, or not.
        let ends = (0..20).any(|_| {
            thread::sleep(Duration::from_millis(10));
            self.0.try_wait().is_ok_and(|ended| ended.is_some())
        });
        if !ends {
            let _ = self.0.kill();
        }
        let _ = self.0.wait();
    }
}

#[test]
fn our_memif_ports_and_testpmd_meet_in_both_roles() {
    const TEST: &str = "our_memif_ports_and_testpmd_meet_in_both_roles";
    if Command::new("dpdk-testpmd").arg("--version").output().is_err() {
        return skip(TEST, &"dpdk-testpmd is missing (dpdk-dev)");
    }
    let folder = Folder::new();
    let socket = folder.text("memif");
    let device = |role: &str| {
        format!("net_memif0,role={role},id=3,secret=pst,rsize=8,socket={socket},socket-abstract=no")
    };
    let testpmd = Testpmd::start(&device("server"), &folder);
    let port = format!("memif:{socket},id=3,secret=pst");
    let output = live_until(None, &["--port", "gen:rate=100K", "--pass", &port], goes_round);
    drop(testpmd);
    assert!(stderr(&output).contains("client, connected"), "{}", stderr(&output));
    check_round(&output);

    // The other way round, beginning with packets of all sizes. The socket of a server that has ended may be there still.
    let _ = fs::remove_file(&socket);
    let (control, port) = (folder.text("control"), format!("memif:{socket},server,id=3,secret=pst"));
    let traffic = "gen:rate=100K,size=60-1514";
    let arguments = ["--port", traffic, "--pass", &port, "--control", &control, "--json"];
    let mut live = Live::start(&arguments, || Path::new(&control).exists());
    let testpmd = Testpmd::start(&device("client"), &folder);
    within("packets from testpmd", || {
        let status = paceline(["status", "--control", &control, "--json"]).json();
        status["ports"][1]["received"].as_u64() > Some(10_000)
    });
    // Its packets must come back before it ends.
    drop(testpmd);
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    check_sums(&report, true);
    assert!(report["ports"][0]["sent"].as_u64() > Some(10_000), "{report:#}");
}

#[test]
fn our_ports_and_testpmd_meet_on_a_wire() {
    const TEST: &str = "our_ports_and_testpmd_meet_on_a_wire";
    if Command::new("dpdk-testpmd").arg("--version").output().is_err() {
        return skip(TEST, &"dpdk-testpmd is missing (dpdk-dev)");
    }
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let folder = Folder::new();
    let testpmd = Testpmd::start("net_af_packet0,iface=vb", &folder);
    for port in ["xdp:va", "packet:va"] {
        let traffic = "gen:rate=20K,size=60-1514,flows=50";
        check_round(&live_until(None, &["--port", traffic, "--pass", port], goes_round));
    }
    drop(testpmd);
}

#[test]
fn what_dpdk_refuses_is_told() {
    let Some(library) = library("what_dpdk_refuses_is_told") else { return };
    let error = |library: &str, arguments: &[&str]| {
        let output = live(library, &[arguments, &["--seconds", "0.1"]].concat());
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        stderr(&output)
    };
    let missing = error("/nonexistent.so", &["--port", "dpdk:net_null0"]);
    assert!(
        missing.contains("error: --port dpdk:net_null0: DPDK is not available: /nonexistent.so"),
        "{missing}"
    );
    assert!(missing.contains("hint: `make -C dpdk install`"), "{missing}");
    let foreign = error("libc.so.6", &["--port", "dpdk:net_null0"]);
    assert!(foreign.contains("paceline_dpdk_abi"), "{foreign}");
    let unknown = error(library, &["--port", "dpdk:net_nosuch0"]);
    assert!(unknown.contains("error: --port dpdk:net_nosuch0: cannot probe the device"), "{unknown}");
    let twice = error(library, &["--port", "dpdk:net_null0", "--port", "dpdk:net_null0"]);
    assert!(twice.contains("the device is open already"), "{twice}");
}
