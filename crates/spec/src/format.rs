//! Formats of `bpf_trace_printk`, `bpf_trace_vprintk` and `bpf_snprintf`: the kernel's subset of printf
//! (`bpf_bprintf_prepare` in `kernel/bpf/helpers.c`).

/// Widths beyond this are of no use: no text is longer (`MAX_BPRINTF_BUF`).
const MAX_WIDTH: usize = 1024;

/// What a conversion prints its argument as.
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
        /// In which form.
        form: NumberForm,
    },
}

/// How a number is printed.
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
    /// Fewest characters.
    pub width: usize,
}

impl Field {
    /// Reads `[0+- ]*[0-9]*` and returns what follows.
    fn parse(mut rest: &[u8]) -> (Self, &[u8]) {
        let mut field = Self::default();
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
            field.width = (field.width * 10 + usize::from(digit - b'0')).min(MAX_WIDTH);
            rest = tail;
        }
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

/// The pieces of a format, up to its zero byte; `None` for one that the kernel refuses, or that takes more than `most`
/// arguments.
#[must_use]
pub fn parse(format: &[u8], most: usize) -> Option<Vec<Piece>> {
    let end = format.iter().position(|&b| b == 0)?;
    let mut rest = format.get(..end)?;
    if !rest.iter().all(|b| matches!(b, b' '..=b'~' | b'\t'..=b'\r')) {
        return None;
    }
    let (mut pieces, mut arguments) = (Vec::new(), 0);
    while let [byte, tail @ ..] = rest {
        let (piece, tail) = match (byte, tail) {
            (b'%', [b'%', tail @ ..]) => (Piece::Byte(b'%'), tail),
            (b'%', _) => {
                arguments += 1;
                let (field, tail) = Field::parse(tail);
                let (conversion, tail) = conversion(tail)?;
                (Piece::Argument(field, conversion), tail)
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

/// Whether a conversion may end before this text.
fn ends(text: &[u8]) -> bool {
    text.first().is_none_or(|b| b.is_ascii_whitespace() || b.is_ascii_punctuation())
}
