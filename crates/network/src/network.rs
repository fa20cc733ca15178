//! The network: its parts, and look-ups in them.

use std::collections::HashMap;
use std::net::IpAddr;

use crate::address::{Family, Mac};
use crate::connection::Connections;
use crate::flow::{Flow, NoRoute, Tables, tables};
use crate::interface::{Interface, Interfaces};
use crate::route::{self, Found, RouteTable};
use crate::rule::{Action, Rule};
use crate::socket::{Socket, Sockets, State, Tuple};

/// Interfaces, routes, rules and neighbors; sockets and tracked connections. A clone has its own copies of connections.
#[derive(Clone, Debug)]
pub struct Network {
    pub(crate) interfaces: Interfaces,
    pub(crate) tables: HashMap<(u32, Family), RouteTable>,
    pub(crate) rules: [Vec<Rule>; 2],
    pub(crate) neighbors: HashMap<(u32, IpAddr), Mac>,
    pub(crate) sockets: Sockets,
    pub(crate) connections: Connections,
    /// `net.ipv4.tcp_syncookies`.
    pub(crate) syncookies: u8,
}

impl Default for Network {
    /// A new network namespace: a loopback interface without forwarding, and no routes.
    fn default() -> Self {
        Self {
            interfaces: Interfaces(vec![Interface::loopback()]),
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
        &self.interfaces.0
    }

    /// The interface with an index.
    #[must_use]
    pub fn interface(&self, index: u32) -> Option<&Interface> {
        self.interfaces.at(index)
    }

    /// The interface with a name.
    #[must_use]
    pub fn interface_named(&self, name: &str) -> Option<&Interface> {
        self.interfaces.named(name)
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
                let matching =
                    self.rules[family as usize].iter().filter(|rule| rule.matches(flow, &self.interfaces));
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
        route::lookup(&found, flow, &self.interfaces)
    }

    /// The source address of packets to a next hop (`fib_result_prefsrc`, `ipv6_dev_get_saddr`).
    #[must_use]
    pub fn source_for(&self, found: &Found<'_>, destination: IpAddr) -> Option<IpAddr> {
        if found.route.source.is_some() {
            return found.route.source;
        }
        let out = self.interface(found.hop.interface)?;
        let near = if destination.is_ipv4() { found.gateway() } else { Some(destination) };
        let others = self.interfaces.0.iter().filter(|other| other.index != out.index);
        out.source_near(destination, near)
            .or_else(|| others.filter_map(|other| other.source_near(destination, None)).next())
    }
}

impl Found<'_> {
    /// Maximum size of an IP packet in bytes (`ip_mtu_from_fib_result`, `ip6_mtu_from_fib6`).
    #[must_use]
    pub fn mtu(&self, network: &Network) -> u32 {
        const MAX: u32 = 0xffff;
        let interface = network.interface(self.hop.interface).map_or(0, |interface| interface.mtu);
        self.route.locked_mtu.unwrap_or_else(|| interface.min(MAX))
    }
}
