//! The data language of case files: bytes, integers, strings and packets.

use std::str::FromStr;

use super::error::DataError;
use super::layer::{self, Layer, QINQ, VLAN};

/// The bytes of a text in the data language.
///
/// # Errors
/// [`DataError`] for the first term that is wrong.
pub fn parse_data(text: &str) -> Result<Vec<u8>, DataError> {
    let tokens = tokens(text)?;
    let mut reader = Reader { tokens: tokens.into_iter(), layers: Vec::new(), pad: None };
    while let Some(token) = reader.tokens.next() {
        if reader.pad.is_some() {
            return Err(DataError::PadNotLast);
        }
        reader.term(token)?;
    }
    let mut bytes = layer::build(&reader.layers)?;
    if let Some(to) = reader.pad {
        if bytes.len() > to {
            return Err(DataError::PadTooShort { len: bytes.len(), to });
        }
        bytes.resize(to, 0);
    }
    Ok(bytes)
}

/// A number in decimal or hex, with an optional sign.
pub(super) fn parse_number(text: &str) -> Option<i128> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => i128::from_str_radix(hex, 16).ok()?,
        None if digits.starts_with(|c: char| c.is_ascii_digit()) => digits.parse().ok()?,
        _ => return None,
    };
    Some(if negative { -value } else { value })
}

/// A signed or unsigned number of `bits` bits in two's complement.
pub(super) fn fit(value: i128, bits: u32) -> Result<u64, DataError> {
    let low = -(1i128 << (bits - 1));
    let high = (1i128 << bits) - 1;
    if !(low..=high).contains(&value) {
        return Err(DataError::TooBig { value, bits });
    }
    Ok(value as u64)
}

#[derive(Debug)]
enum Token {
    Word(String),
    Text(Vec<u8>),
}

fn tokens(text: &str) -> Result<Vec<Token>, DataError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let used = if first == '"' {
            let end = rest[1..].find('"').ok_or(DataError::OpenString)? + 1;
            tokens.push(Token::Text(rest.as_bytes()[1..end].to_vec()));
            end + 1
        } else {
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            // A lone slash separates layers and has no bytes.
            if &rest[..end] != "/" {
                tokens.push(Token::Word(rest[..end].to_owned()));
            }
            end
        };
        rest = rest[used..].trim_start();
    }
    Ok(tokens)
}

struct Reader {
    tokens: std::vec::IntoIter<Token>,
    layers: Vec<Layer>,
    pad: Option<usize>,
}

impl Reader {
    fn term(&mut self, token: Token) -> Result<(), DataError> {
        let word = match token {
            Token::Text(bytes) => return self.bytes(bytes),
            Token::Word(word) => word,
        };
        if let Some(bytes) = hex(&word) {
            return self.bytes(bytes);
        }
        if let Some((bits, big_endian)) = integer(&word) {
            let value = fit(self.number(&word)?, bits)?;
            let bytes = if big_endian { value.to_be_bytes() } else { value.to_ne_bytes() };
            let len = bits as usize / 8;
            let low_end_last = big_endian || cfg!(target_endian = "big");
            let range = if low_end_last { 8 - len..8 } else { 0..len };
            return self.bytes(bytes[range].to_vec());
        }
        self.named(&word)
    }

    fn named(&mut self, word: &str) -> Result<(), DataError> {
        match word {
            "zeros" => {
                let len = self.count(word)?;
                self.bytes(vec![0; len])
            }
            "count" => {
                let len = self.count(word)?;
                self.bytes((0..len).map(|i| i as u8).collect())
            }
            "pad" => {
                self.pad = Some(self.count(word)?);
                Ok(())
            }
            "type" | "proto" | "ttl" => self.modify(word),
            _ => {
                let layer = self.layer(word)?;
                self.layers.push(layer);
                Ok(())
            }
        }
    }

    fn layer(&mut self, word: &str) -> Result<Layer, DataError> {
        Ok(match word {
            "eth" => {
                let (dst, src) = self.addresses();
                Layer::Ethernet { dst, src, next: None }
            }
            "vlan" => Layer::Tag { protocol: VLAN, id: self.parsed(word, "VLAN id")?, next: None },
            "qinq" => Layer::Tag { protocol: QINQ, id: self.parsed(word, "VLAN id")?, next: None },
            "ipv4" => {
                let (src, dst) = (self.parsed(word, "IPv4 address")?, self.parsed(word, "IPv4 address")?);
                Layer::Ipv4 { src, dst, ttl: 64, proto: None }
            }
            "ipv6" => {
                let (src, dst) = (self.parsed(word, "IPv6 address")?, self.parsed(word, "IPv6 address")?);
                Layer::Ipv6 { src, dst, ttl: 64, proto: None }
            }
            "tcp" => Layer::Tcp { src: self.parsed(word, "port")?, dst: self.parsed(word, "port")? },
            "udp" => Layer::Udp { src: self.parsed(word, "port")?, dst: self.parsed(word, "port")? },
            "icmp" => Layer::Icmp,
            "icmpv6" => Layer::Icmpv6,
            _ => return Err(DataError::UnknownTerm(word.to_owned())),
        })
    }

