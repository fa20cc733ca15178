//! Numbers in text: `bpf_strtol` and `bpf_strtoul` (`kernel/bpf/helpers.c`, `lib/kstrtox.c`).

use paceline_spec::Errno;

use super::mem::{ReadMem, WriteU64};
use crate::host::Host;

/// Most characters of a number that are looked at.
const MOST: usize = 63;

/// A number as it was read.
struct Parsed {
    value: u64,
    negative: bool,
    /// Characters up to its end.
    len: usize,
    /// Whether it has more than 64 bits.
    overflows: bool,
}

/// Parses a number after spaces and a minus sign; `None` if there is none (`__bpf_strtoull`).
fn parse(text: &[u8], flags: u64) -> Option<Parsed> {
    let base = u32::try_from(flags).ok().filter(|base| [0, 8, 10, 16].contains(base))?;
    let is_space = |byte: u8| matches!(byte, b' ' | b'\t'..=b'\r' | 0xa0);
    let spaces = text.iter().take_while(|byte| is_space(**byte)).count();
    let rest = text.get(spaces..)?;
    let negative = rest.first() == Some(&b'-');
    let start = spaces + usize::from(negative);
    let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
    // default: a shorter text is all of it.
    let rest = rest.get(..MOST).unwrap_or(rest);
    let has_prefix = matches!(rest, [b'0', b'x' | b'X', ..]);
    let base = match base {
        0 if has_prefix && rest.get(2).is_some_and(u8::is_ascii_hexdigit) => 16,
        0 if rest.first() == Some(&b'0') => 8,
        0 => 10,
        base => base,
    };
    let prefix = if base == 16 && has_prefix { 2 } else { 0 };
    let digits = rest.get(prefix..)?.iter().map_while(|byte| char::from(*byte).to_digit(base));
    let mut parsed = Parsed { value: 0, negative, len: start + prefix, overflows: false };
    let mut count = 0;
    for digit in digits {
        let (base, digit) = (u64::from(base), u64::from(digit));
        parsed.overflows |= parsed.value.checked_mul(base).and_then(|v| v.checked_add(digit)).is_none();
        parsed.value = parsed.value.wrapping_mul(base).wrapping_add(digit);
        count += 1;
    }
    parsed.len += count;
    (count > 0).then_some(parsed)
}

/// `long bpf_strtol(buf, buf_len, flags, res)`: the number of characters of the number.
pub(super) fn signed(_: &mut Host, text: ReadMem<'_>, flags: u64, to: WriteU64<'_>) -> Result<u64, Errno> {
    store(
        to,
        parse(&text.read(), flags).ok_or(Errno::EINVAL).and_then(|parsed| {
            let Parsed { value, negative, len, overflows } = parsed;
            let most = i64::MAX as u64 + u64::from(negative);
            match overflows || value > most {
                true => Err(Errno::ERANGE),
                false if negative => Ok((value.wrapping_neg(), len)),
                false => Ok((value, len)),
            }
        }),
    )
}

/// `long bpf_strtoul(buf, buf_len, flags, res)`
pub(super) fn unsigned(_: &mut Host, text: ReadMem<'_>, flags: u64, to: WriteU64<'_>) -> Result<u64, Errno> {
    store(
        to,
        match parse(&text.read(), flags) {
            None => Err(Errno::EINVAL),
            Some(Parsed { overflows: true, .. }) => Err(Errno::ERANGE),
            Some(Parsed { negative: true, .. }) => Err(Errno::EINVAL),
            Some(Parsed { value, len, .. }) => Ok((value, len)),
        },
    )
}

/// Stores the number, 0 where parsing fails, and returns its length.
fn store(to: WriteU64<'_>, parsed: Result<(u64, usize), Errno>) -> Result<u64, Errno> {
    to.store(parsed.map_or(0, |(value, _)| value));
    parsed.map(|(_, len)| len as u64)
}
