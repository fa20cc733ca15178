//! Interfaces, as `ip -j addr` prints them, and their settings, as `ip -j netconf` does.

use crate::address::Family;
use crate::interface::{ETHERNET_HEADER, Interface};
use crate::prefix::Prefix;
use serde::de::Deserialize;
use serde_json::Value;

use super::error::Problem;
use crate::iproute::draft::Draft;
use crate::iproute::json::{Object, byte, mac, wrong};

impl Draft {
    pub(crate) fn interface(&mut self, object: &Object) -> Result<(), Problem> {
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

    pub(crate) fn setting(&mut self, object: &Object) -> Result<(), Problem> {
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
}

/// Size in bytes of the header of a link type, by iproute2's name or number.
fn header_of(link_type: &str) -> u32 {
    if matches!(link_type, "ether" | "[1]" | "loopback" | "[772]") { ETHERNET_HEADER } else { 0 }
}
