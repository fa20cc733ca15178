//! A model of the kernel's network for programs: interfaces, routes, rules and neighbors, sockets and tracked connections.
//!
//! ```
//! use paceline_network::{Flow, Kind, NetworkBuilder, NextHop, Route, Tables, tables};
//!
//! let mut network = NetworkBuilder::default();
//! let hop = NextHop { interface: 1, gateway: Some("192.0.2.1".parse()?), ..NextHop::default() };
//! network.route(tables::MAIN, Route::new("10.0.0.0/8".parse().unwrap(), Kind::Unicast, vec![hop]));
//! let network = network.build();
//! let found = network.route(&Flow::to("10.1.2.3".parse()?), Tables::ByRules).expect("there is a route");
//! assert_eq!(found.gateway(), Some("192.0.2.1".parse()?));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Look-ups follow Linux 6.18 (`net/ipv4/fib_trie.c`, `net/ipv6/route.c`, `net/core/fib_rules.c`), except for the selection among
//! several next hops, which depends on a secret in the kernel, and here on addresses and weights only. Rules for VRFs, users and
//! tunnels are not supported.
#![forbid(unsafe_code)]

mod builder;
pub mod connection;
mod interface;
#[cfg(feature = "iproute")]
pub mod iproute;
mod prefix;
mod record;
mod route;
mod rule;
mod socket;

use std::collections::HashMap;
use std::net::IpAddr;

pub use builder::{NetworkBuilder, TakenInterface};
pub use connection::{Connection, Connections};
pub use interface::{ETHERNET_HEADER, Interface, LOOPBACK};
pub use prefix::Prefix;
pub use route::{Found, Kind, NextHop, Route};
pub use rule::{Action, Rule};
pub use socket::{Protocol, Socket, SocketSpec, State, Tuple};

use route::RouteTable;
use socket::Sockets;

/// Numbers of named tables (`include/uapi/linux/rtnetlink.h`).
pub mod tables {
    /// `RT_TABLE_DEFAULT`
    pub const DEFAULT: u32 = 253;
    /// `RT_TABLE_MAIN`
    pub const MAIN: u32 = 254;
    /// `RT_TABLE_LOCAL`
    pub const LOCAL: u32 = 255;
}

/// A hardware address.
pub type Mac = [u8; 6];

/// Parameters of a route look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Input interface; [`LOOPBACK`] for packets of this host.
    pub input: u32,
    /// Required output interface, if any.
    pub output: Option<u32>,
    /// Source address, if known.
    pub source: Option<IpAddr>,
    /// Destination address.
    pub destination: IpAddr,
    /// Type-of-service byte.
    pub tos: u8,
    /// Mark of the packet.
    pub mark: u32,
    /// IP protocol number.
    pub protocol: u8,
    /// Source port.
    pub source_port: u16,
    /// Destination port.
    pub destination_port: u16,
}

impl Flow {
    /// A flow to an address, with all else unspecified.
    #[must_use]
    pub fn to(destination: IpAddr) -> Self {
        Self {
            input: LOOPBACK,
            output: None,
            source: None,
            destination,
            tos: 0,
            mark: 0,
            protocol: 0,
            source_port: 0,
            destination_port: 0,
        }
    }
}

/// Tables for a route look-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Selected by the rules.
    ByRules,
    /// This table only.
    Only(u32),
}

/// Reasons why a flow has no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// No route matches.
    None,
    /// The destination is unreachable (`RTN_UNREACHABLE`).
    Unreachable,
    /// Packets are dropped silently (`RTN_BLACKHOLE`).
    Blackhole,
    /// Packets are prohibited (`RTN_PROHIBIT`).
    Prohibited,
}

/// Interfaces, routes, rules and neighbors; sockets and tracked connections. A clone has its own copies of connections.
#[derive(Clone, Debug)]
pub struct Network {
    interfaces: Vec<Interface>,
    tables: HashMap<(u32, Family), RouteTable>,
    rules: [Vec<Rule>; 2],
    neighbors: HashMap<(u32, IpAddr), Mac>,
    sockets: Sockets,
    connections: Connections,
    /// `net.ipv4.tcp_syncookies`.
    syncookies: u8,
}

