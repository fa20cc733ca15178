//! The layers of a packet: where headers and fields are in its bytes.

use std::fmt;
use std::ops::Range;

use crate::packet::protocol::{Field, Protocol};
use crate::packet::value::{self, Shown, Value};

/// Layers of a packet that are looked for: attackers nest headers deeper.
const MOST: usize = 32;

/// A header in a packet.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Its protocol.
    pub protocol: &'static Protocol,
    /// Offset of the header in the packet.
    pub start: usize,
    /// The header's bytes.
    pub header: &'a [u8],
    /// From 1 among the layers of its protocol.
    pub number: usize,
}

/// A field of a header in a packet. `Display` writes its value.
#[derive(Clone, Copy, Debug)]
pub struct FieldRef<'a> {
    /// The layer.
    pub layer: Layer<'a>,
    /// The field.
    pub field: &'static Field,
}

/// The layers of a packet, from the Ethernet header on.
#[derive(Clone, Debug)]
pub struct Layers<'a> {
    bytes: &'a [u8],
    layers: Vec<Layer<'a>>,
    /// The bytes that no header explains.
    payload: Range<usize>,
}

impl<'a> Layers<'a> {
    /// Finds the layers of an Ethernet frame. Headers that are cut or lie about their length are payload.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        let mut layers: Vec<Layer<'a>> = Vec::new();
        let (mut at, mut end) = (0, bytes.len());
        let mut next = Protocol::named("eth");
        while let Some(protocol) = next.filter(|_| layers.len() < MOST) {
            let rest = bytes.get(at..end).unwrap_or_default();
            let Some(len) = protocol.extent_of(rest) else { break };
            let (header, inner) = rest.split_at(len);
            let number = 1 + layers.iter().filter(|layer| layer.protocol.name == protocol.name).count();
            layers.push(Layer { protocol, start: at, header, number });
            end = end_of(protocol, header, at).filter(|said| (at + len..end).contains(said)).unwrap_or(end);
            at += len;
            next = protocol.next_of(header, inner);
        }
        Self { bytes, layers, payload: at..end }
    }

    /// The headers, outermost first.
    #[must_use]
    pub fn headers(&self) -> &[Layer<'a>] {
        &self.layers
    }

    /// The bytes after the last header, without padding.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(self.payload.clone()).unwrap_or_default()
    }

    /// The bytes that the lengths of the headers do not count.
    #[must_use]
    pub fn padding(&self) -> &'a [u8] {
        self.bytes.get(self.payload.end..).unwrap_or_default()
    }

    /// A field by its path: `ipv4.ttl`, and `ipv4#2.ttl` for that of the second IPv4 header.
    #[must_use]
    pub fn field(&self, path: &str) -> Option<FieldRef<'a>> {
        let (layer, field) = path.split_once('.')?;
        let layer = self.layer(layer)?;
        layer.fields().find(|found| found.field.name == field)
    }

    /// A layer by its name: `ipv4`, `ipv4#2`.
    #[must_use]
    pub fn layer(&self, name: &str) -> Option<&Layer<'a>> {
        let (name, number) = name.split_once('#').unwrap_or((name, "1"));
        let number: usize = number.parse().ok()?;
        self.layers.iter().find(|layer| layer.protocol.name == name && layer.number == number)
    }

    /// All fields of all headers.
    pub fn fields(&self) -> impl Iterator<Item = FieldRef<'a>> {
        self.layers.iter().flat_map(Layer::fields)
    }

    /// The field or the bytes that some bytes of the packet are: `tcp.dport`, `ipv4.src[0..2]`, `tcp.sport to tcp.dport`, `payload[4]`.
    #[must_use]
    pub fn name_at(&self, offset: usize, len: usize) -> String {
        let range = offset..offset + len;
        let touched: Vec<_> = self.fields().filter(|field| overlap(&field.bytes(), &range)).collect();
        match touched.as_slice() {
            [] => self.name_beyond(&range),
            [only] if only.bytes() == range => only.path(),
            [only] if range.start >= only.bytes().start && only.field.is_of_bytes() => {
                let start = only.bytes().start;
                format!("{}{}", only.path(), index(&(range.start - start..range.end - start)))
            }
            [only] => only.path(),
            [first, .., last] if first.layer.start == last.layer.start && touched.len() <= 3 => {
                let names: Vec<_> = touched.iter().map(|field| field.field.name).collect();
                format!("{}.{{{}}}", first.layer.name(), names.join(","))
            }
            [first, .., last] => format!("{} to {}", first.path(), last.path()),
        }
    }

    /// Bytes behind all headers.
    fn name_beyond(&self, range: &Range<usize>) -> String {
        let padding = self.payload.end;
        let (name, start) =
            if range.start >= padding { ("padding", padding) } else { ("payload", self.payload.start) };
        format!("{name}{}", index(&(range.start - start..range.end.saturating_sub(start))))
    }
}

