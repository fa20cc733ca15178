//! Packets by flow.

use std::collections::HashMap;

use paceline::Verdict;
use paceline::packet::Layers;
use serde_json::{Value as Json, json};

/// Most flows that are told apart, and most that the page has.
const MOST: usize = 100_000;
const SHOWN: usize = 200;

/// Counts of flows by verdict.
#[derive(Default)]
pub(super) struct Flows {
    counts: HashMap<String, [u64; Verdict::ALL.len()]>,
    /// Packets of flows that came when there were too many.
    others: u64,
}

impl Flows {
    pub(super) fn add(&mut self, packet: &[u8], verdict: Verdict) {
        let name = name(packet);
        if self.counts.len() >= MOST && !self.counts.contains_key(&name) {
            self.others += 1;
            return;
        }
        if let Some(count) = self.counts.entry(name).or_default().get_mut(verdict as usize) {
            *count += 1;
        }
    }

    /// The flows with the most packets.
    pub(super) fn to_json(&self) -> Json {
        let mut flows: Vec<_> = self.counts.iter().collect();
        flows.sort_by_key(|(name, counts)| (std::cmp::Reverse(counts.iter().sum::<u64>()), (*name).clone()));
        let shown: Vec<_> = flows.iter().take(SHOWN).map(|(name, counts)| json!([name, counts])).collect();
        json!({ "count": flows.len(), "others": self.others, "shown": shown })
    }
}

/// `tcp 10.0.0.1:1000 > 10.0.0.2:80`, by the innermost addresses; the names of the layers without any.
fn name(packet: &[u8]) -> String {
    let layers = Layers::new(packet);
    let last = |field: &str| {
        let found = layers.headers().iter().rev();
        found.filter_map(|layer| layer.fields().find(|f| f.field.name == field)).next().map(|f| f.to_string())
    };
    let ip = layers.headers().iter().rev().find(|layer| matches!(layer.protocol.name, "ipv4" | "ipv6"));
    let Some(ip) = ip else {
        return layers.headers().iter().map(|layer| layer.protocol.name).collect::<Vec<_>>().join(" / ");
    };
    let address =
        |field: &str| ip.fields().find(|f| f.field.name == field).map_or_else(String::new, |f| f.to_string());
    let protocol = layers.headers().last().map_or("", |layer| layer.protocol.name);
    let port = |field: &str| match protocol {
        "tcp" | "udp" | "sctp" => last(field).map_or_else(String::new, |port| format!(":{port}")),
        _ => String::new(),
    };
    format!("{protocol} {}{} > {}{}", address("src"), port("sport"), address("dst"), port("dport"))
}

#[cfg(test)]
mod tests {
    use paceline::packet::build;

    use super::name;

    #[test]
    fn flows_are_named_by_their_innermost_addresses() {
        let name = |text: &str| name(&build(text).expect("a packet"));
        assert_eq!(name("eth / ipv4 src=10.0.0.1 / tcp sport=7"), "tcp 10.0.0.1:7 > 192.0.2.2:80");
        assert_eq!(name("eth / ipv4 / ipv4 src=10.0.0.1 / icmp"), "icmp 10.0.0.1 > 192.0.2.2");
        assert_eq!(name("eth / arp"), "eth / arp");
    }
}
