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
    let text = arguments.and_then(|arguments| render(&fmt, &arguments, host));
    let Some(mut text) = text else { return Errno::EINVAL.to_return() };
    let len = text.len() as u64 + 1;
    if let Some(room) = (size as u32 as usize).checked_sub(1).filter(|_| to != 0) {
        text.truncate(room);
        text.push(0);
        // SAFETY: the prototype says that `size` bytes may be written unless the address is null.
        unsafe { memory::copy_to(to, &text) };
    }
    len
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

/// Writes a trace, and gives its length.
fn trace(fmt: &[u8], arguments: &[u64], host: &mut Host) -> u64 {
    let Some(mut text) = render(fmt, arguments, host) else { return Errno::EINVAL.to_return() };
    text.truncate(MAX_STRING - 1);
    let len = text.len() as u64;
    if !text.ends_with(b"\n") {
        text.push(b'\n');
    }
    host.trace(&text);
    len
}

/// The text; `None` for a format that the kernel refuses.
fn render(fmt: &[u8], arguments: &[u64], host: &Host) -> Option<Vec<u8>> {
    let mut arguments = arguments.iter().copied();
    let mut out = Vec::new();
    for piece in parse(fmt, arguments.len())? {
        match piece {
            Piece::Byte(byte) => out.push(byte),
            Piece::Argument(field, conversion) => {
                convert(&mut out, field, conversion, arguments.next()?, host);
            }
        }
    }
    Some(out)
}

/// Writes one argument.
fn convert(out: &mut Vec<u8>, field: Field, conversion: Conversion, arg: u64, host: &Host) {
    match conversion {
        Conversion::Ip { v6, usual } => pad(out, field, "", address(v6, usual, arg, host).as_bytes(), false),
        Conversion::Text => pad(out, field, "", &string(arg, host), false),
        Conversion::Address => pad(out, field, "", format!("{arg:016x}").as_bytes(), false),
        Conversion::Character => pad(out, field, "", &[arg as u8], false),
        Conversion::Number { long, form } => {
            let unsigned = if long { arg } else { u64::from(arg as u32) };
            match form {
                NumberForm::Signed if long => signed(out, field, arg as i64),
                NumberForm::Signed => signed(out, field, i64::from(arg as i32)),
                NumberForm::Unsigned => pad(out, field, "", unsigned.to_string().as_bytes(), true),
                NumberForm::LowerHex => pad(out, field, "", format!("{unsigned:x}").as_bytes(), true),
                NumberForm::UpperHex => pad(out, field, "", format!("{unsigned:X}").as_bytes(), true),
            }
        }
    }
}

fn signed(out: &mut Vec<u8>, field: Field, value: i64) {
    let sign = match (value < 0, field.plus, field.space) {
        (true, ..) => "-",
        (_, true, _) => "+",
        (_, _, true) => " ",
        _ => "",
    };
    pad(out, field, sign, value.unsigned_abs().to_string().as_bytes(), true);
}

fn pad(out: &mut Vec<u8>, field: Field, sign: &str, digits: &[u8], zero: bool) {
    let fill = field.width.saturating_sub(sign.len() + digits.len());
    let (spaces, zeros) = if zero && field.zero && !field.left { (0, fill) } else { (fill, 0) };
    let (before, after) = if field.left { (0, spaces) } else { (spaces, 0) };
    out.extend(std::iter::repeat_n(b' ', before));
    out.extend(sign.bytes());
    out.extend(std::iter::repeat_n(b'0', zeros));
    out.extend_from_slice(digits);
    out.extend(std::iter::repeat_n(b' ', after));
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
