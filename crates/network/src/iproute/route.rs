//! Routes in the output of `ip -j route`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::flow::{NoRoute, tables};
use crate::prefix::Prefix;
use crate::route::{Kind, NextHop, Route};
use serde::de::Deserialize;
use serde_json::Value;

use super::error::Problem;
use crate::iproute::draft::Draft;
use crate::iproute::json::{Object, byte, number, wrong};

impl Draft {
    pub(crate) fn route(&mut self, object: &Object) -> Result<(), Problem> {
        let kind = object.text("type")?.map_or(Ok(Kind::Unicast), |text| kind("type", text))?;
        let table = object.get("table").map(Value::to_string).unwrap_or_else(|| "main".to_owned());
        let number = table_number(table.trim_matches('"'));
        let table = number.ok_or_else(|| wrong("table", &table.into(), "a name; ip -N prints its number"))?;
        let mut hops = Vec::new();
        match object.get("nexthops").and_then(Value::as_array) {
            Some(values) => {
                for value in values {
                    let hop =
                        Object::deserialize(value).map_err(|_| wrong("nexthops", value, "no next hop"))?;
                    hops.extend(self.hop(&hop)?);
                }
            }
            None => hops.extend(self.hop(object)?),
        }
        let source = object.address("prefsrc")?;
        let destination = match object.text("dst")? {
            Some("default") => {
                let known = source.or(hops.iter().find_map(|hop| hop.gateway));
                // Only IPv6 routes have a preference; IPv4 routes may have an IPv6 gateway (`via`).
                let is_v6 = object.has("pref") || known.is_some_and(|a| a.is_ipv6()) && !object.has("via");
                let any: IpAddr =
                    if is_v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
                Prefix::new(any, 0).ok_or(Problem::Missing("dst"))?
            }
            _ => object.parsed("dst", "no prefix")?.ok_or(Problem::Missing("dst"))?,
        };
        let route = Route {
            destination,
            kind,
            tos: byte("tos", object.number("tos")?.unwrap_or(0))?,
            metric: object.number("metric")?.unwrap_or(0),
            source,
            locked_mtu: locked_mtu(object)?,
            // Routes that refuse packets have no next hops in the text, but look-ups return one.
            hops: if hops.is_empty() { vec![NextHop::default()] } else { hops },
        };
        self.builder.route(table, route);
        Ok(())
    }

    fn hop(&self, object: &Object) -> Result<Option<NextHop>, Problem> {
        let Some(device) = object.text("dev")? else { return Ok(None) };
        let gateway = match object.get("via") {
            Some(value) => {
                let via = Object::deserialize(value).map_err(|_| wrong("via", value, "no address"))?;
                via.address("host")?
            }
            None => object.address("gateway")?,
        };
        Ok(Some(NextHop {
            interface: self.index_of(device)?,
            gateway,
            weight: object.number("weight")?.unwrap_or(1).max(1),
            dead: object.has_flag("dead"),
            linkdown: object.has_flag("linkdown"),
            encapsulates: object.has("encap"),
        }))
    }
}

/// Only a locked MTU applies to forwarded packets, and iproute2 does not print the lock in JSON: this expects the name that it has
/// in text output.
fn locked_mtu(object: &Object) -> Result<Option<u32>, Problem> {
    let metrics = object.get("metrics").and_then(Value::as_array);
    let locked = metrics.into_iter().flatten().find_map(|metrics| metrics.get("mtu lock"));
    locked.map(|mtu| number("mtu lock", mtu)).transpose()
}

/// A route type by its name, or by its number as in `ip -N` (`include/uapi/linux/rtnetlink.h`).
pub(crate) fn kind(field: &'static str, text: &str) -> Result<Kind, Problem> {
    Ok(match text {
        "unicast" | "1" => Kind::Unicast,
        "local" | "2" | "broadcast" | "3" | "anycast" | "4" | "multicast" | "5" => Kind::NotForwarded,
        "blackhole" | "6" => Kind::Refused(NoRoute::Blackhole),
        "unreachable" | "7" => Kind::Refused(NoRoute::Unreachable),
        "prohibit" | "8" => Kind::Refused(NoRoute::Prohibited),
        "throw" | "9" => Kind::Throw,
        other => return Err(wrong(field, &other.into(), "no type of route")),
    })
}

/// The number of a table by its name or number.
pub(crate) fn table_number(name: &str) -> Option<u32> {
    match name {
        "local" => Some(tables::LOCAL),
        "main" => Some(tables::MAIN),
        "default" => Some(tables::DEFAULT),
        "unspec" => Some(0),
        number => number.parse().ok(),
    }
}