/// IPv4 or IPv6, usable as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl From<IpAddr> for Family {
    fn from(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl Default for Network {
    /// A new network namespace: a loopback interface without forwarding, and no routes.
    fn default() -> Self {
        Self {
            interfaces: vec![Interface::loopback()],
            tables: HashMap::new(),
            rules: Rule::usual(),
            neighbors: HashMap::new(),
            sockets: Sockets::default(),
            connections: Connections::default(),
            syncookies: 1,
        }
    }
}

impl Network {
    /// The interfaces.
    #[must_use]
    pub fn interfaces(&self) -> &[Interface] {
        &self.interfaces
    }

    /// The interface with an index.
    #[must_use]
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.index == index)
    }

    /// The interface with a name.
    #[must_use]
    pub fn interface_named(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// The hardware address of a neighbor on an interface, if it is known and considered valid.
    #[must_use]
    pub fn neighbor(&self, interface: u32, address: IpAddr) -> Option<Mac> {
        // Interfaces without link-layer addressing have a single neighbor entry (`__ipv4_neigh_lookup_noref`).
        let alone =
            self.interface(interface).is_some_and(|found| found.has_no_neighbors) && address.is_ipv4();
        let address = if alone { IpAddr::from([0, 0, 0, 0]) } else { address };
        self.neighbors.get(&(interface, address)).copied()
    }

    /// The TCP socket of a packet that was received on an interface, in any state (`bpf_skc_lookup_tcp`).
    #[must_use]
    pub fn tcp_socket(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        self.sockets.tcp(tuple, interface)
    }

    /// The same, restricted to full sockets: the listener instead of a request, none for time-wait sockets (`bpf_sk_lookup_tcp`).
    #[must_use]
    pub fn full_tcp_socket(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        match self.tcp_socket(tuple, interface)? {
            found if found.state().is_full() => Some(found),
            found if found.state() == State::Request => self.sockets.listener(tuple, interface),
            _ => None,
        }
    }

    /// The UDP socket of a packet that was received on an interface (`bpf_sk_lookup_udp`).
    #[must_use]
    pub fn udp_socket(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        self.sockets.udp(tuple, interface)
    }

    /// The socket whose [`Socket::record`] is at an address.
    #[must_use]
    pub fn socket_of_record(&self, address: usize) -> Option<&Socket> {
        self.sockets.of_record(address)
    }

    /// The socket with a number: its position among the sockets, from 1.
    #[must_use]
    pub fn socket(&self, number: u32) -> Option<&Socket> {
        self.sockets.all().get((number as usize).checked_sub(1)?)
    }

    /// The number of a socket of this network, see [`socket`](Self::socket).
    #[must_use]
    pub fn socket_number(&self, socket: &Socket) -> Option<u32> {
        let is_it = |known: &Socket| std::ptr::eq(known, socket);
        self.sockets.all().iter().position(is_it).and_then(|index| u32::try_from(index + 1).ok())
    }

    /// Whether a listener's queue of connection requests is full (`inet_csk_reqsk_queue_is_full`).
    #[must_use]
    pub fn has_full_queue(&self, listener: &Socket) -> bool {
        self.sockets.requests_of(listener) >= listener.backlog() as usize
    }

    /// The tracked connections.
    #[must_use]
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Whether any sockets or tracked connections exist.
    #[must_use]
    pub fn has_sockets(&self) -> bool {
        !self.sockets.is_empty() || !self.connections.is_empty()
    }

    /// `net.ipv4.tcp_syncookies`: 0 for no cookies, 1 for cookies if the queue is full, 2 for cookies always.
    #[must_use]
    pub fn syncookies(&self) -> u8 {
        self.syncookies
    }

    /// Looks up the route of a flow.
    ///
    /// # Errors
    /// The reason why the flow has no route.
    pub fn route(&self, flow: &Flow, tables: Tables) -> Result<Found<'_>, NoRoute> {
        let family = Family::from(flow.destination);
        match tables {
            Tables::Only(table) => self.lookup(flow, table).unwrap_or(Err(NoRoute::None)),
            Tables::ByRules => {
                let matching = self.rules[family as usize].iter().filter(|rule| rule.matches(flow, self));
                matching.filter_map(|rule| self.by_rule(flow, rule)).next().unwrap_or(Err(NoRoute::None))
            }
        }
    }

    /// Whether a table exists for the family of an address.
    #[must_use]
    pub fn has_table(&self, table: u32, like: IpAddr) -> bool {
        // These tables always exist.
        let always = [tables::MAIN, tables::LOCAL].contains(&table);
        always || self.tables.contains_key(&(table, Family::from(like)))
    }

    /// The result of a matching rule; `None` to continue with the next one.
    fn by_rule(&self, flow: &Flow, rule: &Rule) -> Option<Result<Found<'_>, NoRoute>> {
        let table = match rule.action {
            Action::Table(table) => table,
            Action::Refuse(why) => return Some(Err(why)),
        };
        let found = self.lookup(flow, table)?;
        let suppressed =
            |found: &Found<'_>| rule.suppressed_len.is_some_and(|len| found.route.destination.len() <= len);
        if found.as_ref().is_ok_and(suppressed) { None } else { Some(found) }
    }

    /// Looks up a route in one table; `None` without a match.
    fn lookup(&self, flow: &Flow, table: u32) -> Option<Result<Found<'_>, NoRoute>> {
        let family = Family::from(flow.destination);
        // The kernel keeps both tables in one trie until custom rules exist (`fib_trie_unmerge`).
        let merged = family == Family::V4
            && [tables::MAIN, tables::LOCAL].contains(&table)
            && self.rules[family as usize] == Rule::usual()[family as usize];
        let both = [tables::LOCAL, tables::MAIN];
        let numbers = if merged { &both[..] } else { &[table][..] };
        let found: Vec<&RouteTable> =
            numbers.iter().filter_map(|&number| self.tables.get(&(number, family))).collect();
        route::lookup(&found, flow, self)
    }

    /// The source address of packets to a next hop (`fib_result_prefsrc`, `ipv6_dev_get_saddr`).
    #[must_use]
    pub fn source_for(&self, found: &Found<'_>, destination: IpAddr) -> Option<IpAddr> {
        if found.route.source.is_some() {
            return found.route.source;
        }
        let out = self.interface(found.hop.interface)?;
        let near = if destination.is_ipv4() { found.gateway() } else { Some(destination) };
        let others = self.interfaces.iter().filter(|other| other.index != out.index);
        out.source_near(destination, near)
            .or_else(|| others.filter_map(|other| other.source_near(destination, None)).next())
    }
}
