//! Rules: which table a route is looked up in.

use std::ops::RangeInclusive;

use crate::{Flow, Network, NoRoute, Prefix, tables};

/// What a rule says to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Look into a table, and ask the next rule where it has nothing.
    Table(u32),
    /// Send nothing.
    Refuse(NoRoute),
}

/// A rule of routing policy, see ip-rule(8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Rules are asked by rising number.
    pub priority: u32,
    /// Where flows come from.
    pub source: Option<Prefix>,
    /// Where they go.
    pub destination: Option<Prefix>,
    /// Name of the interface that they came in on.
    pub input: Option<String>,
    /// Name of the interface that they must go out on.
    pub output: Option<String>,
    /// Their mark, and which bits of it count.
    pub mark: Option<(u32, u32)>,
    /// Their type of service.
    pub tos: u8,
    /// Their protocol.
    pub protocol: Option<u8>,
    /// Ports they come from.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Ports they go to.
    pub destination_ports: Option<RangeInclusive<u16>>,
    /// Whether it is for the flows that are not such.
    pub inverted: bool,
    /// Routes with prefixes of so many bits or fewer do not count.
    pub suppressed_len: Option<u8>,
    /// What to do.
    pub action: Action,
}

impl Rule {
    /// All flows go to a table.
    #[must_use]
    pub fn all(priority: u32, table: u32) -> Self {
        Self {
            priority,
            source: None,
            destination: None,
            input: None,
            output: None,
            mark: None,
            tos: 0,
            protocol: None,
            source_ports: None,
            destination_ports: None,
            inverted: false,
            suppressed_len: None,
            action: Action::Table(table),
        }
    }

    /// The rules of a new network namespace, for IPv4 and IPv6.
    pub(crate) fn usual() -> [Vec<Self>; 2] {
        let local = Self::all(0, tables::LOCAL);
        let main = Self::all(32766, tables::MAIN);
        let default = Self::all(32767, tables::DEFAULT);
        [vec![local.clone(), main.clone(), default], vec![local, main]]
    }

    /// Whether it is about a flow.
    pub(crate) fn matches(&self, flow: &Flow, network: &Network) -> bool {
        let is = |name: &Option<String>, index: Option<u32>| {
            name.as_ref().is_none_or(|name| {
                network.interface_named(name).is_some_and(|interface| Some(interface.index) == index)
            })
        };
        let within = |ports: &Option<RangeInclusive<u16>>, port| {
            ports.as_ref().is_none_or(|ports| ports.contains(&port))
        };
        let matches = is(&self.input, Some(flow.input))
            && is(&self.output, flow.output)
            && self.mark.is_none_or(|(mark, mask)| (flow.mark ^ mark) & mask == 0)
            && self.source.is_none_or(|from| flow.source.is_some_and(|source| from.contains(source)))
            && self.destination.is_none_or(|to| to.contains(flow.destination))
            && (self.tos == 0 || self.tos == flow.tos)
            && self.protocol.is_none_or(|protocol| protocol == flow.protocol)
            && within(&self.source_ports, flow.source_port)
            && within(&self.destination_ports, flow.destination_port);
        matches != self.inverted
    }
}
