//! Routing tables.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::IpAddr;

use crate::address::Family;
use crate::flow::{Flow, NoRoute};
use crate::interface::Interfaces;
use crate::prefix::{Prefix, first_bits};

/// Type of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Packets are forwarded.
    Unicast,
    /// Packets are for this host, or for several: local, broadcast, anycast, multicast.
    NotForwarded,
    /// Packets are refused.
    Refused(NoRoute),
    /// The look-up continues with the next rule (`RTN_THROW`).
    Throw,
}

/// A next hop of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// Index of the output interface.
    pub interface: u32,
    /// The gateway; `None` if the destination is on the link.
    pub gateway: Option<IpAddr>,
    /// Weight among the next hops, at least 1.
    pub weight: u32,
    /// Whether it is unusable.
    pub dead: bool,
    /// Whether its interface has no carrier.
    pub linkdown: bool,
    /// Whether packets are encapsulated in a tunnel, which programs cannot do.
    pub encapsulates: bool,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Destination prefix.
    pub destination: Prefix,
    /// Type.
    pub kind: Kind,
    /// Type of service it applies to; 0 for all.
    pub tos: u8,
    /// Of several routes for the same prefix, the one with the lowest metric is used.
    pub metric: u32,
    /// Preferred source address of packets of this host.
    pub source: Option<IpAddr>,
    /// The route's MTU, if it is set and locked.
    pub locked_mtu: Option<u32>,
    /// Next hops; none for routes that refuse packets.
    pub hops: Vec<NextHop>,
}

impl Default for NextHop {
    /// No interface, no gateway, a weight of 1.
    fn default() -> Self {
        Self { interface: 0, gateway: None, weight: 1, dead: false, linkdown: false, encapsulates: false }
    }
}

impl Route {
    /// A route for all types of service, with metric 0, no source address and no locked MTU.
    #[must_use]
    pub fn new(destination: Prefix, kind: Kind, hops: Vec<NextHop>) -> Self {
        Self { destination, kind, tos: 0, metric: 0, source: None, locked_mtu: None, hops }
    }
}

/// Result of a look-up: a route with the selected next hop.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The route.
    pub route: &'a Route,
    /// The next hop.
    pub hop: &'a NextHop,
}

impl Found<'_> {
    /// The gateway of the next hop.
    #[must_use]
    pub fn gateway(&self) -> Option<IpAddr> {
        self.hop.gateway
    }
}

/// The routes of one table and family.
#[derive(Clone, Debug, Default)]
pub(crate) struct RouteTable {
    /// By prefix, in the order of evaluation.
    routes: HashMap<Prefix, Vec<Route>>,
    /// Existing prefix lengths, longest first.
    lens: Vec<u8>,
}

impl RouteTable {
    /// Adds a route in order: more specific types of service first, then lower metrics.
    pub(crate) fn add(&mut self, route: Route) {
        let len = route.destination.len();
        if let Err(place) = self.lens.binary_search_by(|known| len.cmp(known)) {
            self.lens.insert(place, len);
        }
        let routes = self.routes.entry(route.destination).or_default();
        let order = |route: &Route| (std::cmp::Reverse(route.tos), route.metric);
        let place = routes.partition_point(|other| order(other) <= order(&route));
        routes.insert(place, route);
    }

    fn at(&self, destination: IpAddr, len: u8) -> &[Route] {
        let prefix = Prefix::new(first_bits(destination, len), len);
        prefix.and_then(|prefix| self.routes.get(&prefix)).map_or(&[], Vec::as_slice)
    }
}

/// Looks up a flow's route in tables that are treated as one, with the first table's routes before those of the others with the
/// same prefix; `None` without a match.
pub(crate) fn lookup<'a>(
    tables: &[&'a RouteTable],
    flow: &Flow,
    interfaces: &Interfaces,
) -> Option<Result<Found<'a>, NoRoute>> {
    let mut lens: Vec<u8> = tables.iter().flat_map(|table| table.lens.iter().copied()).collect();
    lens.sort_unstable_by(|a, b| b.cmp(a));
    lens.dedup();
    lens.into_iter()
        .find_map(|len| {
            let routes = tables.iter().flat_map(|table| table.at(flow.destination, len));
            match Family::from(flow.destination) {
                Family::V4 => first_v4(routes, flow, interfaces),
                Family::V6 => best_v6(routes, flow, interfaces),
            }
        })
        .and_then(|outcome| match outcome {
            Err(Refused::Throw) => None,
            Err(Refused::Route(why)) => Some(Err(why)),
            Ok(found) => Some(Ok(found)),
        })
}

