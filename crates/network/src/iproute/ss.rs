//! Parsing of the output of iproute2's `ss -n`.

use std::net::{IpAddr, Ipv6Addr};

use crate::socket::{Protocol, SocketSpec, State};

use super::error::Problem;
use crate::iproute::line::Words;

/// Kinds of sockets that `ss` prints before their states, including unsupported ones.
const NETIDS: [&str; 12] =
    ["tcp", "udp", "raw", "mptcp", "sctp", "dccp", "icmp6", "nl", "u_str", "u_dgr", "u_seq", "p_raw"];

/// Whether a line is in the format of `ss`, with or without a kind of socket.
pub(crate) fn is_line(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("Netid" | "State") => true,
        Some(netid) if NETIDS.contains(&netid) => {
            words.next().is_some_and(|word| !word.starts_with(|c: char| c.is_ascii_digit()))
        }
        Some(word) => state(word).is_some(),
        None => false,
    }
}

fn state(word: &str) -> Option<State> {
    Some(match word {
        "ESTAB" => State::Established,
        "SYN-SENT" => State::SynSent,
        "SYN-RECV" => State::Request,
        "FIN-WAIT-1" => State::FinWait1,
        "FIN-WAIT-2" => State::FinWait2,
        "TIME-WAIT" => State::TimeWait,
        "UNCONN" => State::Closed,
        "CLOSE-WAIT" => State::CloseWait,
        "LAST-ACK" => State::LastAck,
        "LISTEN" => State::Listen,
        "CLOSING" => State::Closing,
        _ => return None,
    })
}

/// The socket of a line; `None` for headings, and for sockets that receive neither TCP nor UDP packets. `index` returns the index
/// of an interface.
pub(crate) fn parse(
    line: &str,
    index: impl Fn(&str) -> Result<u32, Problem>,
) -> Result<Option<SocketSpec>, Problem> {
    let mut words = Words::new(line);
    let mut word = words.next("State")?;
    if matches!(word, "Netid" | "State") {
        return Ok(None);
    }
    let netid = NETIDS.iter().find(|netid| **netid == word);
    if netid.is_some() {
        word = words.next("State")?;
    }
    let state = state(word).ok_or_else(|| Problem::wrong("State", word, "no state of a socket"))?;
    let protocol = match netid {
        Some(&"tcp") => Protocol::Tcp,
        Some(&"udp") => Protocol::Udp,
        Some(_) => return Ok(None),
        // Only UDP sockets are neither listening nor connected; `ss` does not print the protocol of others.
        None if state == State::Closed => Protocol::Udp,
        None => Protocol::Tcp,
    };
    let queues = (words.number("Recv-Q")?, words.number("Send-Q")?);
    let (local, remote) = (words.next("Local Address:Port")?, words.next("Peer Address:Port")?);
    let local = Place::parse("Local Address:Port", local)?;
    let remote = Place::parse("Peer Address:Port", remote)?;
    let Some(local_port) = local.port else { return Ok(None) };
    // `*` is the unspecified IPv6 address of a socket for both IP versions.
    let address = local.address.unwrap_or(Ipv6Addr::UNSPECIFIED.into());
    let v6_only = matches!(local.address, Some(IpAddr::V6(v6)) if v6.to_ipv4_mapped().is_none());
    let remote = remote.address.zip(remote.port);
    let interface = local.interface.map(index).transpose()?;
    Ok(Some(SocketSpec { protocol, state, local: address, local_port, remote, interface, v6_only, queues }))
}

/// An address with port and interface.
struct Place<'a> {
    address: Option<IpAddr>,
    interface: Option<&'a str>,
    port: Option<u16>,
}

impl<'a> Place<'a> {
    fn parse(field: &'static str, text: &'a str) -> Result<Self, Problem> {
        let wrong = |what| Problem::wrong(field, text, what);
        let (host, port) = text.rsplit_once(':').ok_or_else(|| wrong("no address with a port"))?;
        let port = match port {
            "*" => None,
            digits => Some(digits.parse().map_err(|_| wrong("no port; ss -n prints its number"))?),
        };
        let (host, interface) = host.split_once('%').map_or((host, None), |(host, rest)| (host, Some(rest)));
        // The interface is inside of the brackets or after them.
        let interface = interface.map(|name| name.trim_end_matches(']'));
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let address = match host {
            "*" => None,
            host => Some(host.parse().map_err(|_| wrong("no IP address; ss -n prints it"))?),
        };
        Ok(Self { address, interface, port })
    }
}
