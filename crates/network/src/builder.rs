//! Construction of networks.

use std::net::IpAddr;

use crate::address::{Family, Mac};
use crate::connection::Connection;
use crate::flow::tables;
use crate::interface::Interface;
use crate::network::Network;
use crate::prefix::Prefix;
use crate::route::{Kind, NextHop, Route};
use crate::rule::Rule;
use crate::socket::{Socket, SocketSpec};

/// Builds a [`Network`] from its parts.
///
/// Missing parts are as in a new network namespace, with two exceptions: without routes in table `local` the routes of the
/// interfaces' addresses are added, and without a call of [`forwarding`](Self::forwarding) all interfaces forward packets.
#[derive(Clone, Debug, Default)]
pub struct NetworkBuilder {
    network: Network,
    has_interfaces: bool,
    has_forwarding: bool,
    rules: [Option<Vec<Rule>>; 2],
}

/// An interface with this index or name exists already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is an interface of this index or name already")]
pub struct TakenInterface;

impl NetworkBuilder {
    /// The network so far, for look-ups of interfaces.
    #[must_use]
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// Adds an interface. The first one replaces the loopback interface of a new namespace.
    ///
    /// # Errors
    /// [`TakenInterface`].
    pub fn interface(&mut self, interface: Interface) -> Result<(), TakenInterface> {
        if !self.has_interfaces {
            (self.has_interfaces, self.network.interfaces.0) = (true, Vec::new());
        }
        let taken = self.network.interface(interface.index).is_some()
            || self.network.interface_named(&interface.name).is_some();
        if taken {
            return Err(TakenInterface);
        }
        self.network.interfaces.0.push(interface);
        Ok(())
    }

    /// Sets whether an interface forwards packets of a family, and whether it ignores routes over it while it has no carrier.
    /// Unknown names are ignored.
    pub fn forwarding(&mut self, name: &str, family: Family, forwards: bool, ignores_linkdown: bool) {
        self.has_forwarding = true;
        if let Some(interface) = self.network.interfaces.0.iter_mut().find(|interface| interface.name == name)
        {
            interface.forwards[family as usize] = forwards;
            interface.ignores_linkdown[family as usize] = ignores_linkdown;
        }
    }

    /// Adds a neighbor on an interface.
    pub fn neighbor(&mut self, interface: u32, address: IpAddr, mac: Mac) {
        self.network.neighbors.insert((interface, address), mac);
    }

    /// Adds a route to a table.
    pub fn route(&mut self, table: u32, route: Route) {
        let family = Family::from(route.destination.address());
        self.network.tables.entry((table, family)).or_default().add(route);
    }

    /// Adds rules of a family, sorted by priority, after those added before. The first call replaces the rules of a new namespace.
    pub fn rules(&mut self, family: Family, rules: impl IntoIterator<Item = Rule>) {
        let mut rules: Vec<Rule> = rules.into_iter().collect();
        rules.sort_by_key(|rule| rule.priority);
        self.rules[family as usize].get_or_insert_default().extend(rules);
    }

    /// Adds a socket.
    pub fn socket(&mut self, socket: SocketSpec) {
        self.network.sockets.add(Socket::new(socket));
    }

    /// Adds a tracked connection.
    pub fn connection(&mut self, connection: Connection) {
        self.network.connections.add(connection.into());
    }

    /// Sets `net.ipv4.tcp_syncookies`.
    pub fn syncookies(&mut self, setting: u8) {
        self.network.syncookies = setting;
    }

    /// Builds the network.
    #[must_use]
    pub fn build(mut self) -> Network {
        if !self.has_forwarding {
            self.network.interfaces.0.iter_mut().for_each(|interface| interface.forwards = [true; 2]);
        }
        for family in [Family::V4, Family::V6] {
            if let Some(rules) = self.rules[family as usize].take() {
                self.network.rules[family as usize] = rules;
            }
            if !self.network.tables.contains_key(&(tables::LOCAL, family)) {
                self.own_addresses(family);
            }
        }
        self.network
    }

    /// Adds the routes of the interfaces' own addresses.
    fn own_addresses(&mut self, family: Family) {
        let own: Vec<(u32, IpAddr)> = (self.network.interfaces.0.iter())
            .flat_map(|interface| interface.addresses.iter().map(|(address, _)| (interface.index, *address)))
            .filter(|(_, address)| Family::from(*address) == family)
            .collect();
        for (interface, address) in own {
            let hop = NextHop { interface, ..NextHop::default() };
            self.route(tables::LOCAL, Route::new(Prefix::host(address), Kind::NotForwarded, vec![hop]));
        }
    }
}
