//! The example balancer between real hosts: TCP transfers through it, over virtual wires and over a TAP interface.
//!
//! Client, backend and balancer are on one segment, a bridge. The client sends to the virtual address by the balancer's MAC address, the
//! balancer sends the packets on to the backend's, and the backend answers the client itself.

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use paceline_testkit::namespace::{ip, namespace};
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::common::host::Host;
use crate::common::live::{Live, check_sums, json, stderr, within};
use crate::common::{Folder, example, has_tool, paceline};

const VIP: &str = "192.0.2.10";
const BACKEND: [u8; 6] = [2, 0, 0, 0, 1, 1];
/// Ports of the service: of iperf3 and of a web server.
const PORTS: [u16; 2] = [5201, 8080];
/// Length of the web server's page.
const PAGE: usize = 3_000_000;

/// A bridge with an interface for each host, whose other end the host has.
const SEGMENT: &str = "
    link add br0 type bridge
    link set br0 up
    link add client type veth peer name to-client
    link add backend type veth peer name to-backend
    link set to-client master br0 up
    link set to-backend master br0 up
    link set backend address 02:00:00:00:01:01
";

/// The balancer's interface on it.
const BALANCER: &str = "
    link add balancer type veth peer name to-balancer
    link set to-balancer master br0 up
    link set balancer up
";

/// The MAC address of an interface.
fn mac(interface: &str) -> String {
    let shown =
        Command::new("ip").args(["-j", "link", "show", "dev", interface]).output().expect("`ip` runs");
    let shown: Json =
        serde_json::from_slice(&shown.stdout).unwrap_or_else(|error| panic!("{interface}: {error}"));
    shown[0]["address"].as_str().expect("an address").to_owned()
}

/// Sets up the service: TCP to the ports of the virtual address goes to the only backend.
fn configure(control: &str) {
    let service = r#"{"mode": 0, "first_backend": 16, "backends": 1}"#;
    let backend = format!(r#"{{"mac": {BACKEND:?}, "enabled": 1, "reserved": 0, "address": [0, 0, 0, 0]}}"#);
    let set = |map: &str, key: &str, value: &str| {
        paceline(["map", "set", map, key, value, "--control", control]).ok();
    };
    for port in PORTS {
        let vip = format!(r#"{{"address": [192, 0, 2, 10], "port": {port}, "protocol": 6, "reserved": 0}}"#);
        set("vips", &vip, service);
    }
    set("backends", "16", &backend);
}

#[test]
fn tcp_goes_through_the_balancer() {
    const TEST: &str = "tcp_goes_through_the_balancer";
    let Some(()) = namespace(TEST, &format!("{SEGMENT}{BALANCER}")) else { return };
    let (Some(client), Some(backend)) = (Host::new(TEST, "client"), Host::new(TEST, "backend")) else {
        return;
    };
    for port in ["xdp:balancer,native", "xdp:balancer,generic"] {
        balanced(TEST, port, &client, &backend, || mac("balancer"));
    }
}

#[test]
fn tcp_goes_through_the_balancer_behind_a_tap_interface() {
    const TEST: &str = "tcp_goes_through_the_balancer_behind_a_tap_interface";
    let Some(()) = namespace(TEST, SEGMENT) else { return };
    let (Some(client), Some(backend)) = (Host::new(TEST, "client"), Host::new(TEST, "backend")) else {
        return;
    };
    balanced(TEST, "tap:balancer", &client, &backend, || {
        ip("link set balancer master br0 up").expect("a port of the bridge");
        // The address of the host behind the interface: the bridge floods what is for a host that it does not know.
        "02:00:00:00:02:02".to_owned()
    });
}

/// Transfers through the balancer on a port; `address` gives its MAC address once it runs.
fn balanced(test: &str, port: &str, client: &Host, backend: &Host, address: impl FnOnce() -> String) {
    let folder = Folder::new();
    let (balancer, control) = (example("balancer.o"), folder.text("control"));
    let arguments = [&*balancer, "--port", port, "--control", &control, "--json"];
    let mut live = Live::start(&arguments, || Path::new(&control).exists());
    configure(&control);
    give_addresses(client, backend, address());
    let downloaded = download(client, backend);
    let report = iperf(test, client, backend);
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let counts = json(&output);
    check_sums(&counts, false);
    assert_eq!(counts["ports"][0]["copied"], 0, "{counts:#}");
    assert_eq!(downloaded, PAGE, "{port}: {counts:#}");
    let Some(report) = report else { return };
    let received = report["end"]["sum_received"]["bytes"].as_u64();
    assert!(received > Some(1_000_000), "{port}: {report:#}{counts:#}");
    // Each packet of the client's went through: more than one in a full segment's bytes.
    assert!(counts["verdicts"]["tx"].as_u64() > received.map(|bytes| bytes / 1460), "{counts:#}");
}

/// The client sends to the virtual address by the balancer's MAC address; the backend has it on `lo`.
fn give_addresses(client: &Host, backend: &Host, balancer: String) {
    client.run(move || {
        ip(&format!("route replace {VIP}/32 dev client")).expect("a route");
        ip(&format!("neigh replace {VIP} lladdr {balancer} dev client")).expect("a neighbor");
    });
    backend.run(|| {
        // 10.9.0.2 is the client's.
        let _ = ip("addr del 10.9.0.2/24 dev backend");
        ip("addr replace 10.9.0.3/24 dev backend").expect("an address");
        ip(&format!("addr replace {VIP}/32 dev lo")).expect("the virtual address");
        ip("link set lo up").expect("it is up");
    });
}

/// Length of the page that the client gets from the backend's web server: by curl, or without it as curl asks.
fn download(client: &Host, backend: &Host) -> usize {
    let listener = backend.run(|| TcpListener::bind((VIP, PORTS[1])).expect("the virtual address"));
    let server = thread::spawn(move || {
        let (mut connection, _) = listener.accept().expect("a connection");
        let _ = connection.read(&mut [0; 1000]).expect("a request");
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {PAGE}\r\nConnection: close\r\n\r\n");
        connection.write_all(&[head.as_bytes(), &vec![b'x'; PAGE]].concat()).expect("an answer");
    });
    let page = client.run(|| {
        let url = format!("http://{VIP}:{}/", PORTS[1]);
        match Command::new("curl").args(["-sS", "--max-time", "20", &url]).output() {
            Ok(curl) => curl.stdout.len(),
            Err(_) => {
                let mut connection = TcpStream::connect((VIP, PORTS[1])).expect("a connection");
                connection.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("a request");
                let mut answer = Vec::new();
                connection.read_to_end(&mut answer).expect("an answer");
                answer.iter().filter(|&&byte| byte == b'x').count()
            }
        }
    });
    server.join().expect("the server");
    page
}

/// A second of TCP from the client to the virtual address; iperf3's report, if it is there.
fn iperf(test: &str, client: &Host, backend: &Host) -> Option<Json> {
    if !has_tool(test, "iperf3") {
        return None;
    }
    let mut server = backend.run(|| {
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
    let _ = server.kill();
    let _ = server.wait();
    Some(serde_json::from_slice(&report).expect("JSON"))
}
