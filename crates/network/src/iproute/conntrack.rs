//! Parsing of the output of `conntrack -L`, and of `/proc/net/nf_conntrack`.

use std::net::IpAddr;

use crate::connection::{Connection, status};
use crate::socket::{Protocol, Tuple};

use super::error::Problem;
use crate::iproute::line::{Words, number};

/// Remaining seconds of a connection without a timeout in its line: five days, the default for TCP.
const LONG: u32 = 432_000;

/// TCP states, by number (`enum tcp_conntrack`).
const STATES: [&str; 10] = [
    "NONE",
    "SYN_SENT",
    "SYN_RECV",
    "ESTABLISHED",
    "FIN_WAIT",
    "CLOSE_WAIT",
    "LAST_ACK",
    "TIME_WAIT",
    "CLOSE",
    "SYN_SENT2",
];

/// Whether a line is part of a listing: a protocol's name and number, optionally after those of IP.
pub(crate) fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let mut pair = || {
        let (name, number) = (words.next()?, words.next()?);
        let is_pair =
            name.starts_with(|c: char| c.is_ascii_alphabetic()) && number.chars().all(|c| c.is_ascii_digit());
        is_pair.then_some(name)
    };
    match pair() {
        Some("ipv4" | "ipv6") => pair().is_some(),
        found => found.is_some(),
    }
}

/// One of the two tuples of a line, while it is being parsed.
#[derive(Default)]
struct Half {
    source: Option<IpAddr>,
    destination: Option<IpAddr>,
    source_port: Option<u16>,
    destination_port: Option<u16>,
}

impl Half {
    fn tuple(&self) -> Result<Tuple, Problem> {
        let (source, destination) =
            (self.source.ok_or(Problem::Missing("src"))?, self.destination.ok_or(Problem::Missing("dst"))?);
        if source.is_ipv4() != destination.is_ipv4() {
            return Err(Problem::wrong("dst", &destination.to_string(), "of another version than src"));
        }
        Ok(Tuple {
            source,
            source_port: self.source_port.ok_or(Problem::Missing("sport"))?,
            destination,
            destination_port: self.destination_port.ok_or(Problem::Missing("dport"))?,
        })
    }
}

/// The connection of a line; `None` for protocols that programs cannot look up.
pub(crate) fn parse(line: &str) -> Result<Option<Connection>, Problem> {
    let mut words = Words::new(line);
    let mut name = words.next("protocol")?;
    if matches!(name, "ipv4" | "ipv6") {
        words.next("number of IP's version")?;
        name = words.next("protocol")?;
    }
    let protocol = match name {
        "tcp" => Protocol::Tcp,
        "udp" => Protocol::Udp,
        _ => return Ok(None),
    };
    words.next("number of the protocol")?;
    let mut halves = [Half::default(), Half::default()];
    let (mut bits, mut mark, mut zone) = (status::CONFIRMED | status::SEEN_REPLY, 0, 0);
    let (mut state, mut seconds) = (0, LONG);
    for word in words.rest() {
        match (word.split_once('='), word) {
            (Some(("mark", value)), _) => mark = number("mark", value)?,
            (Some(("zone", value)), _) => zone = number("zone", value)?,
            (Some((name, value)), _) => set(&mut halves, name, value)?,
            (None, "[UNREPLIED]") => bits &= !status::SEEN_REPLY,
            (None, "[ASSURED]") => bits |= status::ASSURED,
            (None, digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                seconds = number("timeout", digits)?;
            }
            (None, word) => {
                if let Some(found) = STATES.iter().position(|state| *state == word) {
                    state = found as u8;
                }
            }
        }
    }
    let tuples = [halves[0].tuple()?, halves[1].tuple()?];
    let [one, other] = [tuples[0], tuples[1].reversed()];
    if (one.source, one.source_port) != (other.source, other.source_port) {
        bits |= status::SRC_NAT;
    }
    if (one.destination, one.destination_port) != (other.destination, other.destination_port) {
        bits |= status::DST_NAT;
    }
    Ok(Some(Connection::new(protocol, zone, tuples).listed(bits, mark, state, seconds)))
}

/// Sets a field of a tuple: of the second one if the first already has it.
fn set(halves: &mut [Half; 2], name: &str, value: &str) -> Result<(), Problem> {
    fn put<T: std::str::FromStr>(
        places: [&mut Option<T>; 2],
        field: &'static str,
        value: &str,
        is_not: &'static str,
    ) -> Result<(), Problem> {
        let parsed = value.parse().map_err(|_| Problem::wrong(field, value, is_not))?;
        if let Some(place) = places.into_iter().find(|place| place.is_none()) {
            *place = Some(parsed);
        }
        Ok(())
    }
    let [one, other] = halves;
    match name {
        "src" => put([&mut one.source, &mut other.source], "src", value, "no IP address"),
        "dst" => put([&mut one.destination, &mut other.destination], "dst", value, "no IP address"),
        "sport" => put([&mut one.source_port, &mut other.source_port], "sport", value, "no port"),
        "dport" => put([&mut one.destination_port, &mut other.destination_port], "dport", value, "no port"),
        _ => Ok(()),
    }
}
