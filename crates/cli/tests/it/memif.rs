//! `--port memif:`, with another instance on the other side.

use std::path::Path;

use rustix::process::Signal;
use serde_json::Value as Json;

use crate::common::live::{Live, check_sums, json, stderr, within};
use crate::common::{Folder, command, example, paceline, packets};

/// A live run with a control socket.
fn started(arguments: &[&str], control: &str) -> Live {
    let arguments = [arguments, &["--control", control, "--json"]].concat();
    Live::start(&arguments, || Path::new(control).exists())
}

fn status(control: &str) -> Json {
    paceline(["status", "--control", control, "--json"]).json()
}

fn number(value: &Json) -> u64 {
    value.as_u64().expect("a number")
}

#[test]
fn a_capture_through_memif_is_a_capture() {
    let folder = Folder::new();
    let (socket, control, out) = (folder.text("memif"), folder.text("control"), folder.text("out.pcap"));
    // The example firewall passes a packet again that it passed once.
    let (traffic, wanted) = (example("traffic.pcap"), folder.text("wanted.pcap"));
    let (port, pass) = (format!("pcap:{traffic}"), format!("pcap:,{wanted}"));
    paceline(["live", "--port", &port, "--pass", &pass]).ok();
    let wanted = packets(&wanted);
    for (ours, theirs) in [("server", "client"), ("server,queues=2", "queues=1,ring=4096,buffer=128")] {
        let (port, pass) = (format!("memif:{socket},{ours}"), format!("pcap:,{out}"));
        let mut server = started(&["--port", &port, "--pass", &pass], &control);
        let (port, pass) = (format!("rate:20K+pcap:{traffic}"), format!("memif:{socket},{theirs}"));
        let output = command().args(["live", "--port", &port, "--pass", &pass, "--json"]).output();
        let output = output.expect("the command starts");
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(stderr(&output).contains("client, connected"), "{}", stderr(&output));
        let report = json(&output);
        check_sums(&report, true);
        let count = wanted.len() as u64;
        assert_eq!(number(&report["ports"][1]["sent"]), count, "{report:#}");
        within("all packets", || number(&status(&control)["packets"]) == count);
        check_sums(&json(&server.end(Signal::TERM)), true);
        assert_eq!(packets(&out), wanted);
        assert!(!Path::new(&socket).exists(), "the socket ends with the server");
    }
}

#[test]
fn packets_come_back_also_when_a_side_was_killed() {
    let folder = Folder::new();
    let socket = folder.text("memif");
    let (one, other) = (folder.text("one"), folder.text("other"));
    // Without privileges, and with the filter of system calls.
    let port = format!("memif:{socket}");
    let mut client = started(&["--port", "gen:rate=50K", "--pass", &port], &one);
    let back = || number(&status(&one)["ports"][1]["received"]);
    let mut before = 0;
    for workers in ["1", "2"] {
        let port = format!("memif:{socket},server");
        let arguments = ["--port", &*port, "--pass", "loop:", "--workers", workers];
        let mut server = started(&arguments, &other);
        within("packets", || back() > before + 1000);
        // Nothing is told to the client.
        drop(server.end(Signal::KILL));
        within("the end of the connection", || {
            before = back();
            std::thread::sleep(std::time::Duration::from_millis(50));
            back() == before
        });
    }
    let output = client.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("client, waiting for a server"), "{}", stderr(&output));
    let report = json(&output);
    check_sums(&report, true);
    assert!(number(&report["refused"]) > 0, "packets without a peer are refused: {report:#}");
}

#[test]
fn what_is_wrong_with_a_memif_port_is_said() {
    let folder = Folder::new();
    let (socket, control) = (folder.text("memif"), folder.text("control"));
    let port = format!("memif:{socket},server,secret=right");
    let _server = started(&["--port", &port], &control);
    let fails = |port: &str, parts: &[&str]| {
        paceline(["live", "--port", port, "--seconds", "0.1"]).fails(1, &format!("--port {port}: "), parts);
    };
    let client = format!("memif:{socket},secret=wrong");
    fails(&client, &["refuses the connection: incorrect secret", "hint: id and secret must be"]);
    fails(&format!("memif:{socket},id=2"), &["refuses the connection: ID not found"]);
    fails(&port, &["is in use by another program"]);
    fails("memif:/nonexistent/folder/a.sock,server", &["No such file or directory"]);
    fails(&format!("memif:/{}", "x".repeat(200)), &["socket `/xxx", "File name too long"]);
    fails("memif:@big,queues=256,ring=16384,buffer=65536", &["is too large: it takes fewer queues"]);
}
