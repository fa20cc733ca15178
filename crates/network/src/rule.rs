//! Routing policy rules, which select the table of a look-up.

use std::ops::RangeInclusive;

use crate::flow::{Flow, NoRoute, tables};
use crate::interface::Interfaces;
use crate::prefix::Prefix;

/// Action of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Look up the route in a table, and continue with the next rule if it has none.
    Table(u32),
    /// Refuse the packet.
    Refuse(NoRoute),
}

/// A routing policy rule, see ip-rule(8). All conditions that are present must match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Rules are evaluated by increasing priority.
    pub priority: u32,
    /// Source prefix.
    pub source: Option<Prefix>,
    /// Destination prefix.
    pub destination: Option<Prefix>,
    /// Name of the input interface.
    pub input: Option<String>,
    /// Name of the required output interface.
    pub output: Option<String>,
    /// Mark and its mask.
    pub mark: Option<(u32, u32)>,
    /// Type of service.
    pub tos: u8,
    /// IP protocol number.
    pub protocol: Option<u8>,
    /// Range of source ports.
    pub source_ports: Option<RangeInclusive<u16>>,
    /// Range of destination ports.
    pub destination_ports: Option<RangeInclusive<u16>>,
    /// Whether the match is inverted.
    pub inverted: bool,
    /// Routes with prefixes of at most this length in bits are ignored.
    pub suppressed_len: Option<u8>,
    /// Action.
    pub action: Action,
}

impl Rule {
    /// A rule that selects a table for all flows.
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

    /// Whether it matches a flow.
    pub(crate) fn matches(&self, flow: &Flow, interfaces: &Interfaces) -> bool {
        let is = |name: &Option<String>, index: Option<u32>| {
            name.as_ref().is_none_or(|name| {
                interfaces.named(name).is_some_and(|interface| Some(interface.index) == index)
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
