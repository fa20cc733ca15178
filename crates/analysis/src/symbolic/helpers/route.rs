//! `bpf_fib_lookup`: whatever a network may say.

use crate::solver::Term;
use paceline_isa::Reg;
use paceline_spec::{Errno, ProgramKind};

use crate::symbolic::alu;
use crate::symbolic::explorer::Explorer;
use crate::symbolic::give_up::GiveUp;
use crate::symbolic::source::{RoutePart, Source};
use crate::symbolic::state::{Route, State};
use crate::symbolic::value::Value;

const DIRECT: u64 = 1;
const OUTPUT: u64 = 1 << 1;
const SKIP_NEIGH: u64 = 1 << 2;
const TBID: u64 = 1 << 3;
const SRC: u64 = 1 << 4;
const MARK: u64 = 1 << 5;

const AF_INET: u64 = 2;
const AF_INET6: u64 = 10;

/// `struct bpf_fib_lookup`: its size, and the offsets of its members.
const SIZE: usize = 64;
const FAMILY: usize = 0;
const LEN: usize = 6;
const IFINDEX: usize = 8;
const TOS: usize = 12;
const SOURCE: usize = 16;
const DESTINATION: usize = 32;
const VLAN: usize = 48;
const SOURCE_MAC: usize = 52;
const DESTINATION_MAC: usize = 58;

/// Outcomes (`BPF_FIB_LKUP_RET_*`) that more depends on.
const SUCCESS: u64 = 0;
const NOT_FORWARDED: u64 = 4;
const NO_NEIGHBOR: u64 = 7;
const FRAGMENTATION_NEEDED: u64 = 8;
/// There is no such interface: an error.
const NO_INTERFACE: u64 = 9;

/// Outcomes that come of a route with a next hop: success, a tunnel, no neighbor, a packet that is too long.
const WITH_ROUTE: [u64; 4] = [SUCCESS, 6, NO_NEIGHBOR, FRAGMENTATION_NEEDED];

