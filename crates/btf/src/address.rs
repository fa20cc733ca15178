//! Addresses and numbers in network byte order, in text form.

use std::net::{Ipv4Addr, Ipv6Addr};

/// The bytes of an address in network order, with the address type selected by size in bytes: 4 for IPv4, 6 for Ethernet
/// (`00:11:22:33:44:55`), 16 for IPv6. Numbers in network order are `htons(443)` with 2 bytes and `htonl(1)` with 4. `None` for other
/// texts and sizes.
#[must_use]
pub fn address_bytes(text: &str, size: usize) -> Option<Vec<u8>> {
    match size {
        2 => in_parentheses(text, "htons").and_then(|number| u16::try_from(number).ok()).map(be_bytes),
        4 => match in_parentheses(text, "htonl") {
            Some(number) => Some(number.to_be_bytes().to_vec()),
            None => text.parse::<Ipv4Addr>().ok().map(|address| address.octets().to_vec()),
        },
        16 => text.parse::<Ipv6Addr>().ok().map(|address| address.octets().to_vec()),
        6 => ethernet(text),
        _ => None,
    }
}

fn be_bytes(number: u16) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// The number in `FUNCTION(NUMBER)`, decimal or after `0x`; libbpf's names of the functions begin with `bpf_`.
fn in_parentheses(text: &str, function: &str) -> Option<u32> {
    let text = text.strip_prefix("bpf_").unwrap_or(text);
    let digits = text.strip_prefix(function)?.strip_prefix('(')?.strip_suffix(')')?;
    match digits.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u32::from_str_radix(hex, 16).ok(),
        None if !digits.starts_with('+') => digits.parse().ok(),
        _ => None,
    }
}

fn ethernet(text: &str) -> Option<Vec<u8>> {
    let byte = |part: &str| match part.len() {
        1 | 2 if !part.starts_with('+') => u8::from_str_radix(part, 16).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = text.split(':').map(byte).collect();
    bytes.filter(|bytes| bytes.len() == 6)
}

/// The key of a longest-prefix trie for a prefix such as `10.0.0.0/8` or `2001:db8::/32`: the length as 32 bits in native byte
/// order, then the address. An address without a length is all of it. `None` for other texts, and for other key sizes.
#[must_use]
pub fn prefix_bytes(text: &str, size: usize) -> Option<Vec<u8>> {
    let (address, length) = text.split_once('/').map_or((text, None), |(text, length)| (text, Some(length)));
    let address = address_bytes(address, size.checked_sub(4).filter(|size| matches!(size, 4 | 16))?)?;
    let bits = address.len() as u32 * 8;
    let length = match length {
        Some(length) => length.parse::<u32>().ok().filter(|length| *length <= bits)?,
        None => bits,
    };
    Some([&length.to_ne_bytes()[..], &address].concat())
}

/// The form of the prefixes that [`prefix_bytes`] takes for keys of a size; `None` for sizes that hold no address.
#[must_use]
pub fn prefix_form(size: usize) -> Option<&'static str> {
    match size {
        8 => Some("an IPv4 address with a length of 0 to 32, such as 10.0.0.0/8"),
        20 => Some("an IPv6 address with a length of 0 to 128, such as 2001:db8::/32"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_they_are_in_packets() {
        assert_eq!(address_bytes("10.1.2.3", 4), Some(vec![10, 1, 2, 3]));
        assert_eq!(address_bytes("00:11:22:aA:b:ff", 6), Some(vec![0, 0x11, 0x22, 0xaa, 0xb, 0xff]));
        let v6 = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1].to_vec();
        assert_eq!(address_bytes("2001:db8::1", 16), Some(v6));
        for (wrong, size) in [
            ("10.1.2", 4),
            ("10.1.2.3", 16),
            ("::1", 4),
            ("0:1:2:3:4", 6),
            ("0:1:2:3:4:+5", 6),
            ("", 6),
            ("x", 3),
        ] {
            assert_eq!(address_bytes(wrong, size), None, "{wrong}");
        }
    }

    #[test]
    fn numbers_in_network_order_are_written_as_in_c() {
        assert_eq!(address_bytes("htons(443)", 2), Some(vec![1, 0xbb]));
        assert_eq!(address_bytes("bpf_htons(0x86dd)", 2), Some(vec![0x86, 0xdd]));
        assert_eq!(address_bytes("htonl(1)", 4), Some(vec![0, 0, 0, 1]));
        for (wrong, size) in [
            ("htons(65536)", 2),
            ("htons(+1)", 2),
            ("htons(0x+1)", 2),
            ("htons(1", 2),
            ("htons(1)", 4),
            ("443", 2),
        ] {
            assert_eq!(address_bytes(wrong, size), None, "{wrong}");
        }
    }

    #[test]
    fn prefixes_are_keys_of_tries() {
        let key = |length: u32, address: &[u8]| Some([&length.to_ne_bytes()[..], address].concat());
        assert_eq!(prefix_bytes("10.0.0.0/8", 8), key(8, &[10, 0, 0, 0]));
        assert_eq!(prefix_bytes("::/0", 20), key(0, &[0; 16]));
        assert_eq!(prefix_bytes("10.0.0.1", 8), key(32, &[10, 0, 0, 1]));
        for (wrong, size) in
            [("10.0.0", 8), ("10.0.0.0/33", 8), ("10.0.0.0/8", 20), ("10.0.0.0/", 8), ("::/1", 2)]
        {
            assert_eq!(prefix_bytes(wrong, size), None, "{wrong}");
        }
    }
}
