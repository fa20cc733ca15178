//! Networks of inputs: what the look-up of a route meets.

use std::fmt::Write as _;
use std::net::IpAddr;

use paceline_analysis::symbolic::{Route, RouteOutcome};
use paceline_network::{
    ETHERNET_HEADER, Family, Interface, Kind, Network, NetworkBuilder, NextHop, NoRoute, Prefix, tables,
};

/// Interfaces have an MTU of at most this many bytes for routes; more is that of a route.
const MOST: u32 = 0xffff;

/// The interfaces of a network: their numbers, and whether they forward packets.
fn interfaces(route: &Route) -> Vec<(u32, bool)> {
    let other = if route.ingress == 1 { 2 } else { 1 };
    match route.outcome {
        // A network has an interface at least.
        RouteOutcome::NoInterface => vec![(other, true)],
        RouteOutcome::ForwardingDisabled => vec![(route.ingress, false)],
        _ if has_hop(route.outcome) && route.interface != route.ingress => {
            vec![(route.ingress, true), (route.interface, true)]
        }
        _ => vec![(route.ingress, true)],
    }
}

/// Whether a look-up finds a next hop.
const fn has_hop(outcome: RouteOutcome) -> bool {
    matches!(
        outcome,
        RouteOutcome::Success
            | RouteOutcome::Tunnel
            | RouteOutcome::NoNeighbor
            | RouteOutcome::FragmentationNeeded
    )
}

/// The type of the route, if there is one, with its name in `ip route`.
const fn kind(outcome: RouteOutcome) -> Option<(Kind, &'static str)> {
    Some(match outcome {
        RouteOutcome::Blackhole => (Kind::Refused(NoRoute::Blackhole), "blackhole"),
        RouteOutcome::Unreachable => (Kind::Refused(NoRoute::Unreachable), "unreachable"),
        RouteOutcome::Prohibited => (Kind::Refused(NoRoute::Prohibited), "prohibit"),
        outcome if has_hop(outcome) => (Kind::Unicast, "unicast"),
        _ => return None,
    })
}

fn name(index: u32) -> String {
    format!("eth{index}")
}

fn next_hop(route: &Route) -> IpAddr {
    route.gateway.unwrap_or(route.destination)
}

/// The most bytes that the interface of a route takes.
fn interface_mtu(route: &Route, index: u32) -> u32 {
    const USUAL: u32 = 1500;
    if has_hop(route.outcome) && index == route.interface { route.mtu.min(MOST) } else { USUAL }
}

fn address(route: &Route, index: u32) -> [u8; 6] {
    if has_hop(route.outcome) && index == route.interface { route.source_mac } else { [2, 0, 0, 0, 0, 0] }
}

/// The network that gives an input its answer; `None` if there is none.
#[must_use]
pub fn network(route: &Route) -> Option<Network> {
    let mut builder = NetworkBuilder::default();
    for (index, forwards) in interfaces(route) {
        let interface = Interface {
            index,
            name: name(index),
            mtu: interface_mtu(route, index),
            header: ETHERNET_HEADER,
            address: address(route, index),
            addresses: Vec::new(),
            forwards: [false; 2],
            ignores_linkdown: [false; 2],
            has_no_neighbors: false,
        };
        builder.interface(interface).ok()?;
        for family in [Family::V4, Family::V6] {
            builder.forwarding(&name(index), family, forwards, false);
        }
    }
    if let Some((kind, _)) = kind(route.outcome) {
        let hop = NextHop {
            interface: route.interface,
            gateway: route.gateway,
            encapsulates: route.outcome == RouteOutcome::Tunnel,
            ..NextHop::default()
        };
        let prefix = Prefix::host(route.destination);
        let route = paceline_network::Route {
            metric: route.metric,
            locked_mtu: (route.mtu > MOST).then_some(route.mtu),
            ..paceline_network::Route::new(prefix, kind, vec![hop])
        };
        builder.route(tables::MAIN, route);
    }
    if route.outcome == RouteOutcome::Success {
        builder.neighbor(route.interface, next_hop(route), route.destination_mac);
    }
    Some(builder.build())
}

