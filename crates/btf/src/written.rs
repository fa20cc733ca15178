//! Values as people write them: addresses, and numbers in network byte order.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::types::{Btf, Int, IntEncoding, Type, TypeId};
use crate::value::MOST_DEPTH;

/// The parts of names of members and variables that hold an Ethernet address if they have six bytes.
const ETHERNET: [&str; 7] = ["mac", "eth", "addr", "src", "dst", "source", "dest"];
/// The parts of names of arrays of bytes that hold an IPv4 or IPv6 address if they are as long.
const OCTETS: [&str; 2] = ["addr", "octets"];
/// The parts of names of those that hold an IPv6 address if they have 16 bytes.
const IPV6: [&str; 3] = ["ip6", "v6", "in6"];

/// The text that people write for a value, if its type, or for arrays its name, says so. The length of `bytes` is the type's size.
pub(crate) fn written_form(btf: &Btf, id: TypeId, name: &str, bytes: &[u8]) -> Option<String> {
    let mut id = id;
    for _ in 0..=MOST_DEPTH {
        let ty = btf.get(id)?;
        let own = ty.name().map_or("", |name| btf.name(name));
        match ty {
            Type::Typedef { .. } if matches!(own, "__be32" | "be32" | "in_addr_t") => return ipv4(bytes),
            Type::Typedef { .. } if matches!(own, "__be16" | "be16" | "in_port_t") => return number(bytes),
            Type::Struct(_) => {
                return match own {
                    "in_addr" => ipv4(bytes),
                    "in6_addr" => ipv6(bytes),
                    "ether_addr" | "ethaddr" => ethernet(bytes),
                    _ => None,
                };
            }
            Type::Array { element, .. } => return array(btf, *element, name, bytes),
            _ => id = ty.unwrapped()?,
        }
    }
    None
}

/// An array has no type of its own: an address is told by its size and its name. Six bytes without a name are the whole key or value of a
/// map.
fn array(btf: &Btf, element: TypeId, name: &str, bytes: &[u8]) -> Option<String> {
    let name = name.to_ascii_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| name.contains(part));
    let is_number = |ty: &Type, size| matches!(ty, Type::Int(Int { size: of, encoding: IntEncoding::Unsigned, .. }) if *of == size);
    let (_, ty) = btf.resolve(element).ok()?;
    match bytes.len() {
        4 if is_number(ty, 1) && has(&OCTETS) => ipv4(bytes),
        6 if is_number(ty, 1) && (name.is_empty() || has(&ETHERNET)) => ethernet(bytes),
        16 if is_number(ty, 1) && (has(&IPV6) || has(&OCTETS)) => ipv6(bytes),
        16 if is_number(ty, 4) && has(&IPV6) => ipv6(bytes),
        _ => None,
    }
}

/// The text of a prefix: its length as 32 bits in native byte order, then an IPv4 or IPv6 address. `None` for other keys.
pub(crate) fn prefix_form(key: &[u8]) -> Option<String> {
    let (length, address) = key.split_first_chunk()?;
    let (length, bits) = (u32::from_ne_bytes(*length), address.len() * 8);
    let text = match address.len() {
        4 => ipv4(address)?,
        16 => ipv6(address)?,
        _ => return None,
    };
    (length as usize <= bits).then(|| format!("{text}/{length}"))
}

fn ipv4(bytes: &[u8]) -> Option<String> {
    <[u8; 4]>::try_from(bytes).ok().map(|bytes| Ipv4Addr::from(bytes).to_string())
}

fn ipv6(bytes: &[u8]) -> Option<String> {
    <[u8; 16]>::try_from(bytes).ok().map(|bytes| Ipv6Addr::from(bytes).to_string())
}

fn ethernet(bytes: &[u8]) -> Option<String> {
    let [a, b, c, d, e, f] = <[u8; 6]>::try_from(bytes).ok()?;
    Some(format!("{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{f:02x}"))
}

fn number(bytes: &[u8]) -> Option<String> {
    <[u8; 2]>::try_from(bytes).ok().map(|bytes| format!("htons({})", u16::from_be_bytes(bytes)))
}

/// Most parts of a key that are looked at.
const MOST_LEAVES: usize = 256;

/// Whether a key type of a longest-prefix trie has one member, or a union of them, behind the length: an address, and not an address
/// with other parts.
pub(crate) fn is_one_address(btf: &Btf, id: TypeId) -> bool {
    let Ok(size) = btf.size_of(id) else { return false };
    let mut leaves = Vec::new();
    let is_known = collect(btf, id, 0, 0, &mut leaves);
    let mut data = leaves.iter().filter(|(start, _)| *start >= LENGTH).peekable();
    let is_single = data.peek().is_none() || leaves.contains(&(LENGTH, size));
    is_known && is_single && data.all(|(start, _)| *start == LENGTH)
}

/// Bytes of the length in front of an address.
const LENGTH: u64 = 4;

/// Start and end of each member in bytes; false if they are too many.
fn collect(btf: &Btf, id: TypeId, base: u64, depth: usize, leaves: &mut Vec<(u64, u64)>) -> bool {
    let (Ok((_, ty)), Ok(size)) = (btf.resolve(id), btf.size_of(id)) else { return false };
    match ty {
        Type::Struct(composite) | Type::Union(composite) if depth <= MOST_DEPTH => {
            composite.members.iter().all(|member| {
                let start = base.saturating_add(u64::from(member.bit_offset / 8));
                collect(btf, member.ty, start, depth + 1, leaves)
            })
        }
        Type::Struct(_) | Type::Union(_) => false,
        _ => {
            if size > 0 {
                leaves.push((base, base.saturating_add(size)));
            }
            leaves.len() <= MOST_LEAVES
        }
    }
}
