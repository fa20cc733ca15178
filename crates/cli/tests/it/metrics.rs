//! Metrics of a live run, over HTTP.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::Signal;

use crate::common::hostile::{mutated, requests};
use crate::common::live::{Live, PATIENCE, json, stderr, within};
use crate::common::{Folder, command};

const SCRAPE: &[u8] = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

/// A run with a port, and the address of its metrics.
fn served(folder: &Folder, port: &str) -> (Live, SocketAddr) {
    let control = folder.text("control");
    // Another process may take the port in between, which this run then reports.
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let address = free.expect("a free port");
    let metrics = address.port().to_string();
    let arguments =
        ["--port", port, "--port", "null:", "--metrics", &metrics, "--json", "--control", &control];
    (Live::start(&arguments, || std::fs::exists(&control).is_ok_and(|exists| exists)), address)
}

/// Value of a metric in an answer.
fn value(answer: &str, name: &str) -> f64 {
    let line = answer.lines().find_map(|line| line.strip_prefix(name)).expect("a sample");
    line.trim().parse().expect("a number")
}

/// Answer of a web server to a request.
fn http(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.write_all(request).expect("it is sent");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8(answer).expect("text")
}

#[test]
fn metrics_are_served() {
    let folder = Folder::new();
    let (mut live, address) = served(&folder, "gen:rate=1M");
    let scrape = || http(address, SCRAPE);
    let first = scrape();
    assert!(
        first.starts_with("HTTP/1.1 200 OK\r\n") && first.contains("text/plain; version=0.0.4"),
        "{first}"
    );
    const RECEIVED: &str = "paceline_port_received_total{port=\"gen:rate=1M\"}";
    within("packets", || value(&scrape(), RECEIVED) > value(&first, RECEIVED));
    assert_eq!(value(&first, "paceline_port_sent_total{port=\"null:\"}"), 0.0);
    for (request, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "404"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
        (b"\x16\x03\x01 hello\r\n\r\n", "400"),
        (&[&b"GET / HTTP/1.1\r\nx: "[..], &[b'y'; 10_000]].concat(), "431"),
    ] {
        let answer = http(address, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")) || answer.is_empty(), "{answer}");
    }
    let output = live.end(Signal::TERM);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // A port that is in use.
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("its address").to_string();
    let output =
        command().args(["live", "--port", "null:", "--metrics", &address]).output().expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains(&format!("--metrics {address}: another program listens there")),
        "{}",
        stderr(&output)
    );
}

#[test]
fn hostile_scrapers_stop_no_traffic() {
    /// Answers to what is a request, and to what is none.
    const CODES: [&str; 7] = ["200", "400", "404", "405", "408", "431", "503"];
    let (count, folder) = (requests(), Folder::new());
    let (mut live, address) = served(&folder, "gen:rate=10K");
    let scrapes = [
        SCRAPE,
        b"GET /metrics?a=b HTTP/1.0\r\nAccept: text/plain\r\nAccept-Encoding: gzip\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello",
        b"GET / HTTP/1.1\r\n\r\n",
    ];
    let mut rng = fastrand::Rng::with_seed(1);
    let connect = || TcpStream::connect(address).ok();
    // Silent clients, which take all connections for a while.
    let mut silent: Vec<_> = (0..20).filter_map(|_| connect()).collect();
    let mut answers = 0;
    for number in 0..count {
        if number == count / 20 {
            silent.clear();
        }
        let Some(mut stream) = connect() else { continue };
        let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
        let request = mutated(&mut rng, &scrapes);
        let _ = stream.write_all(&request);
        let mut answer = [0; 12];
        let is_whole = request.windows(4).any(|end| end == b"\r\n\r\n");
        if is_whole && silent.is_empty() && stream.read_exact(&mut answer).is_ok() {
            let line = String::from_utf8_lossy(&answer).into_owned();
            let code = line.strip_prefix("HTTP/1.1 ").unwrap_or_default();
            assert!(CODES.contains(&code), "{line} to {}", request.escape_ascii());
            answers += 1;
        }
    }
    drop(silent);
    assert!(answers > count / 10, "{answers} answers");
    const RECEIVED: &str = "paceline_port_received_total{port=\"gen:rate=10K\"}";
    let received = || {
        let answer = http(address, SCRAPE);
        answer.starts_with("HTTP/1.1 200 ").then(|| value(&answer, RECEIVED))
    };
    let mut before = None;
    within("an answer", || {
        before = received();
        before.is_some()
    });
    within("traffic", || received() > before);
    let output = live.end(Signal::INT);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let report = json(&output);
    let seconds = report["seconds"].as_f64().expect("a time");
    let packets = report["packets"].as_u64().expect("a number") as f64;
    assert!(packets > seconds * 10_000.0 * 0.25, "{packets} packets in {seconds} s at 10,000 a second");
}