/// The same network as `ip -j` prints it, which `--network` reads.
#[must_use]
pub fn network_text(route: &Route) -> String {
    let mac = |bytes: [u8; 6]| bytes.map(|byte| format!("{byte:02x}")).join(":");
    let mut text = String::new();
    for (index, forwards) in interfaces(route) {
        let (name, mtu, address) = (name(index), interface_mtu(route, index), mac(address(route, index)));
        let _ = writeln!(
            text,
            r#"[{{"ifindex": {index}, "ifname": "{name}", "mtu": {mtu}, "link_type": "ether", "address": "{address}"}}]"#
        );
        for family in ["inet", "inet6"] {
            let _ = writeln!(
                text,
                r#"[{{"family": "{family}", "interface": "{name}", "forwarding": {forwards}}}]"#
            );
        }
    }
    let name = name(route.interface);
    if let Some((_, kind)) = kind(route.outcome) {
        let (destination, metric) = (route.destination, route.metric);
        let _ = write!(text, r#"[{{"type": "{kind}", "dst": "{destination}", "metric": {metric}"#);
        if has_hop(route.outcome) {
            let _ = write!(text, r#", "dev": "{name}""#);
        }
        match route.gateway {
            Some(gateway) if gateway.is_ipv4() == destination.is_ipv4() => {
                let _ = write!(text, r#", "gateway": "{gateway}""#);
            }
            Some(gateway) => {
                let _ = write!(text, r#", "via": {{"family": "inet6", "host": "{gateway}"}}"#);
            }
            None => {}
        }
        if route.outcome == RouteOutcome::Tunnel {
            text += r#", "encap": "mpls""#;
        }
        if route.mtu > MOST {
            let _ = write!(text, r#", "metrics": [{{"mtu lock": {}}}]"#, route.mtu);
        }
        text += "}]\n";
    }
    if route.outcome == RouteOutcome::Success {
        let (next, mac) = (next_hop(route), mac(route.destination_mac));
        let _ = writeln!(
            text,
            r#"[{{"dst": "{next}", "dev": "{name}", "lladdr": "{mac}", "state": ["PERMANENT"]}}]"#
        );
    }
    text
}

#[cfg(all(test, feature = "json"))]
mod tests {
    use fastrand::Rng;
    use paceline_network::{Flow, Tables};

    use super::*;

    fn address(rng: &mut Rng, is_v4: bool) -> IpAddr {
        if is_v4 { rng.u32(..).to_be_bytes().into() } else { rng.u128(..).to_be_bytes().into() }
    }

    fn route(rng: &mut Rng) -> Route {
        let is_v4 = rng.bool();
        let gateway_is_v4 = is_v4 && rng.bool();
        let gateway = address(rng, gateway_is_v4);
        Route {
            ingress: rng.u32(1..4),
            destination: address(rng, is_v4),
            outcome: rng.choice(RouteOutcome::ALL).unwrap(),
            interface: rng.u32(1..4),
            mtu: rng.u32(..) >> rng.u32(..32),
            metric: rng.u32(..),
            gateway: rng.bool().then_some(gateway),
            source_mac: rng.u64(..).to_ne_bytes()[..6].try_into().unwrap(),
            destination_mac: rng.u64(..).to_ne_bytes()[..6].try_into().unwrap(),
        }
    }

    /// The parts of a network that a look-up reads.
    fn seen(network: &Network, route: &Route) -> String {
        let flow = Flow { input: route.ingress, ..Flow::to(route.destination) };
        let found = network.route(&flow, Tables::ByRules);
        let told = found.map(|found| {
            // A route that refuses packets leads nowhere.
            let hop = (found.route.kind == Kind::Unicast).then_some((found.hop, found.mtu(network)));
            (found.route.kind, found.route.metric, hop)
        });
        let neighbors = [1, 2, 3].map(|interface| network.neighbor(interface, next_hop(route)));
        format!("{:?} {told:?} {neighbors:?}", network.interfaces())
    }

    #[test]
    fn the_text_is_the_same_network() {
        let mut rng = Rng::with_seed(1);
        for _ in 0..2000 {
            let route = route(&mut rng);
            let text = network_text(&route);
            let parsed =
                paceline_network::iproute::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert_eq!(seen(&network(&route).unwrap(), &route), seen(&parsed, &route), "{route:?}\n{text}");
        }
    }
}
