//! Checksums in the packet.

use paceline_spec::Errno;

use super::packet::Skb;
use crate::host::Host;

/// `BPF_F_HDR_FIELD_MASK`: bytes of what changed, 0 for a difference that is given.
const FIELD: u64 = 0xf;
/// `BPF_F_PSEUDO_HDR`: what changed is part of the pseudo-header, which matters to sums that network cards make.
const PSEUDO_HEADER: u64 = 1 << 4;
/// `BPF_F_MARK_MANGLED_0`: a sum of 0 is none, as in UDP.
const MARK_MANGLED_0: u64 = 1 << 5;
/// `BPF_F_MARK_ENFORCE`
const MARK_ENFORCE: u64 = 1 << 6;
/// `BPF_F_IPV6`
const IS_IPV6: u64 = 1 << 7;

/// `csum_add`
fn add(a: u32, b: u32) -> u32 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(u32::from(carry))
}

/// `csum_fold`
fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

/// `csum16_add`
fn add16(a: u16, b: u16) -> u16 {
    let (sum, carry) = a.overflowing_add(b);
    sum.wrapping_add(u16::from(carry))
}

/// `csum_replace_by_diff`
fn by_difference(sum: u16, difference: u32) -> u16 {
    fold(add(difference, !u32::from(sum)))
}

/// `csum_replace2`
fn of_two_bytes(sum: u16, from: u16, to: u16) -> u16 {
    !add16(add16(!sum, !from), to)
}

/// `csum_replace4`
fn of_four_bytes(sum: u16, from: u32, to: u32) -> u16 {
    fold(add(add(!u32::from(sum), !from), to))
}

/// The bytes of a sum in the packet.
fn checked_offset(offset: u32) -> Result<u32, Errno> {
    if offset > 0xffff || offset & 1 != 0 { Err(Errno::EFAULT) } else { Ok(offset) }
}

/// `long bpf_l3_csum_replace(skb, offset, from, to, size)`
pub(super) fn replace_l3(
    _: &mut Host,
    mut skb: Skb<'_>,
    offset: u32,
    from: u64,
    to: u64,
    flags: u64,
) -> Result<(), Errno> {
    if flags & !FIELD != 0 {
        return Err(Errno::EINVAL);
    }
    let place = skb.span(checked_offset(offset)?, 2)?;
    let sum = u16::from_ne_bytes([place[0], place[1]]);
    let sum = match flags {
        0 if from != 0 => return Err(Errno::EINVAL),
        0 => by_difference(sum, to as u32),
        2 => of_two_bytes(sum, from as u16, to as u16),
        4 => of_four_bytes(sum, from as u32, to as u32),
        _ => return Err(Errno::EINVAL),
    };
    place.copy_from_slice(&sum.to_ne_bytes());
    Ok(())
}

/// `long bpf_l4_csum_replace(skb, offset, from, to, flags)`
pub(super) fn replace_l4(
    _: &mut Host,
    mut skb: Skb<'_>,
    offset: u32,
    from: u64,
    to: u64,
    flags: u64,
) -> Result<(), Errno> {
    if flags & !(FIELD | PSEUDO_HEADER | MARK_MANGLED_0 | MARK_ENFORCE | IS_IPV6) != 0 {
        return Err(Errno::EINVAL);
    }
    let marks_zero = flags & MARK_MANGLED_0 != 0;
    let place = skb.span(checked_offset(offset)?, 2)?;
    let sum = u16::from_ne_bytes([place[0], place[1]]);
    if marks_zero && flags & MARK_ENFORCE == 0 && sum == 0 {
        return Ok(());
    }
    let sum = match flags & FIELD {
        0 if from != 0 => return Err(Errno::EINVAL),
        0 => by_difference(sum, to as u32),
        // `inet_proto_csum_replace2` widens them.
        2 => of_four_bytes(sum, u32::from(from as u16), u32::from(to as u16)),
        4 => of_four_bytes(sum, from as u32, to as u32),
        _ => return Err(Errno::EINVAL),
    };
    let sum = if marks_zero && sum == 0 { 0xffff } else { sum };
    place.copy_from_slice(&sum.to_ne_bytes());
    Ok(())
}

/// `s64 bpf_csum_update(skb, csum)`: no network card has made a sum of the packet (`CHECKSUM_COMPLETE`).
pub(super) fn update(_: &mut Host, _: Skb<'_>, _: u32) -> Result<(), Errno> {
    Err(Errno::ENOTSUPP)
}

/// `long bpf_csum_level(skb, level)`: the number of sums that need not be verified, none for a new packet.
pub(super) fn level(host: &mut Host, mut skb: Skb<'_>, what: u64) -> Result<u64, Errno> {
    const QUERY: u64 = 0;
    const INC: u64 = 1;
    const DEC: u64 = 2;
    const RESET: u64 = 3;
    /// One more than `SKB_MAX_CSUM_LEVEL`.
    const MOST: u8 = 4;
    skb.with(host, |packet| {
        let level = &mut packet.facts.csum_level;
        match what {
            QUERY => return level.checked_sub(1).map(u64::from).ok_or(Errno::EACCES),
            INC => *level = (*level + 1).min(MOST),
            DEC => *level = level.saturating_sub(1),
            RESET => *level = 0,
            _ => return Err(Errno::EINVAL),
        }
        Ok(0)
    })
}
