//! Helpers that print: `bpf_trace_printk`, `bpf_trace_vprintk` and `bpf_snprintf` (`kernel/trace/bpf_trace.c`,
//! `kernel/bpf/helpers.c`).

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};

use paceline_spec::Errno;
use paceline_spec::format::{Conversion, Field, NumberForm, Piece, parse};

use super::args;
use crate::host::Host;
use crate::memory;

/// Longest string that `%s` prints, and longest trace (`MAX_BPRINTF_BUF`).
const MAX_STRING: usize = 1024;
/// Most arguments of the helpers that take an array of them (`MAX_BPRINTF_VARARGS`).
const MAX_ARGS: usize = 12;

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
    trace(&fmt, &[a, b, c], host)
}

/// `long bpf_trace_vprintk(fmt, fmt_size, data, data_len)`
pub(super) unsafe extern "C" fn trace_vprintk(
    fmt: u64,
    size: u64,
    data: u64,
    data_len: u64,
    _: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (fmt, arguments) = unsafe { (args::bytes(fmt, size as u32 as usize), arguments(data, data_len)) };
    match arguments {
        Some(arguments) => trace(&fmt, &arguments, host),
        None => Errno::EINVAL.to_return(),
    }
}

/// `long bpf_snprintf(str, str_size, fmt, data, data_len)`: the length that the whole text has with its zero byte.
pub(super) unsafe extern "C" fn snprintf(
    to: u64,
    size: u64,
    fmt: u64,
    data: u64,
    data_len: u64,
    host: &mut Host,
) -> u64 {
    // SAFETY: the arguments fit the prototype.
    let (fmt, arguments) = unsafe { (args::text(fmt), arguments(data, data_len)) };
    let room = (size as u32 as usize).checked_sub(1).filter(|_| to != 0);
    let text = arguments.and_then(|arguments| render(&fmt, &arguments, room.unwrap_or(0), host));
    let Some(Text { mut bytes, len, .. }) = text else { return Errno::EINVAL.to_return() };
    if room.is_some() {
        bytes.push(0);
        // SAFETY: the prototype says that `size` bytes may be written unless the address is null.
        unsafe { memory::copy_to(to, &bytes) };
    }
    int(len.wrapping_add(1))
}

/// An array of arguments; `None` for one that the kernel does not take.
///
/// # Safety
/// `len` bytes at the address must be readable, unless it is null.
unsafe fn arguments(data: u64, len: u64) -> Option<Vec<u64>> {
    let len = len as u32 as usize;
    if !len.is_multiple_of(8) || len > MAX_ARGS * 8 || (len != 0 && data == 0) {
        return None;
    }
    // SAFETY: the caller vouches for it.
    let bytes = unsafe { args::bytes_or_null(data, len) };
    let word = |chunk: &[u8]| chunk.try_into().map_or(0, u64::from_ne_bytes);
    Some(bytes.chunks_exact(8).map(word).collect())
}

/// An `int` in `r0`, with its sign.
fn int(value: u64) -> u64 {
    i64::from(value as i32) as u64
}

/// Writes a trace, and gives the length that the whole text has.
fn trace(fmt: &[u8], arguments: &[u64], host: &mut Host) -> u64 {
    let Some(Text { mut bytes, len, .. }) = render(fmt, arguments, MAX_STRING - 1, host) else {
        return Errno::EINVAL.to_return();
    };
    if !bytes.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    host.trace(&bytes);
    int(len)
}

/// A text of which so much is kept as there is room for, and which counts the rest.
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
                let _ = write!(text, "{}{group:04x}", if i == 0 { "" } else { separator });
            }
            text
        }
    }
}
