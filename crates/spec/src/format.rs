//! Formats of `bpf_trace_printk`, `bpf_trace_vprintk` and `bpf_snprintf`: the kernel's subset of printf
//! (`bpf_bprintf_prepare` in `kernel/bpf/helpers.c`).

/// Form in which a conversion prints its argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conversion {
    /// `%p` and its like: an address in hexadecimal.
    Address,
    /// `%s`, `%pks`, `%pus`: the text at an address.
    Text,
    /// `%pi4`, `%pI6` and so on: the IP address at an address.
    Ip {
        /// Whether it is one of IPv6.
        v6: bool,
        /// Whether it is written in the usual way (`%pI`).
        usual: bool,
    },
    /// `%c`: a character.
    Character,
    /// A number.
    Number {
        /// Whether it is a `long` or `long long` rather than an `int`.
        long: bool,
        /// Form.
        form: NumberForm,
    },
}

/// Form of a printed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberForm {
    /// `%d`, `%i`
    Signed,
    /// `%u`
    Unsigned,
    /// `%x`
    LowerHex,
    /// `%X`
    UpperHex,
}

/// The width field of a conversion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Field {
    /// Zeros instead of spaces before a number.
    pub zero: bool,
    /// Spaces behind instead of before.
    pub left: bool,
    /// A sign before positive numbers as well.
    pub plus: bool,
    /// A space where the sign would be.
    pub space: bool,
    /// Minimum number of characters, if given.
    pub width: Option<u32>,
}

impl Field {
    /// Reads `[0+- ]*[0-9]*` and returns what follows.
    fn parse(mut rest: &[u8]) -> (Self, &[u8]) {
        let (mut field, mut width) = (Self::default(), None);
        while let [flag @ (b'0' | b'+' | b'-' | b' '), tail @ ..] = rest {
            match flag {
                b'0' => field.zero = true,
                b'+' => field.plus = true,
                b'-' => field.left = true,
                _ => field.space = true,
            }
            rest = tail;
        }
        while let [digit @ b'0'..=b'9', tail @ ..] = rest {
            // An `int` that wraps (`skip_atoi`).
            let digit = i32::from(digit - b'0');
            width = Some(width.unwrap_or(0_i32).wrapping_mul(10).wrapping_add(digit));
            rest = tail;
        }
        // A negative width pads nothing; the kernel represents a missing width as -1.
        field.width = width.filter(|width| *width != -1).map(|width| width.max(0) as u32);
        (field, rest)
    }
}

/// A piece of a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A byte as it is.
    Byte(u8),
    /// The next argument.
    Argument(Field, Conversion),
}

/// Whether a format reads memory at an address.
#[must_use]
pub fn reads_memory(format: &[u8]) -> bool {
    let reads = |piece: Piece| matches!(piece, Piece::Argument(_, Conversion::Text | Conversion::Ip { .. }));
    parse(format, usize::MAX).is_some_and(|pieces| pieces.into_iter().any(reads))
}

/// The pieces of a format, up to its zero byte; `None` for one that the kernel refuses, or that takes more than `most`
/// arguments.
#[must_use]
pub fn parse(format: &[u8], most: usize) -> Option<Vec<Piece>> {
    let end = format.iter().position(|&b| b == 0)?;
    let mut rest = format.get(..end)?;
    if !rest.iter().all(|b| !b.is_ascii() || is_space(*b) || matches!(b, b' '..=b'~')) {
        return None;
    }
    let (mut pieces, mut arguments) = (Vec::new(), 0);
    while let [byte, tail @ ..] = rest {
        let (piece, tail) = match (byte, tail) {
            (b'%', [b'%', tail @ ..]) => (Piece::Byte(b'%'), tail),
            (b'%', _) => {
                arguments += 1;
                let (field, tail) = Field::parse(tail);
                let is_pointer = tail.first() == Some(&b'p');
                let (conversion, mut tail) = conversion(tail)?;
                if !is_pointer {
                    (Piece::Argument(field, conversion), tail)
                } else {
                    // Any letters and digits belong to it, and only an address itself has a width (`bstr_printf`).
                    while let [byte, rest @ ..] = tail
                        && is_alphanumeric(*byte)
                    {
                        tail = rest;
                    }
                    let is_address = conversion == Conversion::Address;
                    let field = if is_address { field } else { Field::default() };
                    (Piece::Argument(field, conversion), tail)
                }
            }
            _ => (Piece::Byte(*byte), tail),
        };
        pieces.push(piece);
        rest = tail;
    }
    (arguments <= most).then_some(pieces)
}

/// A conversion, and what follows it.
fn conversion(text: &[u8]) -> Option<(Conversion, &[u8])> {
    Some(match text {
        [b'p', family @ (b'i' | b'I'), version @ (b'4' | b'6'), tail @ ..] => {
            (Conversion::Ip { v6: *version == b'6', usual: *family == b'I' }, tail)
        }
        [b's', tail @ ..] | [b'p', b'k' | b'u', b's', tail @ ..] if ends(tail) => (Conversion::Text, tail),
        [b'p', b'K' | b'x' | b's' | b'S' | b'B', tail @ ..] => (Conversion::Address, tail),
        [b'p', tail @ ..] if ends(tail) => (Conversion::Address, tail),
        [b'c', tail @ ..] => (Conversion::Character, tail),
        [b'l', b'l', tail @ ..] | [b'l', tail @ ..] => number(tail, true)?,
        _ => number(text, false)?,
    })
}

fn number(text: &[u8], long: bool) -> Option<(Conversion, &[u8])> {
    let (kind, tail) = text.split_first()?;
    let form = match kind {
        b'd' | b'i' => NumberForm::Signed,
        b'u' => NumberForm::Unsigned,
        b'x' => NumberForm::LowerHex,
        b'X' => NumberForm::UpperHex,
        _ => return None,
    };
    Some((Conversion::Number { long, form }, tail))
}

/// Whether a conversion may end before this text: `isspace` and `ispunct` of the kernel, whose characters are Latin-1.
fn ends(text: &[u8]) -> bool {
    text.first()
        .is_none_or(|&b| is_space(b) || b.is_ascii_punctuation() || matches!(b, 0xa0..=0xbf | 0xd7 | 0xf7))
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0xc0 && !matches!(byte, 0xd7 | 0xf7)
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}
