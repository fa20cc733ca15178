//! Interfaces, settings and neighbors in the output of `ip -j addr`, `ip -j netconf` and `ip -j neigh`, and lists of all kinds.

use paceline_network::{ETHERNET_HEADER, Family, Interface, NetworkBuilder, Prefix, Rule};
use serde::de::Deserialize;
use serde_json::Value;

use crate::json::{Object, byte, mac, wrong};
use crate::rule::rule;
use crate::{NetworkError, Problem};

/// A network while its text is being parsed.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) builder: NetworkBuilder,
    /// Families whose rules were already parsed.
    has_rules: [bool; 2],
}

impl Draft {
    /// Adds the entries of a list with this number.
    pub(crate) fn add_list(&mut self, list: usize, entries: &[Object]) -> Result<(), NetworkError> {
        let mut rules = Vec::new();
        for (entry, object) in entries.iter().enumerate().filter(|(_, object)| !object.0.is_empty()) {
            let place = |problem| NetworkError::Entry { list, entry: entry + 1, problem };
            self.add(object, &mut rules).map_err(place)?;
        }
        self.add_rules(rules);
        Ok(())
    }

    fn add(&mut self, object: &Object, rules: &mut Vec<(Option<Family>, Rule)>) -> Result<(), Problem> {
        if object.has("ifname") {
            self.interface(object)
        } else if object.has("interface") {
            self.setting(object)
        } else if object.has("priority") {
            rules.push(rule(object)?);
            Ok(())
        } else if object.has("lladdr") || object.has("state") {
            self.neighbor(object)
        } else if object.has("dst") {
            self.route(object)
        } else {
            Err(Problem::UnknownEntry)
        }
    }

    fn interface(&mut self, object: &Object) -> Result<(), Problem> {
        let index =
            object.number("ifindex")?.filter(|&index| index != 0).ok_or(Problem::Missing("ifindex"))?;
        let name = object.text("ifname")?.unwrap_or_default().to_owned();
        let link_type = object.text("link_type")?.unwrap_or("ether");
        let header = header_of(link_type);
        // Tunnels have other kinds of addresses, and no link-layer header for packets.
        let address = match object.text("address")? {
            Some(address) if header != 0 => mac("address", address)?,
            _ => [0; 6],
        };
        let mut addresses = Vec::new();
        for value in object.get("addr_info").and_then(Value::as_array).into_iter().flatten() {
            let entry = Object::deserialize(value).map_err(|_| wrong("addr_info", value, "no address"))?;
            if let Some(local) = entry.address("local")? {
                let len = byte("prefixlen", entry.number("prefixlen")?.unwrap_or(0))?;
                let network = Prefix::new(local, len)
                    .ok_or_else(|| wrong("prefixlen", &len.into(), "more than the address has bits"))?;
                addresses.push((local, network));
            }
        }
        let interface = Interface {
            index,
            name,
            mtu: object.number("mtu")?.ok_or(Problem::Missing("mtu"))?,
            header,
            address,
            addresses,
            forwards: [false; 2],
            ignores_linkdown: [false; 2],
            has_no_neighbors: object.has_flag("LOOPBACK") || object.has_flag("POINTOPOINT"),
        };
        self.builder.interface(interface).map_err(|_| Problem::Twice)
    }

    pub(crate) fn index_of(&self, name: &str) -> Result<u32, Problem> {
        let found = self.builder.network().interface_named(name);
        found.map(|interface| interface.index).ok_or_else(|| Problem::NoInterface(name.to_owned()))
    }

    fn setting(&mut self, object: &Object) -> Result<(), Problem> {
        let family = match object.text("family")? {
            Some("inet") => Family::V4,
            Some("inet6") => Family::V6,
            // Other families, such as MPLS, are ignored.
            _ => return Ok(()),
        };
        let name = object.text("interface")?.unwrap_or_default();
        let is_set = |field| object.get(field).and_then(Value::as_bool).unwrap_or(false);
        self.builder.forwarding(name, family, is_set("forwarding"), is_set("ignore_routes_with_linkdown"));
        Ok(())
    }

    fn neighbor(&mut self, object: &Object) -> Result<(), Problem> {
        // `NUD_VALID`
        const VALID: [&str; 6] = ["PERMANENT", "NOARP", "REACHABLE", "PROBE", "STALE", "DELAY"];
        let states = object.get("state").and_then(Value::as_array);
        let is_valid = states.is_some_and(|states| {
            states.iter().any(|state| state.as_str().is_some_and(|state| VALID.contains(&state)))
        });
        if !is_valid {
            return Ok(());
        }
        let address = object.address("dst")?.ok_or(Problem::Missing("dst"))?;
        let interface = self.index_of(object.text("dev")?.ok_or(Problem::Missing("dev"))?)?;
        let header = self.builder.network().interface(interface).map_or(0, |interface| interface.header);
        let lladdr = match object.text("lladdr")? {
            Some(text) if header != 0 => mac("lladdr", text)?,
            _ => [0; 6],
        };
        self.builder.neighbor(interface, address, lladdr);
        Ok(())
    }

    /// A list of rules belongs to a single family.
    fn add_rules(&mut self, rules: Vec<(Option<Family>, Rule)>) {
        if rules.is_empty() {
            return;
        }
        let told = rules.iter().find_map(|(family, _)| *family);
        let next = if self.has_rules[Family::V4 as usize] { Family::V6 } else { Family::V4 };
        let family = told.unwrap_or(next);
        self.has_rules[family as usize] = true;
        self.builder.rules(family, rules.into_iter().map(|(_, rule)| rule));
    }
}

/// Size in bytes of the header of a link type, by iproute2's name or number.
fn header_of(link_type: &str) -> u32 {
    if matches!(link_type, "ether" | "[1]" | "loopback" | "[772]") { ETHERNET_HEADER } else { 0 }
}
