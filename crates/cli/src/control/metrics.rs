//! Metrics of a live run for Prometheus: HTTP on an address that is by default this machine's own.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::str::FromStr;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread::Scope;
use std::time::Instant;

use serde_json::Value as Json;

use super::connection::{LOOK, PATIENCE, Place, accept};
use super::counts::{self, Count, PORT, WORKER};
use super::error::ControlError;
use super::question::{Answer, Question, ask};
use super::request::Request;

/// Maximum length of the head of a request in bytes.
const MAX_HEAD: usize = 8192;
/// Maximum number of its header fields.
const MAX_FIELDS: usize = 64;

/// Type of the text (Prometheus, "Exposition formats").
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where metrics are served: `PORT`, `ADDRESS:PORT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MetricsAddress(SocketAddr);

impl FromStr for MetricsAddress {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let port = text.parse().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
        port.or_else(|_| text.parse())
            .map(Self)
            .map_err(|_| "it must be PORT, ADDRESS:PORT or [ADDRESS]:PORT")
    }
}

/// The server of metrics.
pub(crate) struct MetricsServer(TcpListener);

impl MetricsServer {
    /// Opens the port.
    pub(crate) fn bind(MetricsAddress(address): MetricsAddress) -> Result<Self, ControlError> {
        let failed = |cause| ControlError::Metrics { address, cause };
        let listener = TcpListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self(listener))
    }

    /// Accepts connections until `stop` is set; requests for counts go to `questions`.
    pub(crate) fn start<'scope, 'env, Q: From<Question> + Send + 'env>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        questions: &Sender<Q>,
        stop: &'env AtomicBool,
    ) -> Result<(), ControlError> {
        let questions = questions.clone();
        let status = move || match ask(Request::Status { follow: false }, &questions)? {
            Answer::Value(status) => Ok(status),
            Answer::Stream(_) => Err("the status is no value".to_owned()),
        };
        let serve = move |stream, place| drop(serve(stream, &place, &status));
        accept(scope, stop, || Ok(self.0.accept()?.0), serve)
    }
}

/// Answers the request of a connection, and closes it.
fn serve(mut stream: TcpStream, place: &Place, status: &dyn Fn() -> Result<Json, String>) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(LOOK))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let (code, text) = if place.is_over() {
        ("503 Service Unavailable", "too many connections\n".to_owned())
    } else {
        match path(&read_head(&mut stream)?) {
            Ok("/metrics") => match status() {
                Ok(status) => ("200 OK", exposition(&status)),
                Err(error) => ("503 Service Unavailable", error + "\n"),
            },
            Ok(_) => ("404 Not Found", "metrics are at /metrics\n".to_owned()),
            Err(refusal) => (refusal, String::new()),
        }
    };
    write!(stream, "HTTP/1.1 {code}\r\nContent-Type: {TEXT}\r\n")?;
    write!(stream, "Content-Length: {}\r\nConnection: close\r\n\r\n{text}", text.len())
}

/// The head of a request, as far as it arrives in time.
fn read_head(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let (start, mut head, mut part) = (Instant::now(), Vec::new(), [0; 1024]);
    while !head.windows(4).any(|end| end == b"\r\n\r\n")
        && head.len() < MAX_HEAD
        && start.elapsed() < PATIENCE
    {
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(len) => head.extend_from_slice(&part[..len]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(head)
}

/// The path of a request without its query; or the status that refuses the request.
fn path(head: &[u8]) -> Result<&str, &'static str> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    match request.parse(head) {
        Ok(httparse::Status::Complete(_)) => {}
        Ok(httparse::Status::Partial) if head.len() >= MAX_HEAD => {
            return Err("431 Request Header Fields Too Large");
        }
        Ok(httparse::Status::Partial) => return Err("408 Request Timeout"),
        Err(_) => return Err("400 Bad Request"),
    }
    if request.method != Some("GET") {
        return Err("405 Method Not Allowed");
    }
    Ok(request.path.unwrap_or_default().split('?').next().unwrap_or_default())
}

/// The counts in the text format of Prometheus.
fn exposition(status: &Json) -> String {
    let mut text = String::new();
    let mut metric = |name: &str, kind: &str, help: &str, samples: &[(String, String)]| {
        let _ = writeln!(text, "# HELP paceline_{name} {help}.\n# TYPE paceline_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "paceline_{name}{labels} {value}");
        }
    };
    let one = |value: &Json| [(String::new(), value.to_string())];
    metric("uptime_seconds", "gauge", "Time since the ports were opened", &one(&status["seconds"]));
    metric("chain_revision", "gauge", "Revision of the chain", &one(&status["revision"]));
    let verdicts = status["verdicts"].as_object().into_iter().flatten();
    let verdicts = verdicts.map(|(name, count)| (format!("{{verdict=\"{name}\"}}"), count.to_string()));
    metric("packets_total", "counter", "Packets by verdict", &verdicts.collect::<Vec<_>>());
    for count in counts::run() {
        metric(&format!("{}_total", count.name), "counter", count.help, &one(&status[count.name]));
    }
    let mut each = |of: &str, label: &str, rows: &[(&str, &str)]| {
        let all = status[format!("{of}s")].as_array().map_or(&[][..], Vec::as_slice);
        for (name, help) in rows {
            let samples: Vec<_> =
                all.iter().map(|one| (labels(of, &one[label]), one[name].to_string())).collect();
            metric(&format!("{of}_{name}_total"), "counter", help, &samples);
        }
    };
    each("port", "name", &names(&PORT));
    each("worker", "number", &names(&WORKER));
    text
}

/// Names and help of counts.
fn names<T>(counts: &[Count<T>]) -> Vec<(&'static str, &'static str)> {
    counts.iter().map(|count| (count.name, count.help)).collect()
}

/// A label, whose value is a text or a number.
fn labels(name: &str, value: &Json) -> String {
    let value = value.as_str().map_or_else(|| value.to_string(), escaped);
    format!("{{{name}=\"{value}\"}}")
}

/// The value of a label, in which backslash, quotation mark and line feed are escaped.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_are_local_unless_they_are_given() {
        let address = |text: &str| text.parse::<MetricsAddress>().map(|address| address.0.to_string());
        assert_eq!(address("9100").as_deref(), Ok("127.0.0.1:9100"));
        assert_eq!(address("0.0.0.0:1").as_deref(), Ok("0.0.0.0:1"));
        assert_eq!(address("[::1]:1").as_deref(), Ok("[::1]:1"));
        assert!(["", "x", "70000", "localhost:1", "::1"].iter().all(|text| address(text).is_err()));
    }

    #[test]
    fn requests_are_parsed() {
        assert_eq!(path(b"GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"), Ok("/metrics"));
        assert_eq!(path(b"POST /metrics HTTP/1.1\r\n\r\n"), Err("405 Method Not Allowed"));
        assert_eq!(path(b"GET /metrics HTTP/1.1\r\n"), Err("408 Request Timeout"));
        assert_eq!(path(b"\0\0\0\0"), Err("400 Bad Request"));
        let long = [b"GET / HTTP/1.1\r\na: ".as_slice(), &[b'x'; MAX_HEAD]].concat();
        assert_eq!(path(&long), Err("431 Request Header Fields Too Large"));
    }

    #[test]
    fn labels_are_escaped() {
        let status = json!({
            "seconds": 1.5, "revision": 2, "verdicts": { "pass": 3 }, "copies": 0, "sent": 4, "released": 0, "refused": 0, "no_target": 0,
            "stopped": 0, "lost": 0, "unknown_verdicts": 0,
            "ports": [{ "name": "pcap:a\"\\\n", "received": 5, "sent": 0, "refused": 0, "dropped": 0, "copied": 0 }],
        });
        let text = exposition(&status);
        assert!(text.contains("paceline_packets_total{verdict=\"pass\"} 3\n"), "{text}");
        assert!(text.contains("paceline_port_received_total{port=\"pcap:a\\\"\\\\\\n\"} 5\n"), "{text}");
        assert!(
            text.lines().all(
                |line| line.starts_with("# ") || line.split_once("} ").or(line.split_once(' ')).is_some()
            )
        );
    }
}