impl Explorer<'_> {
    /// `bpf_fib_lookup`: the network may be any, and answers as [`Route`] says. Interfaces have numbers from 1.
    pub(super) fn fib_lookup(&mut self, state: &mut State, name: &'static str) -> Result<Value, GiveUp> {
        if self.follows_all() {
            return Err(GiveUp::Helper(name));
        }
        if state.drawn.route.is_some() {
            return Err(GiveUp::HelperUse(name, "a second time"));
        }
        let (len, flags) = (self.number(state, Reg::R3)?, self.number(state, Reg::R4)?);
        let [len, flags] = [len, flags].map(|number| self.terms.extract(number, 0, 32));
        let (len, flags) = (self.concrete(state, len), self.concrete(state, flags));
        let known = DIRECT | OUTPUT | SKIP_NEIGH | TBID | SRC | MARK;
        if !(SIZE as u64..=i32::MAX as u64).contains(&len) || flags & !known != 0 {
            return Ok(self.failed(Errno::EINVAL));
        }
        if flags & (OUTPUT | TBID | SRC) != 0 {
            return Err(GiveUp::HelperUse(name, "with such flags"));
        }
        let place = self.pointer(state, Reg::R2)?;
        let params = self.read_numbers(state, place, SIZE)?;
        let Some(is_v4) = self.family(state, params[FAMILY]) else {
            return Ok(self.failed(Errno::EAFNOSUPPORT));
        };
        let len = alu::word(&mut self.terms, &params[LEN..LEN + 2]);
        if !matches!(self.verified.program().kind, ProgramKind::Xdp { .. }) {
            let none = self.terms.constant(16, 0);
            let has_none = self.terms.eq(len, none);
            if self.decide(state, has_none, 0) {
                // The length is that of the packet then.
                return Err(GiveUp::HelperUse(name, "without a length"));
            }
        }
        let route = self.route(&params, len, is_v4, flags & SKIP_NEIGH != 0);
        let written = self.params_after(&params, &route, flags & SKIP_NEIGH != 0);
        self.write_numbers(state, place, &written)?;
        let outcome = self.terms.resize(route.outcome, 64);
        let missing = self.is_outcome(&route, NO_INTERFACE);
        let error = self.terms.constant(64, Errno::ENODEV.to_return());
        let result = self.terms.ite(missing, error, outcome);
        state.drawn.route = Some(Box::new(route));
        Ok(Value::Number(result))
    }

    /// Whether addresses are those of IPv4; `None` for a family that the network does not have.
    fn family(&mut self, state: &mut State, family: Term) -> Option<bool> {
        [(AF_INET, true), (AF_INET6, false)].into_iter().find_map(|(number, is_v4)| {
            let number = self.terms.constant(8, number);
            let is_it = self.terms.eq(family, number);
            self.decide(state, is_it, 0).then_some(is_v4)
        })
    }

    fn part(&mut self, part: RoutePart) -> Term {
        self.sources.term(&mut self.terms, Source::Route(part))
    }

    fn is_outcome(&mut self, route: &Route, number: u64) -> Term {
        let number = self.terms.constant(8, number);
        self.terms.eq(route.outcome, number)
    }

    /// The look-up and its answer, whose parts suit each other.
    fn route(&mut self, params: &[Term], len: Term, is_v4: bool, skips_neighbor: bool) -> Route {
        let ingress = alu::word(&mut self.terms, &params[IFINDEX..IFINDEX + 4]);
        let destination = params[DESTINATION..][..if is_v4 { 4 } else { 16 }].to_vec();
        let (number, mtu) = (self.part(RoutePart::Interface), self.part(RoutePart::Mtu));
        let (zero, one) = (self.terms.constant(32, 0), self.terms.constant(32, 1));
        let is_none = self.terms.eq(number, zero);
        let interface = self.terms.ite(is_none, one, number);
        let outcome = self.outcome(params, (len, mtu, ingress), is_v4, skips_neighbor);
        Route { is_v4, ingress, destination, outcome, interface, mtu }
    }

    fn outcome(
        &mut self,
        params: &[Term],
        (len, mtu, ingress): (Term, Term, Term),
        is_v4: bool,
        skips_neighbor: bool,
    ) -> Term {
        let number = |explorer: &mut Self, number| explorer.terms.constant(8, number);
        let mut outcome = self.part(RoutePart::Outcome);
        let missing = number(self, NO_INTERFACE);
        let is_known = self.terms.ult(outcome, missing);
        outcome = self.terms.ite(is_known, outcome, missing);
        let (success, fragment) = (number(self, SUCCESS), number(self, FRAGMENTATION_NEEDED));
        if skips_neighbor {
            let neighbor = number(self, NO_NEIGHBOR);
            let is_it = self.terms.eq(outcome, neighbor);
            outcome = self.terms.ite(is_it, success, outcome);
        }
        // Packets that are longer than the MTU need fragments, and no others.
        let mut has_route = self.terms.bool(false);
        for kind in WITH_ROUTE {
            let kind = number(self, kind);
            let is_it = self.terms.eq(outcome, kind);
            has_route = self.terms.or(has_route, is_it);
        }
        let len = self.terms.resize(len, 32);
        let is_long = self.terms.ult(mtu, len);
        let too_long = self.terms.and(has_route, is_long);
        let needs = self.terms.eq(outcome, fragment);
        outcome = self.terms.ite(needs, success, outcome);
        outcome = self.terms.ite(too_long, fragment, outcome);
        let zero = self.terms.constant(32, 0);
        let has_none = self.terms.eq(ingress, zero);
        outcome = self.terms.ite(has_none, missing, outcome);
        if !is_v4 {
            let not_forwarded = number(self, NOT_FORWARDED);
            for at in [SOURCE, DESTINATION] {
                let is_strict = self.is_strict(&params[at..at + 16]);
                outcome = self.terms.ite(is_strict, not_forwarded, outcome);
            }
        }
        outcome
    }

    /// Whether an IPv6 address means something on one link only (`rt6_need_strict`): multicast, link-local, loopback.
    fn is_strict(&mut self, address: &[Term]) -> Term {
        let first = self.terms.concat(address[0], address[1]);
        let mut starts_with = |mask: u64, bits: u64| {
            let (mask, bits) = (self.terms.constant(16, mask), self.terms.constant(16, bits));
            let masked = self.terms.and(first, mask);
            self.terms.eq(masked, bits)
        };
        let (multicast, link_local) = (starts_with(0xff00, 0xff00), starts_with(0xffc0, 0xfe80));
        let mut loopback = self.terms.bool(true);
        for (index, &byte) in address.iter().enumerate() {
            let value = self.terms.constant(8, u64::from(index == 15));
            let is_it = self.terms.eq(byte, value);
            loopback = self.terms.and(loopback, is_it);
        }
        let either = self.terms.or(multicast, link_local);
        self.terms.or(either, loopback)
    }

    /// The parameters as the look-up leaves them.
    fn params_after(&mut self, params: &[Term], route: &Route, skips_neighbor: bool) -> Vec<Term> {
        let mut after = params.to_vec();
        let (success, no_neighbor, fragment) = (
            self.is_outcome(route, SUCCESS),
            self.is_outcome(route, NO_NEIGHBOR),
            self.is_outcome(route, FRAGMENTATION_NEEDED),
        );
        let has_hop = self.terms.or(success, no_neighbor);
        let tells_mtu = self.terms.or(success, fragment);
        let metric = self.part(RoutePart::Metric);
        let mut set = |terms: &mut crate::solver::Terms, when: Term, at: usize, bytes: &[Term]| {
            for (byte, &new) in after[at..].iter_mut().zip(bytes) {
                *byte = terms.ite(when, new, *byte);
            }
        };
        let zero = self.terms.constant(8, 0);
        for (when, at, number, size) in [
            (tells_mtu, LEN, route.mtu, 2),
            (has_hop, IFINDEX, route.interface, 4),
            (has_hop, TOS, metric, 4),
        ] {
            let bytes = alu::bytes(&mut self.terms, number, size);
            set(&mut self.terms, when, at, &bytes);
        }
        set(&mut self.terms, success, VLAN, &[zero; 4]);
        // The next hop is a gateway or the destination itself; that of an IPv4 route may have an IPv6 address.
        let gateway: Vec<_> = (0..16).map(|byte| self.part(RoutePart::Gateway(byte))).collect();
        let (has_gateway, is_v6) = (self.part(RoutePart::HasGateway), self.part(RoutePart::GatewayIsV6));
        let has_gateway = self.terms.and(has_hop, has_gateway);
        let is_wide = if route.is_v4 { self.terms.and(has_gateway, is_v6) } else { has_gateway };
        let family = self.terms.constant(8, AF_INET6);
        set(&mut self.terms, is_wide, FAMILY, &[family]);
        set(&mut self.terms, has_gateway, DESTINATION, &gateway[..4]);
        set(&mut self.terms, is_wide, DESTINATION + 4, &gateway[4..]);
        if !skips_neighbor {
            for byte in 0..6 {
                let own = self.part(RoutePart::SourceMac(byte));
                let next = self.part(RoutePart::DestinationMac(byte));
                set(&mut self.terms, success, SOURCE_MAC + usize::from(byte), &[own]);
                set(&mut self.terms, success, DESTINATION_MAC + usize::from(byte), &[next]);
            }
        }
        after
    }
}
