//! Interfaces that go down and come up, carry long packets, get more than they can take, and have queues of others.

use std::path::Path;
use std::thread;
use std::time::Duration;

use paceline_testkit::namespace::{ip, namespace, veth};
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::common::live::{Live, ask, check_sums, json, stderr, within};
use crate::common::wires::{arrivals, carried, number as numbered, packet, wire};
use crate::common::{Folder, fixture};

const DROP: u8 = 1;
const TX: u8 = 3;
/// Number of a packet that no other has.
const PROBE: u32 = 1 << 20;

fn number(value: &Json) -> u64 {
    value.as_u64().expect("a number")
}

/// Ends a run, which must have worked; its counts.
fn counts(live: &mut Live) -> Json {
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    check_sums(&report, false);
    report
}

#[test]
fn traffic_goes_on_when_an_interface_comes_up_again() {
    const TEST: &str = "traffic_goes_on_when_an_interface_comes_up_again";
    let (folder, verdicts) = (Folder::new(), fixture("verdicts.o"));
    for port in ["xdp:va,native", "xdp:va,generic", "packet:va"] {
        let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
        let control = folder.text("control");
        let arguments = [&*verdicts, "--port", port, "--control", &control, "--json"];
        let mut live = Live::start(&arguments, || Path::new(&control).exists());
        let vb = wire("vb");
        let sent: Vec<_> = (0..128).map(|number| packet([TX, 0], number, 100)).collect();
        assert!(carried(&vb, &vb, &sent) == sent, "{port}");
        ip("link set va down").expect("it is down");
        for packet in &sent[..16] {
            // There is no carrier.
            let _ = vb.send(packet);
            thread::sleep(Duration::from_millis(1));
        }
        let status = ask(&control, &["status"]);
        assert!(status.status.success(), "{port}: {}", stderr(&status));
        ip("link set va up").expect("it is up");
        // Its answers may come later.
        let probe = packet([TX, 0], PROBE, 100);
        let pause = Duration::from_millis(100);
        let is_probe = |packet: &[u8]| numbered(packet) == Some(PROBE);
        within("an answer", || vb.send(&probe).is_ok() && !arrivals(&vb, 1, pause, is_probe).is_empty());
        assert!(carried(&vb, &vb, &sent) == sent, "{port}, up again");
        assert!(number(&counts(&mut live)["verdicts"]["tx"]) > 256, "{port}");
    }
}

#[test]
fn long_packets_come_and_go() {
    const TEST: &str = "long_packets_come_and_go";
    let script = veth("va", "vb") + "link set va mtu 9000\nlink set vb mtu 9000";
    let lengths = [60, 3519, 3520, 3521, 9014, 1514, 7041];
    let sent: Vec<_> =
        (0..140).map(|number| packet([TX, 0], number, lengths[number as usize % lengths.len()])).collect();
    let (folder, verdicts) = (Folder::new(), fixture("verdicts.o"));
    for port in ["xdp:va,native,multi-buffer", "xdp:va,generic,multi-buffer", "packet:va"] {
        let Some(()) = namespace(TEST, &script) else { return };
        let control = folder.text("control");
        let arguments = [&*verdicts, "--port", port, "--control", &control, "--json"];
        let mut live = Live::start(&arguments, || Path::new(&control).exists());
        let vb = wire("vb");
        let arrived = carried(&vb, &vb, &sent);
        let report = counts(&mut live);
        assert!(arrived == sent, "{port}: {} of {}: {report:#}", arrived.len(), sent.len());
        // Packets of several frames are copied, the others are not.
        let copied = if port.starts_with("xdp:") { 60 } else { 0 };
        assert_eq!(report["ports"][0]["copied"], copied, "{port}: {report:#}");
    }
}

#[test]
fn packets_that_a_queue_has_no_room_for_are_counted() {
    const TEST: &str = "packets_that_a_queue_has_no_room_for_are_counted";
    const SENT: u32 = 5000;
    let (folder, verdicts) = (Folder::new(), fixture("verdicts.o"));
    for port in ["rate:500+xdp:va,native", "rate:500+xdp:va,generic", "rate:500+packet:va"] {
        let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
        let control = folder.text("control");
        let arguments = [&*verdicts, "--port", port, "--frames", "512", "--control", &control, "--json"];
        let mut live = Live::start(&arguments, || Path::new(&control).exists());
        let vb = wire("vb");
        for number in 0..SENT {
            vb.send(&packet([DROP, 0], number, 1000)).expect("the wire takes a packet");
            if number % 100 == 0 {
                // The peer's own queue of packets is short.
                thread::sleep(Duration::from_millis(1));
            }
        }
        let report = counts(&mut live);
        let (received, dropped) =
            (number(&report["ports"][0]["received"]), number(&report["ports"][0]["dropped"]));
        assert!(received > 100 && dropped > 1000, "{port}: {report:#}");
        assert_eq!(received + dropped, u64::from(SENT), "{port}: {report:#}");
        assert_eq!(number(&report["verdicts"]["drop"]), received, "{port}: {report:#}");
    }
}

#[test]
fn packets_of_other_queues_reach_the_host() {
    const TEST: &str = "packets_of_other_queues_reach_the_host";
    let script = "link add va numrxqueues 2 numtxqueues 2 type veth peer name vb numrxqueues 2 numtxqueues 2
                  link set va up
                  link set vb up";
    let (folder, verdicts) = (Folder::new(), fixture("verdicts.o"));
    for mode in ["native", "generic"] {
        let Some(()) = namespace(TEST, script) else { return };
        let port = format!("xdp:va@1,{mode}");
        let control = folder.text("control");
        let arguments = [&*verdicts, "--port", &port, "--control", &control, "--json"];
        let mut live = Live::start(&arguments, || Path::new(&control).exists());
        let (va, vb) = (wire("va"), wire("vb"));
        // Many flows, which the peer spreads over its queues.
        let sent: Vec<_> = (0..128).map(|number| packet([DROP, 0], number, 100)).collect();
        sent.iter().for_each(|packet| vb.send(packet).expect("the wire takes a packet"));
        let (mut host, mut ours) = (0, 0);
        within("all packets", || {
            host += std::iter::from_fn(|| va.receive()).filter(|packet| numbered(packet).is_some()).count()
                as u64;
            ours = number(&json(&ask(&control, &["status", "--json"]))["verdicts"]["drop"]);
            ours + host == 128
        });
        let report = counts(&mut live);
        // In generic mode the kernel knows one queue of such an interface.
        assert!(host > 0 && (ours > 0 || mode == "generic"), "{mode}: {host} came to the host: {report:#}");
        assert_eq!(number(&report["verdicts"]["drop"]), ours, "{mode}: {report:#}");
    }
}
