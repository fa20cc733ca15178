//! Texts of packets, read to layers.

use paceline_suggest::meant;

use crate::packet::error::{Problem, TextError};
use crate::packet::protocol::{Field, Protocol};
use crate::packet::value::{self, NoValue, Value, hex_bytes};

/// Most bytes of a packet: what the 16 bits of a length can say, and headers around it.
pub(crate) const MOST_BYTES: usize = 1 << 17;

/// A layer as a text gives it.
#[derive(Debug)]
pub(crate) struct Given {
    pub(crate) protocol: &'static Protocol,
    /// The fields that are given.
    pub(crate) fields: Vec<(&'static Field, Value)>,
    /// Column of its name.
    pub(crate) column: usize,
}

/// A packet as a text gives it.
#[derive(Debug, Default)]
pub(crate) struct GivenPacket {
    pub(crate) layers: Vec<Given>,
    pub(crate) payload: Vec<u8>,
    pub(crate) padding: Vec<u8>,
}

pub(crate) fn parse(text: &str) -> Result<GivenPacket, TextError> {
    let mut parser = Parser { text, at: 0, packet: GivenPacket::default(), padded: false };
    loop {
        parser.layer()?;
        parser.skip_space();
        match parser.peek() {
            None => return Ok(parser.packet),
            Some('/') => parser.at += 1,
            Some(_) => return Err(parser.error(parser.at, Problem::Separator)),
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    /// Bytes read.
    at: usize,
    packet: GivenPacket,
    padded: bool,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn error(&self, at: usize, problem: Problem) -> TextError {
        TextError { column: self.column(at), problem }
    }

    fn column(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or(self.text).chars().count() + 1
    }

    /// The characters up to a space, a slash or the end.
    fn word(&mut self) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || c == '/').unwrap_or(rest.len());
        let (word, _) = rest.split_at(end);
        self.at += end;
        word
    }

    fn layer(&mut self) -> Result<(), TextError> {
        self.skip_space();
        let start = self.at;
        if self.padded {
            return Err(self.error(start, Problem::AfterPadding));
        }
        match self.peek() {
            None | Some('/') => Err(self.error(start, Problem::NoLayer)),
            Some('"' | '\'' | '0') => {
                let bytes = self.bytes()?;
                self.packet.payload.extend(bytes);
                self.check_size(start)
            }
            Some(_) => match self.word() {
                "padding" => self.padding(),
                name => self.header(start, name),
            },
        }
    }

    fn check_size(&self, start: usize) -> Result<(), TextError> {
        match self.packet.payload.len() + self.packet.padding.len() <= MOST_BYTES {
            true => Ok(()),
            false => Err(self.error(start, Problem::Packet(MOST_BYTES))),
        }
    }

    fn padding(&mut self) -> Result<(), TextError> {
        self.skip_space();
        let start = self.at;
        self.packet.padding = self.bytes()?;
        self.padded = true;
        self.check_size(start)
    }

    fn header(&mut self, start: usize, name: &str) -> Result<(), TextError> {
        let Some(protocol) = Protocol::named(name) else {
            let hint = meant(name, Protocol::ALL.iter().map(|protocol| protocol.name));
            let hint = hint.and_then(Protocol::named).map(|protocol| protocol.name);
            return Err(self.error(start, Problem::Protocol { name: name.to_owned(), hint }));
        };
        if !self.packet.payload.is_empty() {
            return Err(self.error(start, Problem::AfterBytes));
        }
        let mut given = Given { protocol, fields: Vec::new(), column: self.column(start) };
        loop {
            self.skip_space();
            match self.peek() {
                None | Some('/') => break,
                Some(_) => {
                    let (field, value) = self.field(&given)?;
                    given.fields.push((field, value));
                }
            }
        }
        self.packet.layers.push(given);
        Ok(())
    }

    fn field(&mut self, given: &Given) -> Result<(&'static Field, Value), TextError> {
        let (start, protocol) = (self.at, given.protocol);
        let word = self.word();
        let Some((name, text)) = word.split_once('=') else {
            return Err(self.error(start, Problem::NoValue(word.to_owned())));
        };
        let Some(field) = protocol.field(name) else {
            let hint = meant(name, protocol.fields.iter().map(|field| field.name));
            let hint = hint.and_then(|name| protocol.field(name)).map(|field| field.name);
            let problem = Problem::Field { protocol: protocol.name, name: name.to_owned(), hint };
            return Err(self.error(start, problem));
        };
        if given.fields.iter().any(|(other, _)| other.name == field.name) {
            return Err(self.error(start, Problem::Twice { protocol: protocol.name, name: field.name }));
        }
        let value = value::parse(field, text).map_err(|reason| {
            let (protocol, name, value) = (protocol.name, field.name, text.to_owned());
            let problem = match reason {
                NoValue::Form => Problem::Form { protocol, name, form: value::form(field), value },
                NoValue::Size => Problem::Size { protocol, name, bits: field.bits, value },
            };
            self.error(start + name.len() + 1, problem)
        })?;
        Ok((field, value))
    }

    /// `"text"` or `0xHEX`, perhaps with `*N`.
    fn bytes(&mut self) -> Result<Vec<u8>, TextError> {
        let start = self.at;
        let bytes = match self.peek() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            _ => {
                let rest = self.rest();
                let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                let (digits, _) = rest.split_at(end);
                self.at += end;
                hex_bytes(digits).ok_or_else(|| self.error(start, Problem::Hex))?
            }
        };
        if self.peek() != Some('*') {
            return Ok(bytes);
        }
        self.at += 1;
        let count = self.at;
        let times = self.word().parse::<u16>().map_err(|_| self.error(count, Problem::Repeat))?;
        match bytes.len() * usize::from(times) <= MOST_BYTES {
            true => Ok(bytes.repeat(times.into())),
            false => Err(self.error(start, Problem::Packet(MOST_BYTES))),
        }
    }

    fn quoted(&mut self, quote: char) -> Result<Vec<u8>, TextError> {
        let start = self.at;
        let mut bytes = Vec::new();
        self.at += 1;
        while let Some(c) = self.peek() {
            let at = self.at;
            self.at += c.len_utf8();
            match c {
                '\\' => bytes.push(self.escape(at)?),
                c if c == quote => return Ok(bytes),
                c => bytes.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        }
        Err(self.error(start, Problem::Unclosed))
    }

    fn escape(&mut self, at: usize) -> Result<u8, TextError> {
        let Some(c) = self.peek() else { return Err(self.error(at, Problem::Unclosed)) };
        self.at += c.len_utf8();
        Ok(match c {
            'n' => b'\n',
            'r' => b'\r',
            't' => b'\t',
            '0' => 0,
            '\\' | '"' | '\'' => c as u8,
            'x' => {
                let digits =
                    self.rest().get(..2).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
                let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                self.at += if byte.is_some() { 2 } else { 0 };
                byte.ok_or_else(|| self.error(at, Problem::Escape(c)))?
            }
            c => return Err(self.error(at, Problem::Escape(c))),
        })
    }
}
