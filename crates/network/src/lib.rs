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
//! Look-ups follow Linux 6.18 (`net/ipv4/fib_trie.c`, `net/ipv6/route.c`, `net/core/fib_rules.c`), but for the choice among several
//! next hops, which there depends on a secret of the kernel and here on addresses and weights alone. Rules of VRFs, of users and of
//! tunnels have no form here.
#![forbid(unsafe_code)]

mod builder;
pub mod connection;
mod interface;
mod prefix;
mod record;
mod rule;
mod socket;
mod table;

use std::collections::HashMap;
use std::net::IpAddr;

pub use builder::{NetworkBuilder, TakenInterface};
pub use connection::{Connection, Connections};
pub use interface::{ETHERNET_HEADER, Interface, LOOPBACK};
pub use prefix::Prefix;
pub use rule::{Action, Rule};
pub use socket::{Protocol, Socket, SocketSpec, State, Tuple};
pub use table::{Found, Kind, NextHop, Route};

use socket::Sockets;
use table::RouteTable;

/// Numbers of tables that have names (`include/uapi/linux/rtnetlink.h`).
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

/// What a route is looked up for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Interface that the packet came in on; [`LOOPBACK`] for one that is sent from here.
    pub input: u32,
    /// Interface that it must go out on, if that is settled.
    pub output: Option<u32>,
    /// From where, if it is known.
    pub source: Option<IpAddr>,
    /// To where.
    pub destination: IpAddr,
    /// The type-of-service byte.
    pub tos: u8,
    /// The packet's mark.
    pub mark: u32,
    /// Protocol after IP.
    pub protocol: u8,
    /// Port it comes from.
    pub source_port: u16,
    /// Port it goes to.
    pub destination_port: u16,
}

impl Flow {
    /// To an address, from nowhere in particular.
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

/// Where to look for a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tables {
    /// Where the rules say.
    ByRules,
    /// In this table.
    Only(u32),
}

/// Why there is no route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// None matches.
    None,
    /// The address is not to be reached (`RTN_UNREACHABLE`).
    Unreachable,
    /// Packets there are to be dropped silently (`RTN_BLACKHOLE`).
    Blackhole,
    /// Packets there are prohibited (`RTN_PROHIBIT`).
    Prohibited,
}

/// Interfaces, routes, rules and neighbors; sockets and tracked connections. A clone has connections of its own.
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

/// IPv4 or IPv6, as an index.
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
    /// A new network namespace: a loopback interface that forwards nothing, and no routes.
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

    /// The interface of an index.
    #[must_use]
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.index == index)
    }

    /// The interface of a name.
    #[must_use]
    pub fn interface_named(&self, name: &str) -> Option<&Interface> {
        self.interfaces.iter().find(|interface| interface.name == name)
    }

    /// The hardware address of a neighbor behind an interface, if it is known and thought valid.
    #[must_use]
    pub fn neighbor(&self, interface: u32, address: IpAddr) -> Option<Mac> {
        // Neighbors on such interfaces all are one (`__ipv4_neigh_lookup_noref`).
        let alone =
            self.interface(interface).is_some_and(|found| found.has_no_neighbors) && address.is_ipv4();
        let address = if alone { IpAddr::from([0, 0, 0, 0]) } else { address };
        self.neighbors.get(&(interface, address)).copied()
    }

    /// The socket of TCP for a packet that came in on an interface, in whatever state it is (`bpf_skc_lookup_tcp`).
    #[must_use]
    pub fn tcp_socket(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        self.sockets.tcp(tuple, interface)
    }

    /// The same where it is a whole socket: for a request the one that listens, for what is left of a connection none
    /// (`bpf_sk_lookup_tcp`).
    #[must_use]
    pub fn full_tcp_socket(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        match self.tcp_socket(tuple, interface)? {
            found if found.state().is_full() => Some(found),
            found if found.state() == State::Request => self.sockets.listener(tuple, interface),
            _ => None,
        }
    }

    /// The socket of UDP for a packet that came in on an interface (`bpf_sk_lookup_udp`).
    #[must_use]
    pub fn udp_socket(&self, tuple: &Tuple, interface: u32) -> Option<&Socket> {
        self.sockets.udp(tuple, interface)
    }

    /// The socket whose [`Socket::record`] lies at an address.
    #[must_use]
    pub fn socket_of_record(&self, address: usize) -> Option<&Socket> {
        self.sockets.of_record(address)
    }

    /// The socket of a number: its place among the sockets, from 1.
    #[must_use]
    pub fn socket(&self, number: u32) -> Option<&Socket> {
        self.sockets.all().get((number as usize).checked_sub(1)?)
    }

    /// The number of a socket of this network, as of [`socket`](Self::socket).
    #[must_use]
    pub fn socket_number(&self, socket: &Socket) -> Option<u32> {
        let is_it = |known: &Socket| std::ptr::eq(known, socket);
        self.sockets.all().iter().position(is_it).and_then(|index| u32::try_from(index + 1).ok())
    }

    /// Whether as many connections are asked for of a socket as may be (`inet_csk_reqsk_queue_is_full`).
    #[must_use]
    pub fn has_full_queue(&self, listener: &Socket) -> bool {
        self.sockets.requests_of(listener) >= listener.backlog() as usize
    }

    /// The tracked connections.
    #[must_use]
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Whether there are sockets or tracked connections.
    #[must_use]
    pub fn has_sockets(&self) -> bool {
        !self.sockets.is_empty() || !self.connections.is_empty()
    }

    /// `net.ipv4.tcp_syncookies`: 0 for no cookies, 1 for cookies where there is no room, 2 for cookies always.
    #[must_use]
    pub fn syncookies(&self) -> u8 {
        self.syncookies
    }

    /// The route of a flow.
    ///
    /// # Errors
    /// Why it is not to be sent anywhere.
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

    /// Whether there is such a table of the family of an address.
    #[must_use]
    pub fn has_table(&self, table: u32, like: IpAddr) -> bool {
        // These are there from the start.
        let always = [tables::MAIN, tables::LOCAL].contains(&table);
        always || self.tables.contains_key(&(table, Family::from(like)))
    }

    /// What a rule says of a flow that it matches; `None` to ask the next one.
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

    /// Looks in one table; `None` where it has nothing.
    fn lookup(&self, flow: &Flow, table: u32) -> Option<Result<Found<'_>, NoRoute>> {
        let family = Family::from(flow.destination);
        // The kernel keeps both in one trie until there are rules of one's own (`fib_trie_unmerge`).
        let merged = family == Family::V4
            && [tables::MAIN, tables::LOCAL].contains(&table)
            && self.rules[family as usize] == Rule::usual()[family as usize];
        let both = [tables::LOCAL, tables::MAIN];
        let numbers = if merged { &both[..] } else { &[table][..] };
        let found: Vec<&RouteTable> =
            numbers.iter().filter_map(|&number| self.tables.get(&(number, family))).collect();
        table::lookup(&found, flow, self)
    }

    /// The address that packets over a next hop come from (`fib_result_prefsrc`, `ipv6_dev_get_saddr`).
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
