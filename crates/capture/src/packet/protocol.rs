//! Form of the table of protocols.

/// A protocol: its header as a list of fields.
#[derive(Debug)]
pub struct Protocol {
    /// Name in texts and paths.
    pub name: &'static str,
    /// Its title and the document that defines its header.
    pub about: &'static str,
    /// Bytes of the header that are always there.
    pub header: usize,
    /// Fields, in the order of the header.
    pub fields: &'static [Field],
    /// The length of the header.
    pub(crate) extent: Extent,
    /// The protocol of the bytes that follow.
    pub(crate) next: Next,
}

/// A field of a header.
#[derive(Debug)]
pub struct Field {
    /// Name in texts and paths.
    pub name: &'static str,
    /// First bit from the start of the header.
    pub bit: usize,
    /// Number of bits; 0 for the bytes between the fixed header and the header's end.
    pub bits: usize,
    /// How values are written.
    pub kind: Kind,
    /// Its value where none is given.
    pub(crate) default: Default,
}

/// How the values of a field are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// A decimal number.
    Number,
    /// A hexadecimal number.
    Hex,
    /// `00:11:22:33:44:55`
    Mac,
    /// `192.0.2.1`
    Ipv4,
    /// `2001:db8::1`
    Ipv6,
    /// Names of single bits, with their values: letters one after the other, words separated by `+`.
    Flags(&'static [(&'static str, u32)]),
    /// A name or a number, of these and hexadecimal otherwise.
    EtherType,
    /// A name or a number, decimal.
    IpProtocol,
    /// Bytes: `0x` and hexadecimal digits.
    Bytes,
}

/// The value of a field that is not given.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Default {
    Value(u128),
    /// Bytes of the variable part of the header.
    Bytes(&'static [u8]),
    /// The number of the next protocol, or this one where it has none.
    Next(u128),
    /// The header's length in units of so many bytes, less a constant.
    HeaderLength {
        unit: usize,
        less: usize,
    },
    /// Bytes from so many bytes after the start of the header to the end of the packet.
    Length {
        from: usize,
    },
    /// A checksum.
    Checksum(Checksum),
    /// 1 if the next layer is of another protocol.
    LastOfItsKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// Of the header.
    Header,
    /// From the header to the end of the packet.
    Message,
    /// As `Message`, with the pseudo-header of the IP layer before it.
    Transport,
    /// As `Transport`, and 0 is sent as 0xffff (RFC 768).
    Udp,
    /// CRC-32C from the header to the end of the packet.
    Crc32c,
}

/// The length of a header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    /// The fixed part only.
    Fixed,
    /// A field says it, in units of so many bytes, plus a constant.
    Field { name: &'static str, unit: usize, plus: usize },
    /// As many bytes as the function computes from the fixed part.
    Computed(fn(&[u8]) -> usize),
}

/// The protocol that follows a header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Unknown.
    Payload,
    /// Always the same.
    Always(&'static str),
    /// By the number in a field, in the headers that the function finds to have it.
    Field { name: &'static str, table: &'static [(u32, &'static str)], applies: fn(&[u8]) -> bool },
    /// As the function finds from the header and what follows.
    Computed(fn(&[u8], &[u8]) -> Option<&'static str>),
}

impl Protocol {
    /// The field of a name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }

    /// The field for the variable part of the header.
    pub(crate) fn variable(&self) -> Option<&Field> {
        self.fields.iter().find(|field| field.bits == 0)
    }

    /// Bytes of the header that starts here; `None` if it does not fit.
    pub(crate) fn extent_of(&self, bytes: &[u8]) -> Option<usize> {
        let fixed = bytes.get(..self.header)?;
        let len = match self.extent {
            Extent::Fixed => self.header,
            Extent::Field { name, unit, plus } => self.field(name)?.number(fixed) as usize * unit + plus,
            Extent::Computed(compute) => compute(fixed),
        };
        (self.header..=bytes.len()).contains(&len).then_some(len)
    }

    /// The number that names a protocol as the next one.
    pub(crate) fn number_of_next(&self, next: &str) -> Option<u128> {
        let Next::Field { table, .. } = self.next else { return None };
        table.iter().find(|(_, name)| *name == next).map(|(number, _)| u128::from(*number))
    }
}

impl Field {
    /// The value as a number, from the header's bytes.
    #[must_use]
    pub fn number(&self, header: &[u8]) -> u128 {
        crate::packet::bits::get(header, self.bit, self.bits)
    }

    /// Whether it starts and ends at bytes.
    pub(crate) fn is_of_bytes(&self) -> bool {
        self.bit.is_multiple_of(8) && self.bits.is_multiple_of(8)
    }
}
