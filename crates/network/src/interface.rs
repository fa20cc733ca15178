//! Interfaces.

use std::net::IpAddr;

use crate::address::{Family, Mac};
use crate::prefix::Prefix;

/// Index of the loopback interface of every network namespace.
pub const LOOPBACK: u32 = 1;

/// Size of an Ethernet header in bytes.
pub const ETHERNET_HEADER: u32 = 14;

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Index, at least 1.
    pub index: u32,
    /// Name.
    pub name: String,
    /// Maximum packet size in bytes, without the link-layer header.
    pub mtu: u32,
    /// Size of the link-layer header in bytes.
    pub header: u32,
    /// Hardware address; zero if it has none.
    pub address: Mac,
    /// IP addresses, each with the prefix of its network.
    pub addresses: Vec<(IpAddr, Prefix)>,
    /// Whether received packets are forwarded, for IPv4 and IPv6.
    pub forwards: [bool; 2],
    /// Whether routes over it are ignored while it has no carrier, for IPv4 and IPv6.
    pub ignores_linkdown: [bool; 2],
    /// Whether it has no link-layer addressing (point-to-point, or loopback): all neighbors have the address 0.0.0.0.
    pub has_no_neighbors: bool,
}

impl Interface {
    pub(crate) fn loopback() -> Self {
        Self {
            index: LOOPBACK,
            name: "lo".to_owned(),
            mtu: 65536,
            header: ETHERNET_HEADER,
            address: [0; 6],
            addresses: Vec::new(),
            forwards: [false; 2],
            ignores_linkdown: [false; 2],
            has_no_neighbors: true,
        }
    }

    /// Whether it forwards packets to an address.
    #[must_use]
    pub fn forwards_to(&self, destination: IpAddr) -> bool {
        self.forwards[Family::from(destination) as usize]
    }

    /// An address of this interface as source address: preferably one in the network of `near`.
    pub(crate) fn source_near(&self, like: IpAddr, near: Option<IpAddr>) -> Option<IpAddr> {
        let own = || self.addresses.iter().filter(|(address, _)| address.is_ipv4() == like.is_ipv4());
        let close = own().find(|(_, network)| near.is_some_and(|near| network.contains(near)));
        close.or_else(|| own().find(|(address, _)| is_global(*address))).map(|(address, _)| *address)
    }
}

/// The interfaces of a network.
#[derive(Clone, Debug)]
pub(crate) struct Interfaces(pub(crate) Vec<Interface>);

impl Interfaces {
    pub(crate) fn at(&self, index: u32) -> Option<&Interface> {
        self.0.iter().find(|interface| interface.index == index)
    }

    pub(crate) fn named(&self, name: &str) -> Option<&Interface> {
        self.0.iter().find(|interface| interface.name == name)
    }
}

/// Whether an address has global scope.
fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !v4.is_loopback() && !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_loopback() && !v6.is_unicast_link_local(),
    }
}
