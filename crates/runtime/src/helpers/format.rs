//! Helpers that print: `bpf_trace_printk`, `bpf_trace_vprintk` and `bpf_snprintf` (`kernel/trace/bpf_trace.c`,
//! `kernel/bpf/helpers.c`).

use std::net::{Ipv4Addr, Ipv6Addr};

use paceline_spec::Errno;
use paceline_spec::format::{Conversion, Field, NumberForm, Piece, parse};

use super::argument::Unchecked;
use super::mem::{self, ReadMem, WriteMem};
use crate::host::Host;

/// Longest string that `%s` prints, and longest trace (`MAX_BPRINTF_BUF`).
const MAX_STRING: usize = 1024;
/// Most arguments of the helpers that take an array of them (`MAX_BPRINTF_VARARGS`).
const MAX_ARGS: usize = 12;

/// `long bpf_trace_printk(fmt, fmt_size, ...)`: the length of the text, or `-EINVAL` for a format that the kernel
/// refuses.
pub(super) fn trace_printk(
    host: &mut Host,
    fmt: ReadMem<'_>,
    a: Unchecked,
    b: Unchecked,
    c: Unchecked,
) -> Result<u64, Errno> {
    trace(&fmt.read(), &[a.0, b.0, c.0], host)
}

/// `long bpf_trace_vprintk(fmt, fmt_size, data, data_len)`
pub(super) fn trace_vprintk(host: &mut Host, fmt: ReadMem<'_>, data: ReadMem<'_>) -> Result<u64, Errno> {
    trace(&fmt.read(), &arguments(data)?, host)
}

/// `long bpf_snprintf(str, str_size, fmt, data, data_len)`: the length of the whole text with its zero byte.
pub(super) fn snprintf(
    host: &mut Host,
    to: WriteMem<'_>,
    fmt: mem::Text<'_>,
    data: ReadMem<'_>,
) -> Result<u64, Errno> {
    let room = to.len().checked_sub(1).filter(|_| !to.is_null());
    // default: without room only the length is asked for.
    let Text { mut bytes, len, .. } =
        render(&fmt.read(), &arguments(data)?, room.unwrap_or(0), host).ok_or(Errno::EINVAL)?;
    if room.is_some() {
        bytes.push(0);
        to.write(&bytes);
    }
    Ok(int(len.wrapping_add(1)))
}

/// An array of arguments; `EINVAL` for one that the kernel refuses.
fn arguments(data: ReadMem<'_>) -> Result<Vec<u64>, Errno> {
    let len = data.len();
    if !len.is_multiple_of(8) || len > MAX_ARGS * 8 || (len != 0 && data.is_null()) {
        return Err(Errno::EINVAL);
    }
    let word = |chunk: &[u8]| chunk.try_into().map_or(0, u64::from_ne_bytes);
    Ok(data.read().chunks_exact(8).map(word).collect())
}

/// An `int` in `r0`, with its sign.
fn int(value: u64) -> u64 {
    i64::from(value as i32) as u64
}

/// Writes a trace, and returns the length of the whole text.
fn trace(fmt: &[u8], arguments: &[u64], host: &mut Host) -> Result<u64, Errno> {
    let Text { mut bytes, len, .. } = render(fmt, arguments, MAX_STRING - 1, host).ok_or(Errno::EINVAL)?;
    if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    host.trace(&bytes);
    Ok(int(len))
}

/// A text that is cut to its room and counts all bytes.
struct Text {
    bytes: Vec<u8>,
    room: usize,
    /// Bytes of the whole text.
    len: u64,
}

impl Text {
    fn push(&mut self, bytes: &[u8]) {
        let free = self.room - self.bytes.len();
        self.bytes.extend(bytes.iter().take(free));
        self.len += bytes.len() as u64;
    }

    fn repeat(&mut self, byte: u8, times: usize) {
        let free = self.room - self.bytes.len();
        self.bytes.extend(std::iter::repeat_n(byte, times.min(free)));
        self.len += times as u64;
    }