enum Refused {
    Throw,
    Route(NoRoute),
}

/// The first usable route (`fib_table_lookup`).
fn first_v4<'a>(
    mut routes: impl Iterator<Item = &'a Route>,
    flow: &Flow,
    interfaces: &Interfaces,
) -> Option<Result<Found<'a>, Refused>> {
    routes.find_map(|route| {
        if route.tos != 0 && route.tos != flow.tos {
            return None;
        }
        match route.kind {
            Kind::Refused(why) => return Some(Err(Refused::Route(why))),
            Kind::Throw => return Some(Err(Refused::Throw)),
            Kind::Unicast | Kind::NotForwarded => {}
        }
        let usable = |hop: &&NextHop| {
            is_alive(hop, Family::V4, interfaces) && flow.output.is_none_or(|output| output == hop.interface)
        };
        let first = route.hops.iter().find(usable)?;
        let hop = if flow.output.is_some() { first } else { choose(route, usable, flow).unwrap_or(first) };
        Some(Ok(Found { route, hop }))
    })
}

/// The best route (`rt6_select`, `rt6_score_route`): of the usable ones with the lowest metric, preferably one over the packet's
/// input interface, or its required output interface.
fn best_v6<'a>(
    routes: impl Iterator<Item = &'a Route>,
    flow: &Flow,
    interfaces: &Interfaces,
) -> Option<Result<Found<'a>, Refused>> {
    let preferred = flow.output.unwrap_or(flow.input);
    let usable = |hop: &&NextHop| is_alive(hop, Family::V6, interfaces);
    let mut best: Option<(u32, bool, Found<'a>)> = None;
    for route in routes {
        if best.is_some_and(|(metric, ..)| route.metric > metric) {
            break;
        }
        let hops = || route.hops.iter().filter(usable);
        let is_preferred = |hop: &&NextHop| hop.interface == preferred;
        let Some(hop) = hops().find(is_preferred).or_else(|| hops().next()) else { continue };
        let good = is_preferred(&hop);
        if best.is_none_or(|(_, known, _)| good && !known) {
            best = Some((route.metric, good, Found { route, hop }));
        }
    }
    let (.., found) = best?;
    Some(match found.route.kind {
        Kind::Refused(why) => Err(Refused::Route(why)),
        Kind::Throw => Err(Refused::Throw),
        Kind::Unicast | Kind::NotForwarded if flow.output.is_some() => Ok(found),
        Kind::Unicast | Kind::NotForwarded => {
            Ok(Found { hop: choose(found.route, usable, flow).unwrap_or(found.hop), ..found })
        }
    })
}

fn is_alive(hop: &NextHop, family: Family, interfaces: &Interfaces) -> bool {
    let ignores = || interfaces.at(hop.interface).is_some_and(|i| i.ignores_linkdown[family as usize]);
    !(hop.dead || hop.linkdown && ignores())
}

/// Selects one of several next hops by a hash of the addresses, so that a flow keeps its path, in proportion to their weights.
fn choose<'a>(route: &'a Route, usable: impl Fn(&&NextHop) -> bool, flow: &Flow) -> Option<&'a NextHop> {
    if route.hops.len() < 2 {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    (flow.source, flow.destination).hash(&mut hasher);
    let hops = || route.hops.iter().filter(|hop| usable(hop));
    let total: u64 = hops().map(|hop| u64::from(hop.weight)).sum();
    let mut at = hasher.finish().checked_rem(total)?;
    hops().find(|hop| match at.checked_sub(u64::from(hop.weight)) {
        Some(rest) => {
            at = rest;
            false
        }
        None => true,
    })
}
