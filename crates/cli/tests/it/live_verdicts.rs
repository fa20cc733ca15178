//! Every verdict on TAP interfaces and packet sockets, with one worker and with several.

use std::path::Path;

use paceline_testkit::namespace::{ip, namespace, veth};
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::common::live::{Live, check_sums, json, stderr};
use crate::common::wires::{carried, number, packet, wire};
use crate::common::{Folder, fixture, packets};

const ABORTED: u8 = 0;
const DROP: u8 = 1;
const PASS: u8 = 2;
const TX: u8 = 3;
/// Packets of each verdict.
const COUNT: u32 = 320;

/// Packets of a verdict, of many flows.
fn some(verdict: u8) -> Vec<Vec<u8>> {
    (0..COUNT).map(|number| packet([verdict, 0], number, [60, 1514, 333][number as usize % 3])).collect()
}

/// In the order of their numbers: packets of different flows overtake each other.
fn sorted(mut packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    packets.sort_by_key(|packet| number(packet));
    packets
}

/// Runs a port with a number of workers: packets of each verdict arrive at it from the wire of an interface.
fn verdicts(port: &str, workers: &str, interface: &str) -> Json {
    let folder = Folder::new();
    let (control, out) = (folder.text("control"), folder.text("out.pcap"));
    let (object, pass) = (fixture("verdicts.o"), format!("pcap:,{out}"));
    let arguments = [&*object, "--port", port, "--pass", &pass, "--workers", workers];
    let arguments = [&arguments[..], &["--control", &control, "--json"]].concat();
    let mut live = Live::start(&arguments, || Path::new(&control).exists());
    ip(&format!("link set {interface} up")).expect("it is up");
    let wire = wire(interface);
    assert!(sorted(carried(&wire, &wire, &some(TX))) == some(TX), "{port} with {workers} workers: TX");
    for verdict in [DROP, PASS, ABORTED] {
        let sent = some(verdict);
        sent.iter().for_each(|packet| wire.send(packet).expect("the wire takes a packet"));
    }
    // What has arrived runs before the end.
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    check_sums(&report, true);
    assert_eq!(report["ports"][0]["sent"], COUNT, "nothing else comes back: {report:#}");
    for verdict in ["tx", "drop", "pass", "aborted"] {
        assert_eq!(report["verdicts"][verdict], COUNT, "{port} with {workers} workers: {report:#}");
    }
    assert!(sorted(packets(&out)) == some(PASS), "{port} with {workers} workers: PASS");
    report
}

/// Each of two workers has packets of some flows.
fn check_shares(report: &Json) {
    let of = |worker: usize| report["workers"][worker]["packets"].as_u64().expect("a number");
    assert!(of(0) > 0 && of(1) > 0, "{report:#}");
}

#[test]
fn a_tap_port_has_every_verdict() {
    let Some(()) = namespace("a_tap_port_has_every_verdict", "") else { return };
    verdicts("tap:pt0", "1", "pt0");
    // Two queues.
    check_shares(&verdicts("tap:pt0", "2", "pt0"));
}

#[test]
fn a_packet_socket_has_every_verdict() {
    let Some(()) = namespace("a_packet_socket_has_every_verdict", &veth("va", "vb")) else { return };
    verdicts("packet:va", "1", "vb");
    // The kernel spreads flows over two sockets.
    check_shares(&verdicts("packet:va", "2", "vb"));
}