    /// Digits behind a sign, in a field: spaces or zeros before, or spaces behind.
    fn number(&mut self, field: Field, sign: &str, digits: &str) {
        // default: without a width there is nothing to fill.
        let fill = (field.width.unwrap_or(0) as usize).saturating_sub(sign.len() + digits.len());
        let (before, zeros, behind) = match (field.left, field.zero) {
            (true, _) => (0, 0, fill),
            (_, true) => (0, fill, 0),
            _ => (fill, 0, 0),
        };
        self.repeat(b' ', before);
        self.push(sign.as_bytes());
        self.repeat(b'0', zeros);
        self.push(digits.as_bytes());
        self.repeat(b' ', behind);
    }

    /// Text in a field, which is never filled with zeros.
    fn padded(&mut self, field: Field, text: &[u8]) {
        // default: without a width there is nothing to fill.
        let fill = (field.width.unwrap_or(0) as usize).saturating_sub(text.len());
        let (before, behind) = if field.left { (0, fill) } else { (fill, 0) };
        self.repeat(b' ', before);
        self.push(text);
        self.repeat(b' ', behind);
    }
}

/// The text; `None` for a format that the kernel refuses.
fn render(fmt: &[u8], arguments: &[u64], room: usize, host: &Host) -> Option<Text> {
    let mut arguments = arguments.iter().copied();
    let mut out = Text { bytes: Vec::new(), room, len: 0 };
    for piece in parse(fmt, arguments.len())? {
        match piece {
            Piece::Byte(byte) => out.push(&[byte]),
            Piece::Argument(field, conversion) => {
                convert(&mut out, field, conversion, arguments.next()?, host);
            }
        }
    }
    Some(out)
}

/// Writes one argument.
fn convert(out: &mut Text, field: Field, conversion: Conversion, arg: u64, host: &Host) {
    match conversion {
        Conversion::Ip { v6, usual } => out.padded(field, address(v6, usual, arg, host).as_bytes()),
        Conversion::Text => out.padded(field, &string(arg, host)),
        // Only without a width there are zeros before it (`pointer_string`).
        Conversion::Address => {
            let field = Field { zero: field.zero || field.width.is_none(), ..field };
            // default: the width of a pointer.
            let width = Some(field.width.unwrap_or(16));
            out.number(Field { width, ..field }, "", &format!("{arg:x}"));
        }
        Conversion::Character => out.padded(field, &[arg as u8]),
        Conversion::Number { long, form } => {
            let unsigned = if long { arg } else { u64::from(arg as u32) };
            match form {
                NumberForm::Signed if long => signed(out, field, arg as i64),
                NumberForm::Signed => signed(out, field, i64::from(arg as i32)),
                NumberForm::Unsigned => out.number(field, "", &unsigned.to_string()),
                NumberForm::LowerHex => out.number(field, "", &format!("{unsigned:x}")),
                NumberForm::UpperHex => out.number(field, "", &format!("{unsigned:X}")),
            }
        }
    }
}

fn signed(out: &mut Text, field: Field, value: i64) {
    let sign = match (value < 0, field.plus, field.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    out.number(field, sign, &value.unsigned_abs().to_string());
}

/// The string at an address, up to its end or to where the program's memory ends.
fn string(address: u64, host: &Host) -> Vec<u8> {
    let mut bytes = [0; MAX_STRING];
    let readable = host.read_unchecked(address, &mut bytes);
    let text = bytes.iter().take(readable).take_while(|&&byte| byte != 0);
    text.copied().collect()
}

/// An IP address at an address; zero where the memory is not the program's, as the kernel prints it.
fn address(v6: bool, usual: bool, at: u64, host: &Host) -> String {
    let mut bytes = [0; 16];
    let len = if v6 { 16 } else { 4 };
    if host.read_unchecked(at, &mut bytes[..len]) < len {
        bytes = [0; 16];
    }
    match (v6, usual) {
        (false, true) => Ipv4Addr::new(bytes[0], bytes[1], bytes[2], bytes[3]).to_string(),
        // %pi4 pads each byte, %pI6 writes every group, and %pi6 leaves out the colons.
        (false, false) => format!("{:03}.{:03}.{:03}.{:03}", bytes[0], bytes[1], bytes[2], bytes[3]),
        (true, _) => {
            let separator = if usual { ":" } else { "" };
            let mut text = String::new();
            for (i, group) in Ipv6Addr::from(bytes).segments().iter().enumerate() {
                text += &format!("{}{group:04x}", if i == 0 { "" } else { separator });
            }
            text
        }
    }
}
