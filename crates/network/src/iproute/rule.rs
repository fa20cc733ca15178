//! Rules in the output of `ip -j rule`.

use std::ops::RangeInclusive;

use crate::address::Family;
use crate::flow::NoRoute;
use crate::prefix::Prefix;
use crate::rule::{Action, Rule};

use super::error::Problem;
use crate::iproute::json::{Object, byte, number, wrong};
use crate::iproute::route::{kind, table_number};
use crate::route::Kind;

/// A rule, and its family if it can be determined.
pub(crate) fn rule(object: &Object) -> Result<(Option<Family>, Rule), Problem> {
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
            // As in the kernel's `fib4_rule_action`: unlike a route, a rule does not make a host unreachable.
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
            // The format of `ip -N`.
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
