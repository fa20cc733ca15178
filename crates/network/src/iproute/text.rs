//! The text of a network: a sequence of JSON lists and lines of words.

use crate::network::Network;
use serde_json::Deserializer;

use super::error::{NetworkError, Problem};
use crate::iproute::draft::Draft;
use crate::iproute::json::Object;
use crate::iproute::line::number;
use crate::iproute::{conntrack, ss};

/// The setting of TCP's SYN cookies.
const COOKIES: &str = "net.ipv4.tcp_syncookies";

/// Parses the concatenated output of `ip -j addr; ip -j route show table all; ip -j neigh; ip -j rule; ip -j -6 rule; ip -j
/// netconf` of iproute2, `ss -tuan`, `conntrack -L` and `sysctl net.ipv4.tcp_syncookies`.
///
/// Interfaces must come first. Missing parts are as in a new network namespace, with two exceptions: without routes in table
/// `local` the routes of the interfaces' addresses are added, and without settings of `netconf` all interfaces forward packets. The
/// first list of rules is that of IPv4 unless its addresses say otherwise. If `ss` does not print the kind of a socket, it is UDP
/// if neither listening nor connected, and TCP otherwise.
///
/// # Errors
/// [`NetworkError`], with the position.
pub fn parse(text: &str) -> Result<Network, NetworkError> {
    let mut draft = Draft::default();
    let (mut at, mut list) = (0, 0);
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let blank = rest.len() - rest.trim_start().len();
        let is_indented = rest.get(..blank).is_some_and(|blank| blank.ends_with([' ', '\t']));
        at += blank;
        let rest = rest.get(blank..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(draft.builder.build());
        }
        if rest.starts_with(['[', '{']) {
            list += 1;
            at += read_list(&mut draft, text, at, list)?;
            continue;
        }
        let line = rest.lines().next().unwrap_or_default();
        // A continuation of the previous line, as printed by `ss -i`.
        if !is_indented {
            let number = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            read_line(&mut draft, line).map_err(|problem| NetworkError::Line { line: number, problem })?;
        }
        at += line.len();
    }
}

/// Parses the list at a position of the text; returns its length.
fn read_list(draft: &mut Draft, text: &str, at: usize, list: usize) -> Result<usize, NetworkError> {
    let rest = text.get(at..).unwrap_or_default();
    let mut lists = Deserializer::from_str(rest).into_iter::<Vec<Object>>();
    let entries = lists.next().transpose().map_err(|error| NetworkError::json(text, at, &error))?;
    draft.add_list(list, &entries.unwrap_or_default())?;
    Ok(lists.byte_offset().max(1))
}

fn read_line(draft: &mut Draft, line: &str) -> Result<(), Problem> {
    if let Some((name, value)) = line.split_once('=')
        && name.trim() == COOKIES
    {
        draft.builder.syncookies(number(COOKIES, value.trim())?);
        return Ok(());
    }
    if ss::is_line(line) {
        if let Some(socket) = ss::parse(line, |name| draft.index_of(name))? {
            draft.builder.socket(socket);
        }
        return Ok(());
    }
    if conntrack::is_line(line) {
        if let Some(connection) = conntrack::parse(line)? {
            draft.builder.connection(connection);
        }
        return Ok(());
    }
    // conntrack ends with a line with the number of connections.
    if line.starts_with("conntrack v") { Ok(()) } else { Err(Problem::UnknownLine) }
}