impl<'a> Layer<'a> {
    /// Name in paths: `ipv4`, and `ipv4#2` for the second of its protocol.
    #[must_use]
    pub fn name(&self) -> String {
        match self.number {
            1 => self.protocol.name.to_owned(),
            number => format!("{}#{number}", self.protocol.name),
        }
    }

    /// Its fields; the one for the variable part only where there is such a part.
    pub fn fields(&self) -> impl Iterator<Item = FieldRef<'a>> + use<'a> {
        let layer = *self;
        let fields = layer.protocol.fields.iter().map(move |field| FieldRef { layer, field });
        fields.filter(|field| field.field.bits > 0 || !field.variable().is_empty())
    }
}

impl<'a> FieldRef<'a> {
    /// Path of the field: `ipv4.ttl`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}.{}", self.layer.name(), self.field.name)
    }

    /// The bytes of the packet that hold it, the first and the last perhaps with others.
    #[must_use]
    pub fn bytes(&self) -> Range<usize> {
        let start = self.layer.start;
        match self.field.bits {
            0 => start + self.layer.protocol.header..start + self.layer.header.len(),
            bits => start + self.field.bit / 8..start + (self.field.bit + bits).div_ceil(8),
        }
    }

    /// The bits of the packet that it is, counted from the packet's first bit, the most significant one of each byte first.
    #[must_use]
    pub fn bits_in_packet(&self) -> Range<usize> {
        match self.field.bits {
            0 => self.bytes().start * 8..self.bytes().end * 8,
            bits => self.layer.start * 8 + self.field.bit..self.layer.start * 8 + self.field.bit + bits,
        }
    }

    /// Whether it has the value that a text gives; `None` if the text is no value of the field.
    #[must_use]
    pub fn has(&self, text: &str) -> Option<bool> {
        match value::parse(self.field, text).ok()? {
            Value::Number(number) => Some(self.field.number(self.layer.header) == number),
            Value::Bytes(bytes) => Some(self.variable() == bytes),
        }
    }

    fn variable(&self) -> &'a [u8] {
        self.layer.header.get(self.layer.protocol.header..).unwrap_or_default()
    }
}

impl fmt::Display for FieldRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = if self.field.bits == 0 { self.variable() } else { self.layer.header };
        fmt::Display::fmt(&Shown(self.field, bytes), f)
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// `[4]`, `[0..2]`
fn index(range: &Range<usize>) -> String {
    match range.len() {
        1 => format!("[{}]", range.start),
        _ => format!("[{}..{}]", range.start, range.end),
    }
}

/// The offset at which a packet ends, as a header says that starts at an offset.
fn end_of(protocol: &Protocol, header: &[u8], start: usize) -> Option<usize> {
    let (field, from) = end_field(protocol)?;
    let len = field.number(header) as usize;
    // 0 where the sender leaves it to the device (IPv4), or to an option (jumbograms of IPv6).
    (len != 0).then_some(start + from + len)
}

/// The field of a header that says where the packet ends, and the offset in the header from which its bytes count.
pub(crate) fn end_field(protocol: &Protocol) -> Option<(&Field, usize)> {
    let from = match protocol.name {
        "ipv4" => 0,
        "ipv6" => protocol.header,
        _ => return None,
    };
    Some((protocol.field("len")?, from))
}
