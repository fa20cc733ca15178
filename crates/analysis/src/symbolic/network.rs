//! Routes of inputs, from models.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::solver::{Model, Term};

use crate::symbolic::explorer::Explorer;
use crate::symbolic::goal::{Route, RouteOutcome};
use crate::symbolic::plausible::usual_route;
use crate::symbolic::source::{RoutePart, Source};
use crate::symbolic::state::State;

impl Explorer<'_> {
    /// Adds what the look-up of a route depends on, but for bytes of the packet, which are known before the network is made.
    pub(crate) fn add_variables_of_route(&mut self, state: &State, vars: &mut Vec<(Source, Term)>) {
        let Some(route) = &state.drawn.route else { return };
        let mut asked = route.destination.clone();
        asked.push(route.ingress);
        for (source, term) in self.variables(&asked) {
            if !matches!(source, Source::Packet(_)) && !vars.contains(&(source, term)) {
                vars.push((source, term));
            }
        }
    }

    /// The look-up of a route, and its answer, of which what is not given is as usual.
    pub(crate) fn route_of(
        &mut self,
        state: &State,
        given: &BTreeMap<Source, u64>,
        model: &Model,
    ) -> Option<Route> {
        let route = state.drawn.route.as_deref()?;
        let mut model = model.clone();
        for (source, term) in self.sources.all() {
            if let Source::Route(part) = source
                && !given.contains_key(&source)
            {
                model.set(self.terms.support(term)[0], usual_route(part));
            }
        }
        let model = &model;
        let number = |term| self.terms.evaluate(model, term);
        let part = |part| self.sources.known(Source::Route(part)).map_or(0, number);
        let destination: Vec<u8> = route.destination.iter().map(|byte| number(*byte) as u8).collect();
        let gateway: [u8; 16] = std::array::from_fn(|byte| part(RoutePart::Gateway(byte as u8)) as u8);
        let is_v6 = !route.is_v4 || part(RoutePart::GatewayIsV6) == 1;
        let size = if is_v6 { 16 } else { 4 };
        Some(Route {
            ingress: number(route.ingress) as u32,
            destination: address(&destination)?,
            outcome: RouteOutcome::of(number(route.outcome))?,
            interface: number(route.interface) as u32,
            mtu: number(route.mtu) as u32,
            metric: part(RoutePart::Metric) as u32,
            gateway: if part(RoutePart::HasGateway) == 1 { address(&gateway[..size]) } else { None },
            source_mac: std::array::from_fn(|byte| part(RoutePart::SourceMac(byte as u8)) as u8),
            destination_mac: std::array::from_fn(|byte| part(RoutePart::DestinationMac(byte as u8)) as u8),
        })
    }
}

/// An address of 4 or 16 bytes.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}