    fn modify(&mut self, word: &str) -> Result<(), DataError> {
        let value = self.number(word)?;
        let stray = || DataError::StrayModifier(word.to_owned());
        match (word, self.layers.last_mut().ok_or_else(stray)?) {
            ("type", Layer::Ethernet { next, .. } | Layer::Tag { next, .. }) => {
                *next = Some(fit(value, 16)? as u16)
            }
            ("proto", Layer::Ipv4 { proto, .. } | Layer::Ipv6 { proto, .. }) => {
                *proto = Some(fit(value, 8)? as u8)
            }
            ("ttl", Layer::Ipv4 { ttl, .. } | Layer::Ipv6 { ttl, .. }) => *ttl = fit(value, 8)? as u8,
            _ => return Err(stray()),
        }
        Ok(())
    }

    fn bytes(&mut self, bytes: Vec<u8>) -> Result<(), DataError> {
        self.layers.push(Layer::Bytes(bytes));
        Ok(())
    }

    /// The two addresses after `eth`, or default addresses.
    fn addresses(&mut self) -> ([u8; 6], [u8; 6]) {
        let given = self.tokens.as_slice();
        let address = |index| match given.get(index) {
            Some(Token::Word(word)) => mac(word),
            _ => None,
        };
        if let (Some(dst), Some(src)) = (address(0), address(1)) {
            self.tokens.nth(1);
            return (dst, src);
        }
        ([2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 1])
    }

    fn argument(&mut self, of: &str) -> Result<String, DataError> {
        match self.tokens.next() {
            Some(Token::Word(word)) => Ok(word),
            _ => Err(DataError::MissingArgument(of.to_owned())),
        }
    }

    fn parsed<T: FromStr>(&mut self, of: &str, what: &'static str) -> Result<T, DataError> {
        let found = self.argument(of)?;
        found.parse().map_err(|_| DataError::BadArgument { what, found })
    }

    fn number(&mut self, of: &str) -> Result<i128, DataError> {
        let found = self.argument(of)?;
        parse_number(&found).ok_or(DataError::BadArgument { what: "number", found })
    }

    fn count(&mut self, of: &str) -> Result<usize, DataError> {
        let value = self.number(of)?;
        // Longer than any packet or map value of a case; limits the memory that a typo can allocate.
        usize::try_from(value).ok().filter(|&len| len <= 1 << 24).ok_or(DataError::TooBig { value, bits: 24 })
    }
}

/// `u16` and similar words: number of bits, and whether it is big-endian.
fn integer(word: &str) -> Option<(u32, bool)> {
    Some(match word {
        "u8" => (8, false),
        "u16" => (16, false),
        "u32" => (32, false),
        "u64" => (64, false),
        "u16be" => (16, true),
        "u32be" => (32, true),
        "u64be" => (64, true),
        _ => return None,
    })
}

/// `00ff` or `ff*6`.
fn hex(word: &str) -> Option<Vec<u8>> {
    let (digits, times) = match word.split_once('*') {
        Some((digits, times)) => (digits, times.parse::<usize>().ok().filter(|&n| n <= 1 << 20)?),
        None => (word, 1),
    };
    let digits = digits.as_bytes();
    if digits.is_empty() || digits.len() % 2 != 0 {
        return None;
    }
    let nibble = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8]| Some((nibble(pair[0])? << 4 | nibble(pair[1])?) as u8);
    let bytes = digits.chunks_exact(2).map(byte).collect::<Option<Vec<u8>>>()?;
    Some(bytes.repeat(times))
}

fn mac(word: &str) -> Option<[u8; 6]> {
    let parts: Vec<&str> = word.split(':').collect();
    let bytes = parts.iter().map(|part| u8::from_str_radix(part, 16).ok()).collect::<Option<Vec<u8>>>()?;
    bytes.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::{DataError, parse_data};

    #[test]
    fn reads_bytes_integers_and_strings() {
        assert_eq!(
            parse_data("00 1122 ff*2 \"a b\" zeros 1 count 3").expect("good"),
            [0, 0x11, 0x22, 0xff, 0xff, b'a', b' ', b'b', 0, 0, 1, 2]
        );
        let native =
            [&[5u8][..], &(-1i16).to_ne_bytes(), &7u32.to_ne_bytes(), &u64::MAX.to_ne_bytes()].concat();
        assert_eq!(parse_data("u8 5 u16 -1 u32 7 u64 0xffffffffffffffff").expect("good"), native);
        assert_eq!(
            parse_data("u16be 0x800 u32be 1 u64be 2").expect("good"),
            [8, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2]
        );
    }

    #[test]
    fn builds_packets() {
        let packet = parse_data("eth / vlan 5 / ipv4 10.0.0.1 10.0.0.2 / udp 1000 53 / \"hello\" pad 64")
            .expect("good");
        let expected = "020000000002 020000000001 8100 0005 0800 4500 0021 0000 0000 4011 66ca 0a000001 0a000002 \
                        03e8 0035 000d a3e2 68656c6c6f zeros 13";
        assert_eq!(packet, parse_data(expected).expect("good"));
    }

    #[test]
    fn says_what_is_wrong() {
        let error = |text| parse_data(text).expect_err("it is wrong").to_string();
        assert_eq!(error("00 fff"), "unknown term `fff` in data");
        assert_eq!(error("u8 256"), "256 does not fit 8 bits");
        assert_eq!(error("u8"), "`u8` lacks an argument");
        assert_eq!(error("eth ttl 5"), "`ttl` follows no layer that has one");
        assert_eq!(error("eth / tcp 1 2"), "`tcp` needs `ipv4` or `ipv6` before it");
        assert_eq!(error("zeros 5 pad 4"), "the packet already has 5 bytes, more than `pad 4`");
        assert_eq!(parse_data("\"x"), Err(DataError::OpenString));
    }
}
