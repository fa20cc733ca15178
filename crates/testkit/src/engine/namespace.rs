//! The network of a case in the kernel: a namespace with the sockets that the case's lines name.

use std::fs;
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::process::Command;

use crate::classic::own_network;

/// Sockets of the namespace that the calling thread is in.
#[derive(Default)]
pub(super) struct Namespace {
    listeners: Vec<TcpListener>,
    datagrams: Vec<UdpSocket>,
}

impl Namespace {
    /// Moves the calling thread to a new namespace; `None` where lines name what is not made here: connections, and sockets
    /// that are connected.
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

/// Gives the loopback interface an address to bind to, if it needs one.
fn own_address(local: &str) -> Option<()> {
    let (host, _) = local.rsplit_once(':')?;
    // Sockets for IPv6 alone are not bound here.
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
    // One that is there already stays.
    let _ = ip(&[&["addr", "add", &address, "dev", "lo"], flags].concat());
    Some(())
}

fn ip(arguments: &[&str]) -> Option<()> {
    let output = Command::new("ip").args(arguments).output().ok()?;
    output.status.success().then_some(())
}
