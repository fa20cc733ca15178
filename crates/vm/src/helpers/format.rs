//! `bpf_trace_printk`: the kernel's subset of printf (`bpf_bprintf_prepare` in `kernel/bpf/helpers.c`).

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use paceline_spec::Errno;

use super::args;
use crate::host::Host;

/// Most arguments a trace takes (`MAX_TRACE_PRINTK_VARARGS`).
const MAX_ARGS: usize = 3;
/// Longest string that `%s` prints, and longest trace (`MAX_BPRINTF_BUF`).
const MAX_STRING: usize = 1024;

/// `long bpf_trace_printk(fmt, fmt_size, ...)`: the length of the text, or `-EINVAL` for a format that the kernel
/// would not take.
pub(super) unsafe extern "C" fn trace_printk(
    fmt: u64,
    size: u64,
    a: u64,
    b: u64,
    c: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let fmt = unsafe { args::bytes(fmt, size as u32 as usize) };
    match render(&fmt, &[a, b, c], host) {
        Some(mut text) => {
            let len = text.len() as u64;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            host.trace(text.as_bytes());
            len
        }
        None => Errno::EINVAL.to_return(),
    }
}

/// The width field of a conversion.
#[derive(Clone, Copy, Default)]
struct Field {
    zero: bool,
    left: bool,
    plus: bool,
    space: bool,
    width: usize,
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
            field.width = (field.width * 10 + usize::from(digit - b'0')).min(MAX_STRING);
            rest = tail;
        }
        (field, rest)
    }

    fn pad(self, out: &mut String, sign: &str, digits: &str, zero: bool) {
        let fill = self.width.saturating_sub(sign.len() + digits.len());
        let (spaces, zeros) = if zero && self.zero && !self.left { (0, fill) } else { (fill, 0) };
        let (before, after) = if self.left { (0, spaces) } else { (spaces, 0) };
        out.extend(std::iter::repeat_n(' ', before));
        out.push_str(sign);
        out.extend(std::iter::repeat_n('0', zeros));
        out.push_str(digits);
        out.extend(std::iter::repeat_n(' ', after));
    }

    fn signed(self, out: &mut String, value: i64) {
        let sign = match (value < 0, self.plus, self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        self.pad(out, sign, &value.unsigned_abs().to_string(), true);
    }
}

/// Whether a conversion may end before this byte.
fn ends(next: Option<&u8>) -> bool {
    next.is_none_or(|b| b.is_ascii_whitespace() || b.is_ascii_punctuation())
}

/// The text, or `None` for a format that the kernel refuses.
fn render(fmt: &[u8], args: &[u64; MAX_ARGS], host: &Host) -> Option<String> {
    let end = fmt.iter().position(|&b| b == 0)?;
    let mut rest = &fmt[..end];
    if !rest.iter().all(|b| matches!(b, b' '..=b'~' | b'\t'..=b'\r')) {
        return None;
    }
    let mut args = args.iter().copied();
    let mut out = String::new();
    while let [byte, tail @ ..] = rest {
        rest = match (byte, tail) {
            (b'%', [b'%', tail @ ..]) => {
                out.push('%');
                tail
            }
            (b'%', _) => {
                let (field, conversion) = Field::parse(tail);
                convert(&mut out, field, conversion, args.next()?, host)?
            }
            _ => {
                out.push(char::from(*byte));
                tail
            }
        };
    }
    out.truncate(MAX_STRING - 1);
    Some(out)
}

/// Writes one argument and returns what follows its conversion.
fn convert<'f>(
    out: &mut String,
    field: Field,
    conversion: &'f [u8],
    arg: u64,
    host: &Host,
) -> Option<&'f [u8]> {
    match conversion {
        [b'p', family @ (b'i' | b'I'), version @ (b'4' | b'6'), tail @ ..] => {
            field.pad(out, "", &address(*family, *version, arg, host), false);
            Some(tail)
        }
        [b's', tail @ ..] | [b'p', b'k' | b'u', b's', tail @ ..] if ends(tail.first()) => {
            field.pad(out, "", &string(arg, host), false);
            Some(tail)
        }
        [b'p', b'K' | b'x' | b's' | b'S' | b'B', tail @ ..] => {
            field.pad(out, "", &format!("{arg:016x}"), false);
            Some(tail)
        }
        [b'p', tail @ ..] if ends(tail.first()) => {
            field.pad(out, "", &format!("{arg:016x}"), false);
            Some(tail)
        }
        [b'c', tail @ ..] => {
            field.pad(out, "", &char::from(arg as u8).to_string(), false);
            Some(tail)
        }
        [b'l', b'l', tail @ ..] | [b'l', tail @ ..] => integer(out, field, tail, arg, arg as i64),
        _ => integer(out, field, conversion, u64::from(arg as u32), i64::from(arg as i32)),
    }
}

fn integer<'f>(
    out: &mut String,
    field: Field,
    conversion: &'f [u8],
    unsigned: u64,
    signed: i64,
) -> Option<&'f [u8]> {
    let (kind, tail) = conversion.split_first()?;
    match kind {
        b'd' | b'i' => field.signed(out, signed),
        b'u' => field.pad(out, "", &unsigned.to_string(), true),
        b'x' => field.pad(out, "", &format!("{unsigned:x}"), true),
        b'X' => field.pad(out, "", &format!("{unsigned:X}"), true),
        _ => return None,
    }
    Some(tail)
}

/// The string at an address, up to its end or to where the program's memory ends.
fn string(address: u64, host: &Host) -> String {
    let mut bytes = [0; MAX_STRING];
    let readable = host.read_unchecked(address, &mut bytes);
    let text = bytes.iter().take(readable).take_while(|&&byte| byte != 0);
    text.map(|&byte| char::from(byte)).collect()
}

/// An IP address at an address; zero where the memory is not the program's, as the kernel prints it.
fn address(family: u8, version: u8, at: u64, host: &Host) -> String {
    let mut bytes = [0; 16];
    let len = if version == b'4' { 4 } else { 16 };
    if host.read_unchecked(at, &mut bytes[..len]) < len {
        bytes = [0; 16];
    }
    match (family, version) {
        (b'I', b'4') => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).to_string(),
        // %pi4 pads each byte, %pI6 writes every group, and %pi6 leaves out the colons.
        (_, b'4') => format!("{:03}.{:03}.{:03}.{:03}", bytes[0], bytes[1], bytes[2], bytes[3]),
        _ => {
            let separator = if family == b'I' { ":" } else { "" };
            let mut text = String::new();
            for (i, group) in Ipv6Addr::from(bytes).segments().iter().enumerate() {
                let _ = write!(text, "{}{group:04x}", if i == 0 { "" } else { separator });
            }
            text
        }
    }
}
