//! Redirected packets of live runs: to other interfaces, and to other workers.

use std::path::Path;

use paceline_testkit::namespace::{namespace, veth};
use paceline_testkit::wire::Wire;
use rustix::process::Signal;
use serde_json::Value as Json;

use crate::common::live::{Live, ask, check_sums, json, printed, stderr, within};
use crate::common::wires::{carried, number_of, packet, wire};
use crate::common::{Folder, fixture, packets};

const TX: u8 = 3;
const REDIRECT: u8 = 4;
/// Key for all devices but that of arrival.
const OTHERS: u8 = 255;

/// Packets of this kind, of the lengths that an interface has.
fn some(first: [u8; 2], count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|number| packet(first, number, [60, 590, 1514, 61][number as usize % 4])).collect()
}

fn count(value: &Json) -> u64 {
    value.as_u64().expect("a number")
}

/// Sets elements of a map of a live run.
fn set(control: &str, map: &str, elements: &[(u32, u32)]) {
    for (key, value) in elements {
        printed(&ask(control, &["map", "set", map, &key.to_string(), &value.to_string()]));
    }
}

#[test]
fn a_device_map_joins_two_interfaces_without_a_copy() {
    const TEST: &str = "a_device_map_joins_two_interfaces_without_a_copy";
    let folder = Folder::new();
    let object = format!("{}:to_device", fixture("places.o"));
    for (kinds, workers) in [
        (["xdp:va,native", "xdp:vc,native"], "1"),
        (["xdp:va,generic", "xdp:vc,generic"], "1"),
        (["xdp:va", "xdp:vc"], "2"),
        (["xdp:va", "packet:vc"], "1"),
    ] {
        let Some(()) = namespace(TEST, &(veth("va", "vb") + &veth("vc", "vd"))) else { return };
        let control = folder.text("control");
        let [one, other] = kinds;
        let ports = ["--port", one, "--port", other, "--workers", workers];
        let arguments = [&[&*object][..], &ports, &["--control", &control, "--json"]].concat();
        let mut live = Live::start(&arguments, || Path::new(&control).exists());
        set(&control, "devices", &[(0, number_of("vc")), (1, number_of("va"))]);
        let (vb, vd) = (wire("vb"), wire("vd"));
        let crosses = |from: &Wire, to: &Wire, first| {
            let mut sent = some(first, 200);
            let mut arrived = carried(from, to, &sent);
            if workers != "1" {
                // Packets of different flows may run on different workers.
                sent.sort();
                arrived.sort();
            }
            assert!(arrived == sent, "{kinds:?}, {first:?}: {} of 200", arrived.len());
        };
        crosses(&vb, &vd, [REDIRECT, 0]);
        crosses(&vd, &vb, [REDIRECT, 1]);
        crosses(&vb, &vd, [REDIRECT, OTHERS]);
        crosses(&vb, &vb, [TX, 0]);
        // There is no such element.
        some([REDIRECT, 7], 10).iter().for_each(|packet| vb.send(packet).expect("the wire"));
        let output = live.end(Signal::TERM);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let report = json(&output);
        check_sums(&report, false);
        let ports = report["ports"].as_array().expect("ports");
        assert!(ports.iter().all(|port| port["copied"] == 0), "{report:#}");
        assert_eq!(count(&report["verdicts"]["tx"]), 200, "{report:#}");
        assert_eq!(count(&report["sent"]), 800, "{report:#}");
        // As the kernel's helper: a lookup that fails gives the flags, which abort.
        assert_eq!(count(&report["verdicts"]["redirect"]), 600, "{report:#}");
        assert_eq!(count(&report["verdicts"]["aborted"]), 10, "{report:#}");
    }
}

#[test]
fn a_cpu_map_hands_packets_to_another_worker() {
    const TEST: &str = "a_cpu_map_hands_packets_to_another_worker";
    let Some(()) = namespace(TEST, &veth("va", "vb")) else { return };
    let folder = Folder::new();
    let (control, out) = (folder.text("control"), folder.text("out.pcap"));
    let (object, pass) = (format!("{}:to_cpu", fixture("places.o")), format!("pcap:,{out}"));
    // One flow: it runs on one worker.
    let (port, workers) = (["--port", "xdp:va", "--pass", &pass], ["--workers", "2"]);
    let arguments = [&[&*object][..], &port, &workers, &["--control", &control, "--json"]].concat();
    let mut live = Live::start(&arguments, || Path::new(&control).exists());
    set(&control, "cpus", &[(0, 1024), (1, 1024)]);
    let vb = wire("vb");
    let sent: Vec<_> = (0..400_u32)
        .map(|number| {
            let mut packet = packet([REDIRECT, (number % 2) as u8], 0, 60 + number as usize);
            packet[42..46].copy_from_slice(&number.to_be_bytes());
            packet
        })
        .collect();
    sent.iter().for_each(|packet| vb.send(packet).expect("the wire takes a packet"));
    let passed = || {
        let status: Json =
            serde_json::from_slice(&ask(&control, &["status", "--json"]).stdout).expect("JSON");
        count(&status["verdicts"]["pass"])
    };
    within("passed packets", || passed() == 400);
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    // Each has a verdict of the program, and one where it arrives.
    assert_eq!(count(&report["verdicts"]["redirect"]), 400, "{report:#}");
    assert_eq!(count(&report["packets"]), 800, "{report:#}");
    assert_eq!(count(&report["ports"][0]["received"]), 400, "{report:#}");
    assert_eq!((count(&report["ports"][1]["sent"]), count(&report["refused"])), (400, 0), "{report:#}");
    let mut workers: Vec<_> = (0..2).map(|worker| count(&report["workers"][worker]["packets"])).collect();
    workers.sort_unstable();
    assert_eq!(workers, [200, 600], "the worker of the flow runs all, and half of them arrive at each");
    // The packets are whole, and those of each way in order.
    let passed = packets(&out);
    for key in 0..2 {
        let of = |all: &[Vec<u8>]| -> Vec<_> { all.iter().filter(|one| one[1] == key).cloned().collect() };
        assert!(of(&passed) == of(&sent), "worker {key}: {} of 200", of(&passed).len());
    }
}
