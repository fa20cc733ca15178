//! Reading what iproute2 prints in JSON.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;

use crate::line::LineProblem;
use crate::table::table_number;
use crate::{Action, Family, Interface, Kind, Mac, Network, NextHop, NoRoute, Prefix, Route, Rule, tables};

/// Why a text gives no network.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// It is no JSON.
    #[error("line {line}, column {column}: {problem}")]
    Json {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// The cause.
        problem: String,
    },
    /// A line of words cannot be understood.
    #[error("line {line}: {problem}")]
    Line {
        /// Line, from 1.
        line: usize,
        /// The cause.
        problem: LineProblem,
    },
    /// Something in it cannot be understood, or not be had.
    #[error("list {list}, entry {entry}: {problem}")]
    Entry {
        /// Which of the lists in the text, from 1.
        list: usize,
        /// Which of its entries, from 1.
        entry: usize,
        /// The cause.
        problem: Problem,
    },
}

/// What is wrong with an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is no interface, address, route, neighbor, rule or setting.
    #[error("this is nothing that ip-address, -route, -neighbour, -rule or -netconf print")]
    Unknown,
    /// A field is not there.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field has no such values.
    #[error("{field}: {value} is {wrong}")]
    Wrong {
        /// The field.
        field: &'static str,
        /// The value found.
        value: String,
        /// The cause.
        wrong: &'static str,
    },
    /// An interface that is in no list before.
    #[error("there is no interface {0}; its list must come before what names it")]
    NoInterface(String),
    /// Two interfaces of one index or name.
    #[error("there is an interface of this index or name already")]
    Twice,
    /// A rule has a condition that Paceline does not have.
    #[error("the rule's condition {0} is not supported")]
    Condition(String),
}

/// An object whose keys may come more than once: the first one counts, as that is the route's own where it has a tunnel.
pub(crate) struct Object(Vec<(String, Value)>);

impl Object {
    fn get(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    fn text(&self, field: &'static str) -> Result<Option<&str>, Problem> {
        let text = |value: &'_ Value| wrong(field, value, "no text");
        self.get(field).map(|value| value.as_str().ok_or_else(|| text(value))).transpose()
    }

    fn number(&self, field: &'static str) -> Result<Option<u32>, Problem> {
        self.get(field).map(|value| number(field, value)).transpose()
    }

    fn parsed<T: std::str::FromStr>(
        &self,
        field: &'static str,
        is_not: &'static str,
    ) -> Result<Option<T>, Problem> {
        let parse = |text: &str| text.parse().map_err(|_| wrong(field, &text.into(), is_not));
        self.text(field)?.map(parse).transpose()
    }

    fn address(&self, field: &'static str) -> Result<Option<IpAddr>, Problem> {
        self.parsed(field, "no IP address")
    }

    fn has_flag(&self, flag: &str) -> bool {
        let flags = self.get("flags").and_then(Value::as_array);
        flags.is_some_and(|flags| flags.iter().any(|known| known == flag))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Object(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

fn wrong(field: &'static str, value: &Value, wrong: &'static str) -> Problem {
    Problem::Wrong { field, value: value.to_string(), wrong }
}

/// A number, as such or as text, decimal or hexadecimal.
fn number(field: &'static str, value: &Value) -> Result<u32, Problem> {
    let of_text = |text: &str| match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    };
    let number = match value {
        Value::String(text) => of_text(text),
        other => other.as_u64().and_then(|number| u32::try_from(number).ok()),
    };
    number.ok_or_else(|| wrong(field, value, "no number of 32 bits"))
}

fn byte(field: &'static str, value: u32) -> Result<u8, Problem> {
    u8::try_from(value).map_err(|_| wrong(field, &value.into(), "no number of 8 bits"))
}

/// A hardware address; those that are no six bytes long are no addresses that packets could have.
fn mac(field: &'static str, text: &str) -> Result<Mac, Problem> {
    let is_wrong = || wrong(field, &text.into(), "no hardware address");
    let bytes: Vec<u8> = text
        .split(':')
        .map(|byte| u8::from_str_radix(byte, 16).map_err(|_| is_wrong()))
        .collect::<Result<_, _>>()?;
    bytes.try_into().map_err(|_| is_wrong())
}

/// A network that is being read.
#[derive(Default)]
pub(crate) struct Draft {
    pub(crate) network: Network,
    /// Whether any interface was read.
    has_interfaces: bool,
    /// Whether any setting was read.
    has_settings: bool,
    /// The rules read so far.
    rules: [Option<Vec<Rule>>; 2],
}

impl NetworkError {
    /// The lines of a list at a place of the text, which is no JSON.
    pub(crate) fn json(text: &str, at: usize, error: &serde_json::Error) -> Self {
        let before = text.get(..at).unwrap_or_default();
        let start = before.rfind('\n').map_or(at, |line| at - line - 1);
        Self::Json {
            line: before.matches('\n').count() + error.line(),
            column: error.column() + if error.line() == 1 { start } else { 0 },
            // The place that it names counts from the list's start.
            problem: error.to_string().split(" at line ").next().unwrap_or_default().to_owned(),
        }
    }
}

impl Draft {
    /// Adds the entries of the list of a number.
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
            Err(Problem::Unknown)
        }
    }

    fn interface(&mut self, object: &Object) -> Result<(), Problem> {
        if !self.has_interfaces {
            (self.has_interfaces, self.network.interfaces) = (true, Vec::new());
        }
        let index =
            object.number("ifindex")?.filter(|&index| index != 0).ok_or(Problem::Missing("ifindex"))?;
        let name = object.text("ifname")?.unwrap_or_default().to_owned();
        if self.network.interface(index).is_some() || self.network.interface_named(&name).is_some() {
            return Err(Problem::Twice);
        }
        let link_type = object.text("link_type")?.unwrap_or("ether");
        let header = Interface::header_of(link_type);
        // Tunnels have addresses of other kinds, and no header that packets could have.
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
        self.network.interfaces.push(Interface {
            index,
            name,
            mtu: object.number("mtu")?.ok_or(Problem::Missing("mtu"))?,
            header,
            address,
            addresses,
            forwards: [false; 2],
            ignores_linkdown: [false; 2],
            has_no_neighbors: object.has_flag("LOOPBACK") || object.has_flag("POINTOPOINT"),
        });
        Ok(())
    }

    fn index_of(&self, name: &str) -> Result<u32, Problem> {
        let found = self.network.interface_named(name);
        found.map(|interface| interface.index).ok_or_else(|| Problem::NoInterface(name.to_owned()))
    }

    fn setting(&mut self, object: &Object) -> Result<(), Problem> {
        self.has_settings = true;
        let family = match object.text("family")? {
            Some("inet") => Family::V4,
            Some("inet6") => Family::V6,
            // Those of MPLS are of no concern here.
            _ => return Ok(()),
        };
        let name = object.text("interface")?.unwrap_or_default();
        let is_set = |field| object.get(field).and_then(Value::as_bool).unwrap_or(false);
        if let Some(interface) = self.network.interfaces.iter_mut().find(|interface| interface.name == name) {
            interface.forwards[family as usize] = is_set("forwarding");
            interface.ignores_linkdown[family as usize] = is_set("ignore_routes_with_linkdown");
        }
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
        let header = self.network.interface(interface).map_or(0, |interface| interface.header);
        let lladdr = match object.text("lladdr")? {
            Some(text) if header != 0 => mac("lladdr", text)?,
            _ => [0; 6],
        };
        self.network.neighbors.insert((interface, address), lladdr);
        Ok(())
    }

    fn route(&mut self, object: &Object) -> Result<(), Problem> {
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
                // Only routes of IPv6 have a preference; and those of IPv4 may have a gateway of IPv6.
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
            // Routes that lead nowhere need no next hop, but are found by one.
            hops: if hops.is_empty() { vec![nowhere()] } else { hops },
        };
        self.add_route(table, route);
        Ok(())
    }

