//! The example balancer between real hosts: a TCP transfer through it.
//!
//! Client, backend and balancer are on one segment, a bridge. The client sends to the virtual address by the balancer's MAC address, the
//! balancer sends the packets on to the backend's, and the backend answers the client itself.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use paceline_testkit::namespace::{ip, namespace};
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::common::host::Host;
use crate::common::live::{Live, check_sums, json, stderr, within};
use crate::common::{Folder, example, paceline, skip};

const VIP: &str = "192.0.2.10";
const BACKEND: [u8; 6] = [2, 0, 0, 0, 1, 1];

/// A bridge with an interface for each host, whose other end the host has.
const SEGMENT: &str = "
    link add br0 type bridge
    link set br0 up
    link add client type veth peer name to-client
    link add backend type veth peer name to-backend
    link add balancer type veth peer name to-balancer
    link set to-client master br0 up
    link set to-backend master br0 up
    link set to-balancer master br0 up
    link set balancer up
    link set backend address 02:00:00:00:01:01
";

/// The MAC address of an interface.
fn mac(interface: &str) -> String {
    let shown =
        Command::new("ip").args(["-j", "link", "show", "dev", interface]).output().expect("`ip` runs");
    let shown: Json =
        serde_json::from_slice(&shown.stdout).unwrap_or_else(|error| panic!("{interface}: {error}"));
    shown[0]["address"].as_str().expect("an address").to_owned()
}

/// Sets up the service: TCP to port 5201 of the virtual address goes to the only backend.
fn configure(control: &str) {
    let vip = r#"{"address": [192, 0, 2, 10], "port": 5201, "protocol": 6, "reserved": 0}"#;
    let service = r#"{"mode": 0, "first_backend": 16, "backends": 1}"#;
    let backend = format!(r#"{{"mac": {BACKEND:?}, "enabled": 1, "reserved": 0, "address": [0, 0, 0, 0]}}"#);
    for (map, key, value) in [("vips", vip, service), ("backends", "16", &backend)] {
        paceline(["map", "set", map, key, value, "--control", control]).ok();
    }
}

#[test]
fn iperf_transfers_through_the_balancer() {
    const TEST: &str = "iperf_transfers_through_the_balancer";
    if let Err(error) = Command::new("iperf3").arg("--version").output() {
        return skip(TEST, &format!("iperf3: {error}"));
    }
    let Some(()) = namespace(TEST, SEGMENT) else { return };
    let (Some(client), Some(backend)) = (Host::new(TEST, "client"), Host::new(TEST, "backend")) else {
        return;
    };
    let folder = Folder::new();
    for mode in ["native", "generic"] {
        let control = folder.text(mode);
        let (balancer, port) = (example("balancer.o"), format!("xdp:balancer,{mode}"));
        let arguments = [&*balancer, "--port", &port, "--control", &control, "--json"];
        let mut live = Live::start(&arguments, || Path::new(&control).exists());
        configure(&control);
        let report = transfer(&client, &backend, &mac("balancer"));
        let output = live.end(Signal::TERM);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let counts = json(&output);
        check_sums(&counts, false);
        let received = report["end"]["sum_received"]["bytes"].as_u64();
        assert!(received > Some(1_000_000), "{mode}: {report:#}{counts:#}");
        // Each packet of the client's went through: more than one in a full segment's bytes.
        assert!(counts["verdicts"]["tx"].as_u64() > received.map(|bytes| bytes / 1460), "{counts:#}");
        assert_eq!(counts["ports"][0]["copied"], 0, "{counts:#}");
    }
}

/// A second of TCP from the client to the virtual address; iperf3's report.
fn transfer(client: &Host, backend: &Host, balancer: &str) -> Json {
    let balancer = balancer.to_owned();
    client.run(move || {
        ip(&format!("route replace {VIP}/32 dev client")).expect("a route");
        ip(&format!("neigh replace {VIP} lladdr {balancer} dev client")).expect("a neighbor");
    });
    let server = backend.run(|| {
        // The virtual address on `lo`; 10.9.0.2 is the client's.
        let _ = ip("addr del 10.9.0.2/24 dev backend");
        ip("addr replace 10.9.0.3/24 dev backend").expect("an address");
        ip(&format!("addr replace {VIP}/32 dev lo")).expect("the virtual address");
        ip("link set lo up").expect("it is up");
        let mut server = Command::new("iperf3");
        let server = server.args(["-s", "-1", "-B", VIP]).stdout(Stdio::null()).spawn().expect("iperf3");
        within("the server", || {
            let sockets = fs::read_to_string("/proc/thread-self/net/tcp").unwrap_or_default();
            // Port 5201.
            sockets.contains(":1451 ")
        });
        server
    });
    let report = client.run(|| {
        let arguments = ["-c", VIP, "-t", "1", "-J", "--connect-timeout", "5000"];
        Command::new("iperf3").args(arguments).output().expect("iperf3 runs").stdout
    });
    let mut server = server;
    let _ = server.kill();
    let _ = server.wait();
    serde_json::from_slice(&report).expect("JSON")
}
