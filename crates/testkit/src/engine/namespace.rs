//! The network of a case in the kernel: a namespace with the sockets of the case's lines.

use std::fs;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::process::Command;

use crate::classic::packet_socket::own_network;

/// Sockets in the network namespace of the calling thread.
#[derive(Default)]
pub(super) struct Namespace {
    listeners: Vec<TcpListener>,
    datagrams: Vec<UdpSocket>,
}

impl Namespace {
    /// Moves the calling thread to a new namespace; `None` if a line is not supported here: tracked connections, and
    /// connected sockets.
    pub(super) fn enter(text: &str) -> Option<Self> {
        own_network().ok()?;
        ip(&["link", "set", "lo", "up"])?;
        let mut namespace = Self::default();
        text.lines().try_for_each(|line| namespace.add(line))?;
        Some(namespace)
    }

    fn add(&mut self, line: &str) -> Option<()> {
        if let Some((name, value)) = line.split_once('=') {
            let file = format!("/proc/sys/{}", name.trim().replace('.', "/"));
            return fs::write(file, value.trim()).ok();
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            ["State" | "Netid", ..] => {}
            ["tcp", "LISTEN", _, _, local, ..] | ["LISTEN", _, _, local, ..] => {
                own_address(local)?;
                self.listeners.push(TcpListener::bind(local.replacen('*', "[::]", 1)).ok()?);
            }
            ["udp", "UNCONN", _, _, local, ..] | ["UNCONN", _, _, local, ..] => {
                own_address(local)?;
                self.datagrams.push(UdpSocket::bind(local.replacen('*', "[::]", 1)).ok()?);
            }
            _ => return None,
        }
        Some(())
    }
}

/// Adds an address to the loopback interface for binding, if it lacks it.
fn own_address(local: &str) -> Option<()> {
    let (host, _) = local.rsplit_once(':')?;
    // IPv6-only wildcard sockets are not supported.
    let address: IpAddr = match host.trim_matches(['[', ']']) {
        "*" => return Some(()),
        "::" => return None,
        text => text.parse().ok()?,
    };
    if address.is_loopback() || address.is_unspecified() {
        return Some(());
    }
    let flags: &[&str] = if address.is_ipv6() { &["nodad"] } else { &[] };
    let address = address.to_string();
    // An existing address is kept.
    let _ = ip(&[&["addr", "add", &address, "dev", "lo"], flags].concat());
    Some(())
}

fn ip(arguments: &[&str]) -> Option<()> {
    let output = Command::new("ip").args(arguments).output().ok()?;
    output.status.success().then_some(())
}