    fn add_route(&mut self, table: u32, route: Route) {
        let family = Family::from(route.destination.address());
        self.network.tables.entry((table, family)).or_default().add(route);
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

    /// A list of rules is of one family.
    fn add_rules(&mut self, rules: Vec<(Option<Family>, Rule)>) {
        if rules.is_empty() {
            return;
        }
        let told = rules.iter().find_map(|(family, _)| *family);
        let next = if self.rules[Family::V4 as usize].is_none() { Family::V4 } else { Family::V6 };
        let mut rules: Vec<Rule> = rules.into_iter().map(|(_, rule)| rule).collect();
        rules.sort_by_key(|rule| rule.priority);
        self.rules[told.unwrap_or(next) as usize].get_or_insert_default().extend(rules);
    }

    pub(crate) fn finish(mut self) -> Network {
        if !self.has_settings {
            self.network.interfaces.iter_mut().for_each(|interface| interface.forwards = [true; 2]);
        }
        for family in [Family::V4, Family::V6] {
            if let Some(rules) = self.rules[family as usize].take() {
                self.network.rules[family as usize] = rules;
            }
            if !self.network.tables.contains_key(&(tables::LOCAL, family)) {
                self.own_addresses(family);
            }
        }
        self.network
    }

    /// The routes that come with the interfaces' own addresses.
    fn own_addresses(&mut self, family: Family) {
        let own: Vec<(u32, IpAddr)> = (self.network.interfaces.iter())
            .flat_map(|interface| interface.addresses.iter().map(|(address, _)| (interface.index, *address)))
            .filter(|(_, address)| Family::from(*address) == family)
            .collect();
        for (interface, address) in own {
            let route = Route {
                destination: Prefix::host(address),
                kind: Kind::NotForwarded,
                tos: 0,
                metric: 0,
                source: None,
                locked_mtu: None,
                hops: vec![NextHop { interface, ..nowhere() }],
            };
            self.add_route(tables::LOCAL, route);
        }
    }
}

fn nowhere() -> NextHop {
    NextHop { interface: 0, gateway: None, weight: 1, dead: false, linkdown: false, encapsulates: false }
}

/// Only a locked MTU counts for packets that are forwarded, and iproute2 does not print in JSON that it is: here it is
/// asked for by the name that it has in text.
fn locked_mtu(object: &Object) -> Result<Option<u32>, Problem> {
    let metrics = object.get("metrics").and_then(Value::as_array);
    let locked = metrics.into_iter().flatten().find_map(|metrics| metrics.get("mtu lock"));
    locked.map(|mtu| number("mtu lock", mtu)).transpose()
}

/// A type of route by its name, or by its number as `ip -N` prints it (`include/uapi/linux/rtnetlink.h`).
fn kind(field: &'static str, text: &str) -> Result<Kind, Problem> {
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

/// A rule, and of which family it is, where that can be told.
fn rule(object: &Object) -> Result<(Option<Family>, Rule), Problem> {
    const KNOWN: [&str; 25] = [
        "priority",
        "src",
        "srclen",
        "dst",
        "dstlen",
        "iif",
        "iif_detached",
        "oif",
        "oif_detached",
        "fwmark",
        "fwmask",
        "tos",
        "ipproto",
        "sport",
        "sport_start",
        "sport_end",
        "dport",
        "dport_start",
        "dport_end",
        "not",
        "suppress_prefixlen",
        "table",
        "action",
        "protocol",
        "to_tbl",
    ];
    if let Some((unknown, _)) = object.0.iter().find(|(name, _)| !KNOWN.contains(&name.as_str())) {
        return Err(Problem::Condition(unknown.clone()));
    }
    let priority = object.number("priority")?.ok_or(Problem::Missing("priority"))?;
    let (source, destination) = (selector(object, "src", "srclen")?, selector(object, "dst", "dstlen")?);
    let mark = match object.number("fwmark")? {
        Some(mark) => Some((mark, object.number("fwmask")?.unwrap_or(u32::MAX))),
        None => None,
    };
    let action = match object.text("action")? {
        None => {
            let table = object.get("table").ok_or(Problem::Missing("table"))?;
            let number = table_number(table.to_string().trim_matches('"'));
            Action::Table(number.ok_or_else(|| wrong("table", table, "a name; ip -N prints its number"))?)
        }
        Some(action) => Action::Refuse(match kind("action", action)? {
            // As the kernel's `fib4_rule_action`: other than a route, a rule makes no host unreachable.
            Kind::Refused(NoRoute::Unreachable) => NoRoute::None,
            Kind::Refused(why) => why,
            _ => return Err(wrong("action", &action.into(), "not supported")),
        }),
    };
    let suppressed_len = object.number("suppress_prefixlen")?.map(|len| byte("suppress_prefixlen", len));
    let rule = Rule {
        source,
        destination,
        input: object.text("iif")?.map(str::to_owned),
        output: object.text("oif")?.map(str::to_owned),
        mark,
        tos: byte("tos", object.number("tos")?.unwrap_or(0))?,
        protocol: protocol(object)?,
        source_ports: ports(object, ["sport", "sport_start", "sport_end"])?,
        destination_ports: ports(object, ["dport", "dport_start", "dport_end"])?,
        inverted: object.has("not"),
        suppressed_len: suppressed_len.transpose()?,
        action,
        ..Rule::all(priority, 0)
    };
    let address = source.or(destination).map(|prefix| Family::from(prefix.address()));
    Ok((address, rule))
}

fn selector(object: &Object, field: &'static str, len: &'static str) -> Result<Option<Prefix>, Problem> {
    if matches!(object.text(field)?, None | Some("all")) {
        return Ok(None);
    }
    let Some(prefix) = object.parsed::<Prefix>(field, "no address")? else { return Ok(None) };
    match object.number(len)? {
        None => Ok(Some(prefix)),
        Some(bits) => {
            let prefix = Prefix::new(prefix.address(), byte(len, bits)?);
            prefix.map(Some).ok_or_else(|| wrong(len, &bits.into(), "more than the address has bits"))
        }
    }
}

fn protocol(object: &Object) -> Result<Option<u8>, Problem> {
    match object.get("ipproto") {
        None => Ok(None),
        Some(value) => Ok(Some(match value.as_str() {
            Some("icmp") => 1,
            Some("tcp") => 6,
            Some("udp") => 17,
            Some("ipv6-icmp") => 58,
            Some("sctp") => 132,
            // So `ip -N` writes it.
            Some(text) => {
                let digits = text.strip_prefix("ipproto-").unwrap_or(text);
                byte("ipproto", number("ipproto", &digits.into())?)?
            }
            None => byte("ipproto", number("ipproto", value)?)?,
        })),
    }
}

fn ports(object: &Object, fields: [&'static str; 3]) -> Result<Option<RangeInclusive<u16>>, Problem> {
    let port = |field| {
        let narrow = |port: u32| u16::try_from(port).map_err(|_| wrong(field, &port.into(), "no port"));
        object.number(field)?.map(narrow).transpose()
    };
    let [one, start, end] = fields;
    match (port(one)?, port(start)?, port(end)?) {
        (Some(port), ..) => Ok(Some(port..=port)),
        (None, Some(start), Some(end)) => Ok(Some(start..=end)),
        _ => Ok(None),
    }
}
